# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench report`: the tables, figures and page of a run that is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="report --run=DIR",
    help="rebuild the tables, figures and page of a run or a training",
    group="explain",
    flags=("run",),
    required=("run",),
    configured=True,
    examples=(
        "report --run=results/a",
        "report --run=results/a --config.report.width_in=3.5",
        'report --run=results/a --config.report.title="Our model"',
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench import config as config_lib

    return report(Path(FLAGS.run), console, config_lib.check_look(FLAGS.config))


def report(workdir: Path, console: Console, look: Mapping[str, object] | None = None) -> int:
    """look: settings of the figures that replace the run's config. Returns the exit code."""
    from jaxbench.features.power_limits import page as limits
    from jaxbench.features.time_to_target import page as targets
    from jaxbench.features.training import page as training
    from jaxbench.features.training.trainings import LEDGER, TARGETS
    from jaxbench.report import build

    # Told apart by their files: a training and a run over batch sizes have pages of their own.
    if (workdir / LEDGER).exists():
        training.write(workdir, console, look=look)
        console.print(f"\nPage: {workdir / training.PAGE}", highlight=False, soft_wrap=True)
        return 0
    if (workdir / TARGETS).exists():
        targets.write(workdir, console, look=look)
        return 0
    if limits.runs(workdir):
        limits.write(workdir, console)
        return 0
    outcome = build.write(workdir, console=console, look=look)
    page = workdir / "report.html"
    console.print(f"\nPage, figures, table and every sample: {page}", highlight=False, soft_wrap=True)
    return 0 if outcome.ok else 1
