# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of clocks, power and energy, for runs with readings of their devices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.run_rows import Row
from jaxbench.records.power import DevicePower
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.axes import si
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import COLOURS, GREY
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, on
from jaxbench.report.figures.rounds import at_s
from jaxbench.report.run_report import RunReport

OVER = "minutes since the first round"
THIN = 0.85  # height of a strip, inches
SLOW = "#d62728"
Reading = tuple[float, DevicePower]  # at minutes since the first round


@plot("clocks", views=("training", "levers", "cases"), order=9, title="clock and power of each block")
def draw_clocks(run: RunReport) -> Chart | None:
    """The clock and the power of each GPU in each timed block, at the times of the figure above. A red ring is a block
    that heat, hardware or a clock below 75 % of the default slowed."""
    found = _readings(run)
    panels = {
        "clock, MHz": [(at, each, each.sm_mhz) for at, each in found if each.sm_mhz is not None],
        "power, W": [(at, each, each.power_w) for at, each in found if each.power_w is not None],
    }
    shown = {title: known for title, known in panels.items() if known}
    if not shown:
        return None
    devices = sorted({each.device for _, each in found})
    last = [*shown][-1]
    dot: marks.Style = dict(linestyle="none", marker="o", markersize=4)
    return Chart(
        panels=[
            [Panel(title=title, x=OVER if title == last else "", layers=_dots(known, devices))]
            for title, known in shown.items()
        ],
        heights=THIN,
        handles=[Line2D([], [], **dot, color=_colour_of(number), label=name) for number, name in enumerate(devices)],
    )


def _dots(known: Sequence[tuple[float, DevicePower, float]], devices: Sequence[str]) -> list[Layer]:
    """The readings of each device, and a ring around slowed ones."""
    of_device = [[(at, value) for at, each, value in known if each.device == device] for device in devices]
    slow = [(at, value) for at, each, value in known if each.slowed]
    layers = [
        on(_scatter_pairs, mine, s=6, color=_colour_of(number), linewidths=0)
        for number, mine in enumerate(of_device)
        if mine
    ]
    ring = on(_scatter_pairs, slow, s=18, facecolors="none", edgecolors=SLOW, linewidths=0.7)
    return [*layers, *([ring] if slow else [])]


def _scatter_pairs(axes: Axes, points: Sequence[tuple[float, float]], **style: object) -> None:
    axes.scatter(*zip(*points, strict=True), **style)  # type: ignore[arg-type]


def _colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


@plot("energy", views=("training", "levers"), order=9, title="time against energy")
def draw_energy(run: RunReport) -> Chart | None:
    """Energy against time of one example, for each point with a known energy. Down and to the left is better; a point
    above and to the left of another one buys its speed with energy."""
    rows = [row for row in run.rows if row.energy.joules_per_unit.known and row.timing.examples_per_s.value > 0]
    if not rows:
        return None
    kinds = list(dict.fromkeys(_series_name(row) for row in rows))
    panel = Panel(
        title="joules per example",
        x="seconds per example",
        layers=[on(_draw_point, row, _colour_of(kinds.index(_series_name(row)))) for row in rows],
        axes=[Log("x", si), Log("y", si)],
    )
    handles = [marks.handle(number, short(kind)) for number, kind in enumerate(kinds)] if len(kinds) > 1 else []
    return Chart(panels=[[panel]], handles=handles, remarks=[f"energy of the {rows[0].energy.source}"])


def _draw_point(axes: Axes, row: Row, colour: str) -> None:
    energy, at = row.energy.joules_per_unit, 1 / row.timing.examples_per_s.value
    axes.plot(at, energy.value, "o", color=colour, markersize=4)
    if energy.has_interval:
        axes.plot([at, at], [energy.lo, energy.hi], color=colour, linewidth=0.8)
    text = f"{row.point.devices} dev, batch {row.point.global_batch}"
    axes.annotate(text, (at, energy.value), xytext=(4, 2), textcoords="offset points", fontsize=6, color=GREY)


def _series_name(row: Row) -> str:
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
