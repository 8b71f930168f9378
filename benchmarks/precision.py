# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The width of an efficiency's interval in a given time: this design against that of commit 8c27c55, on one machine.

Both measure the same experiment with their own defaults: worker sets that take turns in short rounds, and previously
five sets one after the other. They run in pairs, each first in every second pair, on the machine as found and with a
second process that uses one core half of the time, in bursts of 0.2 to 2 s. Because one design may take longer, the
benchmark compares the half-width times the square root of the seconds, including the start and the page. By this
scaling the ratio is that of the half-widths after the same wall time. Goal: at most a half, in both conditions.

Run: python -m benchmarks.precision [--pairs=3] [--workdir=results/precision]. The same command continues. Exit code 1
if the goal is missed.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.whole_runs import Run, Runs
from jaxbench.features.comparison import other_commit
from jaxbench.machine import source
from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet

BEFORE = "8c27c55"
GOAL = 0.5
CONDITIONS = ("as found", "with bursts")
HERE, THERE = "this design", BEFORE
SHOWN = {THERE: "five process groups in sequence", HERE: "short turns of all process groups"}
QUIET = {"as found": "quiet machine", "with bursts": "one core busy half of the time"}
_BURSTS = """
import random, time
while True:
    end = time.monotonic() + random.uniform(0.2, 2.0)
    while time.monotonic() < end:
        pass
    time.sleep(random.uniform(0.2, 2.0))
"""
Pairs = Mapping[str, list[dict[str, Run]]]  # by condition: the run of each design


@contextmanager
def bursts(wanted: bool) -> Iterator[None]:
    """A process that uses one core half of the time, while the context lasts."""
    if not wanted:
        yield
        return
    neighbour = subprocess.Popen([sys.executable, "-c", _BURSTS])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


def measure(runs: Runs, experiment: str, count: int) -> Pairs:
    """All pairs of both conditions, including those measured before."""
    pairs: dict[str, list[dict[str, Run]]] = {condition: [] for condition in CONDITIONS}
    with other_commit.files(f"{other_commit.PREFIX}{BEFORE}") as before:
        environment = {HERE: {}, THERE: source.environment(source.of(before.folder / "jaxbench"))}
        for number in range(count):
            for condition in CONDITIONS:
                pair = {}
                for design in (HERE, THERE) if number % 2 else (THERE, HERE):
                    name = f"{condition} {number + 1} {design}".replace(" ", "-")
                    with bursts(condition == CONDITIONS[1] and name not in runs.done):
                        pair[design] = runs.measure(name, [experiment], environment[design])
                pairs[condition].append(pair)
    return pairs


def cost(run: Run, point: str) -> float:
    """The half-width of an interval times the square root of the seconds of the run."""
    return run.half_width(point) * math.sqrt(run.seconds)


def points(pairs: list[dict[str, Run]]) -> list[str]:
    """The points that have an efficiency in every run."""
    runs = [run for pair in pairs for run in pair.values()]
    return [point for point in runs[0].efficiencies if all(point in run.efficiencies for run in runs)]


def ratios(pairs: list[dict[str, Run]]) -> dict[str, float]:
    """By point: the geometric mean over pairs of the cost of this design over that of the previous one."""
    return {
        point: math.exp(np.mean([math.log(cost(pair[HERE], point) / cost(pair[THERE], point)) for pair in pairs]))
        for point in points(pairs)
    }


def table(pairs: Pairs) -> Table:
    """Medians over the pairs."""
    shown = Table("machine", "point", "design", "half width, points", "seconds", "half width x sqrt(s)", "ratio")
    for condition, some in pairs.items():
        for point, ratio in ratios(some).items():
            for design in (THERE, HERE):
                runs = [pair[design] for pair in some]
                middle = [
                    np.median([100 * run.half_width(point) for run in runs]),
                    np.median([run.seconds for run in runs]),
                    np.median([100 * cost(run, point) for run in runs]),
                ]
                last = f"{ratio:.2f}" if design == HERE else ""
                shown.add_row(condition, point, design, *(f"{value:.1f}" for value in middle), last)
    return shown


def draw(pairs: Pairs) -> Figure:
    """Each run: its half-widths over its seconds."""
    sheet = Sheet(1, len(pairs), heights=[2.8])
    handles = []
    for column, (condition, some) in enumerate(pairs.items()):
        axes = sheet.panels[0, column]
        for place, design in enumerate((THERE, HERE)):
            colour, shape = marks.series_style(place)
            style = dict(color=colour, marker=shape, markersize=5.0, linestyle="none")
            widths = [(pair[design].seconds, 100 * pair[design].half_width(p)) for pair in some for p in points(some)]
            axes.plot(*zip(*widths, strict=True), **style)
            handles += [marks.style_handle(SHOWN[design], **style)] * (column == 0)
        runs = [run for pair in some for run in pair.values()]
        axes.set_xlim(0, 1.1 * max(run.seconds for run in runs))
        axes.set_ylim(0, 110 * max(run.half_width(point) for run in runs for point in points(some)))
        entitle(axes, QUIET.get(condition, condition), x="wall time of a run, s", y="± efficiency, % points")
    return sheet.finish(
        "Half width of a 95 % confidence interval by wall time (lower left is better)",
        handles,
        ["one mark: one efficiency of one run on two devices; two runs of each design"],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="cnn")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--workdir", type=Path, default=Path("results/precision"))
    flags, console = parser.parse_args(), Console(width=120)
    runs = Runs(flags.workdir, {"experiment": flags.experiment, "before": BEFORE}, console)
    pairs = measure(runs, flags.experiment, flags.pairs)
    console.print(table(pairs))
    found = {condition: ratios(some) for condition, some in pairs.items()}
    runs.write("ratios", found)
    canvas.write(canvas.render(lambda: draw(pairs)), flags.workdir, "precision")
    worst = max(ratio for of in found.values() for ratio in of.values())
    console.print(f"The largest ratio is {worst:.2f}, the goal at most {GOAL}.", highlight=False)
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
