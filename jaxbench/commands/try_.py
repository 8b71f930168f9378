# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench try`: describes a model, and checks which strategies train it correctly."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="try EXPERIMENT",
    help="describe a model, and check which strategies train it correctly; no timing",
    group="bring your own",
    argument="experiment",
    flags=("preset",),
    configured=True,
    refused=("cases", "targets", "decode"),
    examples=(
        "try cnn",
        "try path/to/mine.py",
        "try path/to/mystep.py --preset=smoke",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.own_step import settle
    from jaxbench.features.own_step import trial as own_trial
    from jaxbench.features.try_model import trial

    (experiment,) = arguments
    if settle.settle(FLAGS.config, experiment):
        return 0 if own_trial.run(experiment, FLAGS.config, console) else 1
    return 0 if trial.run(experiment, FLAGS.config, console) else 1
