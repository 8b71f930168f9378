# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: what more micro-batches per step cost in time and save in memory."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.intervals import Estimate
from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial
from jaxbench.report.figures.marks import bytes_tick, exact

CAPTION = (
    "The global batch is the same at every point; a step takes it in more and smaller parts. Left: step time over the "
    "baseline's. Right: memory per device by the compiler's count, all of it and the scratch alone."
)


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels. None when nothing was measured."""
    places = material.places
    if not any(arm.timing.step_s.known for arm in material.arms):
        return None
    figure = canvas.blank()
    left, right = figure.subplots(1, 2)
    for number, place in enumerate(places):
        marks.line(left, place.arms, parts, _ratio, look=number)
        marks.line(right, place.arms, parts, lambda arm: exact(arm.peak_bytes), look=number)
        marks.line(right, place.arms, parts, lambda arm: exact(arm.temp_bytes), look=number, between=marks.DASHED)
    marks.unity(left, vertical=False)
    left.set_title(f"step time over that of {short(places[0].arms[0].label, 12)}", loc="left")
    right.set_title("memory per device", loc="left")
    left.grid(True)
    log_axis(right, "y", show=bytes_tick, most=6)
    for axes in (left, right):
        log_axis(axes, "x", base=2, show=plain)
        axes.set_xlabel("micro-batches per step")
    kinds = [
        Line2D([], [], color="black", label="all memory"),
        Line2D([], [], color="black", dashes=(3, 1.5), label="scratch"),
    ]
    handles = [*marks.legend_handles(places, lines=True), *kinds]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: gradient accumulation")
    below = canvas.footnotes(figure, marks.remarks(places))
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def parts(arm: Arm) -> float:
    return float(ACCUMULATE.of(arm.point.levers))


def _ratio(arm: Arm) -> Estimate:
    return arm.ratio
