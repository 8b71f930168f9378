# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench train`: trains a model on real data to its target, with checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxbench import interrupts
from jaxbench.verbs import FLAGS, OF_A_LAUNCH, Verb

if TYPE_CHECKING:
    from jaxbench.processes.launch import Followers

flags.DEFINE_bool("elastic", False, "train in several processes: if one is lost, the others go on.")
flags.DEFINE_float(
    "fault_timeout",
    60.0,
    "train (in several processes): seconds after which a silent process is lost. accept: the same of a host.",
)

VERB = Verb(
    usage="train EXPERIMENT",
    help="train it on real data to its target accuracy",
    group="measure",
    details="train takes --elastic --fault_timeout=60 (several processes: go on without a lost one, and after how many "
    "seconds).",
    argument="experiment",
    flags=("preset", "workdir", "elastic", "fault_timeout", *OF_A_LAUNCH),
    configured=True,
    refused=("cases", "targets", "decode"),
    trains=True,
    examples=(
        "train cnn",
        "train mlp --config.train.target=0.9 --workdir=results/mlp",
        "train cnn --elastic --fault_timeout=60 --processes=2 --process=0 --coordinator=localhost:9911",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console, followers: Followers | None = None) -> int:
    from jaxbench.features.training import page, trainings
    from jaxbench.features.training import run as runner

    (experiment,) = arguments
    faults = runner.Faults(timeout_s=FLAGS.fault_timeout, elastic=FLAGS.elastic)
    code = runner.train(experiment, FLAGS.config, workdir, console, faults, followers)
    if code == interrupts.STOPPED and not trainings.read_ledger(workdir):  # it was stopped before it had begun
        return code
    page.write(workdir, console)
    console.print(f"Page: {workdir / page.PAGE}", highlight=False, soft_wrap=True)
    return code
