# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures from a committed summary.csv, for runs without committed records: the same drawing code, fewer numbers.

A summary has neither the rounds of a point nor the interval of the unexplained loss, so these figures lack both.

Run: python -m benchmarks.figures --draw --only=flags
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from jaxbench.analysis import waterfall
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.waterfall import Factor
from jaxbench.features.ablations import figures as ablations
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.figures import levers
from jaxbench.report.figures.levers import ArmCost
from jaxbench.statistics.bootstrap import Estimate

# In the order of a waterfall: the column of summary.csv with the loss by a factor.
LOSSES = {
    waterfall.SMALLER_BATCH: "lost_smaller_share",
    waterfall.UNEQUAL: "lost_unequal",
    waterfall.CONTENTION: "lost_shared_machine",
    waterfall.RUNTIME: "lost_runtime",
    waterfall.COMMUNICATION: "lost_communication",
    waterfall.UNEXPLAINED: "lost_other",
}
Line = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The bars of one point of a summary."""

    devices: int
    efficiency: Estimate
    factors: tuple[Factor, ...]


def read(path: Path) -> list[Line]:
    """The lines of a summary.csv."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(line: Line, name: str) -> Estimate:
    """A column with its interval, unknown where the file has none."""
    names = {"value": name, "lo": f"{name}_lo", "hi": f"{name}_hi"}
    return Estimate(**{end: float(line.get(column) or math.nan) for end, column in names.items()})


def n_of(line: Line) -> tuple[int, int, int]:
    """Its blocks, rounds and processes."""
    return int(line["samples"]), int(line["rounds"]), int(line["interval_processes"])


def draw_costs(lines: list[Line]) -> Figure:
    """As `jaxbench.report.figures.levers.draw_arms`: a row for each set of compiler options, ranked by cost."""
    counts = list(dict.fromkeys(int(line["devices"]) for line in lines))
    base, found = {int(line["devices"]): line for line in lines if line["verdict"] == "baseline"}, []
    for line in lines:
        of = base[int(line["devices"])]
        found.append(
            ArmCost(
                name=f"{line['compiler']}, {devices(int(line['devices']))}",
                value=number(line, "ratio").times(float(of["global_batch"]) / float(line["global_batch"])),
                state="solid",
                style=counts.index(int(line["devices"])),
                verdict=line["verdict"],
            )
        )
    found.sort(key=lambda each: (each.style, each.verdict != "baseline", each.value.value))
    chart = levers.of_costs(
        found,
        handles=[marks.handle(style, devices(count)) for style, count in enumerate(counts)],
        remarks=[f"{notes.BARS}, ratios over shared rounds; {notes.n_of([*map(n_of, lines)])} per setting"],
    )
    return chart.figure(f"{lines[0]['experiment']}: what each setting costs")


def draw_losses(lines: list[Line]) -> Figure:
    """As `jaxbench.features.ablations.figures.draw_waterfall`, for the points that have losses."""
    shown = [line for line in lines if line["lost_other"]]
    every = [losses(line) for line in shown]
    sheet = Sheet(heights=1.9)
    ablations.panel(sheet.only(), every)
    entitle(sheet.only(), f"{shown[0]['strategy']}, {shown[0]['scaling']}", y="efficiency, %")
    remarks = [
        f"points of efficiency; {notes.BARS}; {notes.n_of([*map(n_of, shown)])} for the efficiency, fewer for its "
        "factors; the unexplained loss has no interval in the table",
        "?: the interval contains 0",
    ]
    return sheet.finish(f"{lines[0]['experiment']}: why not 100 %", ablations.handles(every), remarks)


def losses(line: Line) -> Losses:
    """The factors are known by what they lose; their own values are not in the file."""
    lost = {name: number(line, column).times(100) for name, column in LOSSES.items()}
    factors = tuple(Factor(name=name, value=Estimate(), lost=each) for name, each in lost.items() if each.known)
    return Losses(devices=int(line["devices"]), efficiency=number(line, "efficiency"), factors=factors)
