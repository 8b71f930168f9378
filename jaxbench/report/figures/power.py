# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of clocks, power and energy, for runs with readings of their devices."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.run_rows import Row
from jaxbench.records.power import DevicePower
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.axes import entitle, log_axis, plain
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import COLOURS, GREY
from jaxbench.report.figures.rounds import at_s
from jaxbench.report.run_report import RunReport

THIN = 0.85  # height of a strip, inches
SLOW = "#d62728"
Reading = tuple[float, DevicePower]  # at minutes since the first round


@plot("clocks", views=("training", "levers", "cases"), order=9)
def draw_clocks(run: RunReport) -> Figure | None:
    """The clock and the power of each GPU in each timed block, at the times of the figure above. A red ring is a block
    that heat, hardware or a clock below 75 % of the default slowed."""
    found = _readings(run)
    panels = [
        ("clock, MHz", [(at, each, each.sm_mhz) for at, each in found if each.sm_mhz is not None]),
        ("power, W", [(at, each, each.power_w) for at, each in found if each.power_w is not None]),
    ]
    panels = [(title, known) for title, known in panels if known]
    if not panels:
        return None
    devices = sorted({each.device for _, each in found})
    sheet = Sheet(len(panels), 1, heights=THIN)
    for axes, (title, known) in zip(sheet.panels[:, 0], panels, strict=True):
        for number, device in enumerate(devices):
            mine = [(at, value) for at, each, value in known if each.device == device]
            if mine:
                axes.scatter(*zip(*mine, strict=True), s=6, color=COLOURS[number % len(COLOURS)], linewidths=0)
        if slow := [(at, value) for at, each, value in known if each.slowed]:
            axes.scatter(*zip(*slow, strict=True), s=18, facecolors="none", edgecolors=SLOW, linewidths=0.7)
        entitle(axes, title, x="")
    sheet.panels[-1, 0].set_xlabel("minutes since the first round")
    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=4, color=COLOURS[number % len(COLOURS)], label=device)
        for number, device in enumerate(devices)
    ]
    return sheet.finish(f"{run.experiment}: clock and power of each block", handles)


@plot("energy", views=("training", "levers"), order=9)
def draw_energy(run: RunReport) -> Figure | None:
    """Energy against time of one example, for each point with a known energy. Down and to the left is better; a point
    above and to the left of another one buys its speed with energy."""
    rows = [row for row in run.rows if row.energy.joules_per_unit.known and row.timing.examples_per_s.value > 0]
    if not rows:
        return None
    sheet = Sheet()
    axes = sheet.only()
    kinds = list(dict.fromkeys(_kind(row) for row in rows))
    for row in rows:
        colour = COLOURS[kinds.index(_kind(row)) % len(COLOURS)]
        energy, at = row.energy.joules_per_unit, 1 / row.timing.examples_per_s.value
        axes.plot(at, energy.value, "o", color=colour, markersize=4)
        if energy.has_interval:
            axes.plot([at, at], [energy.lo, energy.hi], color=colour, linewidth=0.8)
        text = f"{row.point.devices} dev, batch {row.point.global_batch}"
        axes.annotate(text, (at, energy.value), xytext=(4, 2), textcoords="offset points", fontsize=6, color=GREY)
    log_axis(axes, "x", show=plain)
    log_axis(axes, "y", show=plain)
    entitle(axes, "joules per example", x="seconds per example")
    handles = [marks.handle(number, short(kind)) for number, kind in enumerate(kinds)] if len(kinds) > 1 else []
    source = rows[0].energy.source
    return sheet.finish(f"{run.experiment}: time against energy", handles, [f"energy of the {source}"])


def _kind(row: Row) -> str:
    return " ".join(filter(None, (row.point.strategy, row.point.scaling, row.label)))


def _readings(run: RunReport) -> list[Reading]:
    """Every reading of a GPU, in the order of time."""
    rounds = [each for row in run.rows for each in row.point.every_round if each.power]
    start = min((at_s(each) for each in rounds), default=math.nan)
    return [
        ((at_s(each) - start) / 60, device)
        for each in sorted(rounds, key=at_s)
        for block in each.power
        for device in block
        if device.device.startswith("GPU")
    ]
