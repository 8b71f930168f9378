# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Efficiency over the rate of the link between two hosts, with the prediction from alpha, beta and the gradient bytes.

FOLDER has a folder for each rate, named as for `tc` (unlimited, 1gbit, 300mbit, 100mbit), with two runs of both hosts
together, in this order (docs/CLUSTERS.md; both with --coordinator, --processes=2 and --process):

  jaxbench run collectives --workdir=FOLDER/RATE/collectives --config.mesh.devices=2 --config.ops=all_reduce
      --config.sizes=1Ki,16Ki,512Ki,2Mi
  jaxbench run cnn --workdir=FOLDER/RATE/cnn --config.mesh.devices=1,2 --config.scaling=weak

The hosts are network namespaces of one machine, joined by a pair of virtual interfaces: `tc qdisc add dev eth0 root tbf
rate 100mbit burst 16kb latency 50ms` on both sets the rate. With a larger burst the first part of every gradient would
pass at once, unlike on a real link. Each host has its own core (taskset).

The predicted step is the measured step without its collectives (the part "local"), plus the communication predicted by
the machine profile of the first run, without overlap. Goal: within 15 % of the measured step at every rate. The exit
code is 1 if the goal is missed.

Run: python -m benchmarks.links FOLDER
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from jaxbench.analysis.quantities import interval, percent, seconds
from jaxbench.analysis.waterfall import Waterfall
from jaxbench.core.store import RunFolder
from jaxbench.report import run_report
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import efficiency_axis, entitle, seconds_tick, zero_axis
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.marks import Mark, exact
from jaxbench.statistics.bootstrap import Estimate

GOAL = 0.15
WHERE = "two network namespaces of one machine, a core each; tc limits the rate of the link between them"
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


@dataclass(frozen=True)
class Measured:
    """A training at one rate. step_s, efficiency: measured. predicted_s: the whole step. n: as in `notes.n_of`."""

    rate: str
    experiment: str
    step_s: Estimate
    efficiency: Estimate
    local_s: float
    communication_s: float
    predicted_s: float
    n: tuple[int, ...]

    @property
    def over(self) -> float:
        """The predicted step over the measured one."""
        return self.predicted_s / self.step_s.value

    @property
    def predicted_efficiency(self) -> float:
        return self.efficiency.value / self.over


def bits_per_s(rate: str) -> float:
    """Of "100mbit"; infinity for "unlimited", NaN for anything else."""
    if rate == "unlimited":
        return float("inf")
    found = re.fullmatch(r"(\d+)([kmg]bit)", rate)
    return float(found[1]) * UNITS[found[2]] if found else float("nan")


def read(folder: Path) -> list[Measured]:
    """The rates of a folder, the fastest first. Exits if there is none, or one cannot be predicted."""
    rates = [path.name for path in folder.glob("*") if bits_per_s(path.name) > 0]
    if not rates:
        raise SystemExit(f"'{folder}' has no rates: name its folders unlimited, 1gbit or 100mbit.")
    return [_measured(folder / rate) for rate in sorted(rates, key=bits_per_s, reverse=True)]


def _measured(folder: Path) -> Measured:
    trainings = [path.parent for path in sorted(folder.glob("*/records.jsonl")) if path.parent.name != "collectives"]
    if len(trainings) != 1:
        raise SystemExit(f"{folder} has {len(trainings)} trainings: put one next to its run of collectives.")
    (path,) = trainings
    run = run_report.find(RunFolder(path))
    found = max(run.waterfalls, key=lambda one: one.point.devices, default=None)
    if found is None or not (found.predicted_s > 0 and found.local_s.known):
        raise SystemExit(
            f"{path} cannot be predicted: it needs an efficiency, its part 'local' and, from a run of collectives "
            f"before it, {folder / 'machine.json'}."
        )
    return of(found, folder.name, run.experiment)


def of(found: Waterfall, rate: str, experiment: str) -> Measured:
    local_s, predicted_s = found.local_s.value, found.predicted_s
    row = found.row
    return Measured(
        rate,
        experiment,
        row.timing.step_s,
        row.efficiency,
        local_s,
        predicted_s,
        local_s + predicted_s,
        marks.n_of(row),
    )


def draw(every: list[Measured]) -> Figure:
    """Two panels over the rates: efficiency and time per step."""
    sheet = Sheet(1, 2)
    shares, times = sheet.panels[0]
    for axes in (shares, times):
        axes.set_xticks(range(len(every)), [short(one.rate) for one in every])
        axes.set_xlim(-0.4, len(every) - 0.6)
        entitle(axes, x="rate of the link")
    marks.unity(shares, at=100, along="y")
    _line(shares, [one.efficiency.times(100) for one in every], [100 * one.predicted_efficiency for one in every])
    top = _line(times, [one.step_s for one in every], [one.predicted_s for one in every])
    efficiency_axis(shares)
    zero_axis(times, "y", top, show=seconds_tick)
    entitle(shares, "efficiency on 2 hosts, %")
    entitle(times, "time per step")
    handles = [marks.handle(0, "measured"), marks.handle(1, "predicted: local + alpha + bytes / beta", between="--")]
    remarks = [
        WHERE,
        f"{notes.BARS}; {notes.n_of([one.n for one in every])} per mark",
        "local: the step without its collectives, measured",
    ]
    return sheet.finish(f"{every[0].experiment}, weak scaling: what the link costs", handles, remarks)


def _line(axes: Axes, measured: list[Estimate], predicted: list[float]) -> float:
    """Draws measurement and prediction. Returns the upper end of the highest bar."""
    seen = [Mark(at=at, value=value) for at, value in enumerate(measured)]
    marks.line(axes, seen, place=0)
    marks.line(axes, [Mark(at=at, value=exact(value)) for at, value in enumerate(predicted)], place=1, between="--")
    return max(*predicted, *(mark.end for mark in seen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    every = read(folder)
    canvas.write(canvas.render(lambda: draw(every)), folder, "links")
    headings = ("link", "efficiency", "predicted", "step", "local", "communication, predicted", "predicted / measured")
    table = Table(*headings, title=WHERE)
    for one in every:
        table.add_row(
            one.rate, percent(one.efficiency), f"{100 * one.predicted_efficiency:.0f} %", interval(one.step_s, seconds),
            seconds(one.local_s), seconds(one.communication_s), f"{one.over:.2f}",
        )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 140, markup=False, highlight=False)
    console.print(table)
    console.print(f"Figure: {folder / 'links.svg'}", soft_wrap=True)
    raise SystemExit(int(any(abs(one.over - 1) > GOAL for one in every)))


if __name__ == "__main__":
    main()
