# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The main job ten times on one machine: do its intervals contain the mean of all runs?

For each efficiency: the number of intervals that contain the mean of all runs, and the standard deviation of the values
over the one that their intervals imply. An interval has two to three standard errors on each side, because how much
worker sets differ and how long noise lasts is estimated; ERRORS is assumed. Goals: nine of ten, and a ratio within a
factor of 1.5.

Run: python -m benchmarks.repeatability [--runs=10] [--workdir=results/repeatability]. The same command continues. Exit
code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.whole_runs import Run, Runs
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet

LEAST, FACTOR = 0.9, 1.5
ERRORS = 2.5  # standard errors in half an interval


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """An efficiency over all runs. contained: number of intervals that contain the mean. claimed: the standard
    deviation of a value that the intervals imply."""

    point: str
    runs: int
    mean: float
    sd: float
    claimed: float
    contained: int

    @property
    def ratio(self) -> float:
        return self.sd / self.claimed

    @property
    def good(self) -> bool:
        return self.contained >= LEAST * self.runs and 1 / FACTOR <= self.ratio <= FACTOR


def of(point: str, runs: Sequence[Run]) -> Repeated:
    values, lo, hi = np.array([run.efficiencies[point] for run in runs]).T
    mean = float(values.mean())
    return Repeated(
        point=point, runs=len(runs), mean=mean, sd=float(values.std(ddof=1)),
        claimed=math.sqrt(float(np.mean(((hi - lo) / 2 / ERRORS) ** 2))),
        contained=int(((lo <= mean) & (mean <= hi)).sum()),
    )  # fmt: skip


def table(found: Sequence[Repeated]) -> Table:
    shown = Table("efficiency", "runs", "mean, %", "intervals with the mean", "sd, points", "claimed", "ratio", "")
    for each in found:
        contained = f"{each.contained} of {each.runs}"
        numbers = f"{100 * each.sd:.2f}", f"{100 * each.claimed:.2f}", f"{each.ratio:.2f}"
        verdict = "agrees" if each.good else "does not agree"
        shown.add_row(each.point, str(each.runs), f"{100 * each.mean:.1f}", contained, *numbers, verdict)
    return shown


def draw(found: Sequence[Repeated], runs: Sequence[Run]) -> Figure:
    """The interval of each run, and the mean of all."""
    sheet = Sheet(1, len(found), heights=[2.8])
    colour, shape = marks.series_style(0)
    for column, each in enumerate(found):
        axes = sheet.panels[0, column]
        marks.guide(axes, [0.5, len(runs) + 0.5], [100 * each.mean] * 2)
        for number, run in enumerate(runs, 1):
            value, lo, hi = (100 * part for part in run.efficiencies[each.point])
            axes.plot([number, number], [lo, hi], color=colour, linewidth=1.2, solid_capstyle="butt")
            axes.plot([number], [value], color=colour, marker=shape, markersize=4.5, linestyle="none")
        entitle(axes, notes.display(each.point), x="run", y="efficiency, %")
    title = f"Efficiency of the same training, measured {len(runs)} times"
    return sheet.finish(title, [marks.guide_handle("mean of all")], ["bars: 95 % confidence interval of each run"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", default="cnn")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workdir", type=Path, default=Path("results/repeatability"))
    flags, console = parser.parse_args(), Console(width=120)
    kept = Runs(flags.workdir, {"experiment": flags.experiment}, console)
    runs = [kept.measure(f"run-{number + 1:02d}", [flags.experiment]) for number in range(flags.runs)]
    points = [point for point in runs[0].efficiencies if all(point in run.efficiencies for run in runs)]
    found = [of(point, runs) for point in points]
    console.print(table(found))
    seconds = [run.seconds for run in runs]
    console.print(f"A run took {np.median(seconds):.0f} s ({min(seconds):.0f} to {max(seconds):.0f}).", highlight=False)
    kept.write("repeated", [asdict(each) | {"ratio": each.ratio} for each in found])
    canvas.write(canvas.render(lambda: draw(found, runs)), flags.workdir, "repeatability")
    return 0 if found and all(each.good for each in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
