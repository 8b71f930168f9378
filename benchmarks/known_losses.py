# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses of known size in real steps on two devices: does the waterfall find each in its own factor only?

Each loss is one run of the suite. `benchmarks.known_losses_expected` computes the expected factors.

  again:   all gradients are sent four more times -> communication
  late:    the second device waits 10 ms when its gradients are ready -> contention and unexplained, together.
           Without communication the first device does not wait for the second and may use both cores. Only the whole
           step loses this saving.
  heard:   both devices wait 10 ms in the whole step only -> unexplained
  fixed:   each device waits 10 ms for any per-device batch, so a small one costs more -> smaller per-device batch
  memory:  elementwise passes over arrays larger than a core's caches -> smaller per-device batch, and contention
  few:     a pipeline of two stages and 2 micro-batches with waiting blocks -> pipeline bubble
  many:    the same with 8 micro-batches

A factor is FOUND if it is as expected, and the interval of measured over expected excludes the value without the loss.
If the interval contains both, the answer is "cannot tell". As expected means that the interval contains 1, or that the
value is within 2 points. Of about 25 intervals of 95 %, one or two miss by chance.

Waiting steps call back to Python, and the check `host` refuses such runs. This verdict, and no other, is removed from
the records before they are read.

Run: python -m benchmarks.known_losses [--only=again,late,heard,fixed,memory,few,many] [--rounds=5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.known_losses_expected import BUILT_IN, DEVICES, MICRO_BATCHES, WAIT_S, Alone, lines
from benchmarks.known_losses_model import WAITS
from jaxbench.analysis import points, run_rows, waterfall
from jaxbench.analysis.waterfall import Waterfall
from jaxbench.core.store import RunFolder
from jaxbench.statistics.bootstrap import Estimate

HERE = Path(__file__).parent
MODEL = (str(HERE / "known_losses_model.py"), "strategy=shard_map", f"model.wait_s={WAIT_S}")
WAITING = (str(HERE / "known_bubble_model.py"), "strategy=pipeline")


def settings(name: str) -> tuple[str, ...]:
    """Settings of the run with this loss; "none": without a loss."""
    if name in MICRO_BATCHES:
        return (*WAITING, f"lever.accumulate={MICRO_BATCHES[name]}")
    return (*MODEL, f"model.loss={name}")


def measure(name: str, rounds: int, folder: Path) -> Waterfall:
    """Runs two devices under strong scaling. Exits if there is no complete waterfall."""
    experiment, *chosen = *settings(name), "scaling=strong", f"mesh.devices=1,{DEVICES}", f"measure.rounds={rounds}"
    flags = [f"--config.{setting}" for setting in chosen]
    command = [sys.executable, "-m", "jaxbench", "run", experiment, f"--workdir={folder}", "--share_machine", *flags]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not (folder / "records.jsonl").exists():
        raise SystemExit(done.stdout)
    without_host_verdict(folder / "records.jsonl")
    run = RunFolder(folder)
    found = waterfall.find(run_rows.analyse(points.load(run), config=run.config()))
    if len(found) != 1 or found[0].missing:
        raise SystemExit(f"{done.stdout}\nNo waterfall, or parts are missing: {found[0].missing if found else ''}")
    return found[0]


def without_host_verdict(path: Path) -> None:
    """Removes the verdict `host` from the records of a point."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("kind") == "point":
            line["checks"] = [check for check in line["checks"] if check["name"] != "host"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def shown(value: Estimate | None) -> str:
    """ "0.910 [0.890, 0.930]"."""
    if value is None:
        return ""
    return f"{value.value:.3f}" + (f" [{value.lo:.3f}, {value.hi:.3f}]" if value.has_interval else "")


def alone(what: str, *more: str) -> list[tuple[float, ...]]:
    """The output of `benchmarks.known_losses_alone`."""
    command = [sys.executable, "-m", "benchmarks.known_losses_alone", what, *more]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def measured(name: str, rounds: int, folder: Path) -> tuple[Waterfall, Alone]:
    """A run with this loss, and the time of the loss alone, before and after the run."""
    if name not in (*WAITS, "memory"):
        return measure(name, rounds, folder), Alone()
    asked = ("passes",) if name == "memory" else ("wait", f"--wait_s={WAIT_S}")
    before, found = alone(*asked), measure(name, rounds, folder)
    both = [*before, *alone(*asked)]
    if name == "memory":
        return found, Alone(passes=[(whole, half, each) for whole, half, each in both])
    return found, Alone(wait_s=statistics.mean(seconds for (seconds,) in both))


def fill(table: Table, names: list[str], rounds: int, folder: Path, console: Console) -> None:
    """Measures each loss; first a step without a loss, if the expected factors need it."""
    plain = None
    if set(names) - set(MICRO_BATCHES):
        with console.status("without a loss"):
            plain = measure("none", rounds, folder / "none")
    for name in names:
        with console.status(name):
            found, takes = measured(name, rounds, folder / name)
        before = None if name in MICRO_BATCHES else plain
        for factor, *values, said in lines(name, found, before, takes):
            table.add_row(name, factor, *map(shown, values), said)
            name = ""
        table.add_section()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(BUILT_IN))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120, markup=False, highlight=False)
    table = Table(
        "added loss", "factor", "without it", "expected", "measured", "", title=f"2 devices, {args.rounds} rounds"
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            fill(table, args.only.split(","), args.rounds, Path(folder), console)
        finally:  # a failed run does not end the others
            console.print(table)


if __name__ == "__main__":
    main()
