# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench baseline`: keeps a run, for `jaxbench check`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

VERB = Verb(
    usage="baseline --run=DIR --name=N",
    help="keep a run as a baseline",
    group="compare",
    flags=("run", "name"),
    required=("run", "name"),
    answers=True,
    examples=(
        "baseline --run=results/a --name=main-mlp",
        "baseline --run=results/b --name=release",
        "baseline --run=results/a --name=main-mlp && jaxbench check mlp --name=main-mlp",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    from jaxbench.features.comparison import comparable
    from jaxbench.statistics.bootstrap import MIN_PROCESSES

    path = comparable.keep_baseline(Path(FLAGS.run), FLAGS.name)
    # Too few processes are allowed: then `check` relies on the calibration.
    few = [n for n, one in comparable.samples_of(comparable.read(path)).items() if len(one.processes) < MIN_PROCESSES]
    console.print(f"Kept as {path}.", highlight=False, soft_wrap=True)
    if few:
        console.print(
            f"It was measured by fewer than {MIN_PROCESSES} processes, so check will use the A/A spread that jaxbench "
            "calibrate found. A run with --config.measure.processes=5 measures its own.",
            style="yellow",
            highlight=False,
        )
    return 0
