# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the data come from: throughput of each input kind, and the share of the step that is waiting for it."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.arms import Arm
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.lever_headline import bound
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Left: examples per second over those of data that already lie on the devices. Right: the share of the step that "
    "input costs, 1 - T(device) / T(kind), with its interval, and the share of the time that the step's own thread was "
    "seen waiting for its next batch. Where the first is larger, input costs without waiting: copies, shared cores."
)
OWN = "device"


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels. None when nothing was measured."""
    places = material.places
    if not any(arm.timing.step_s.known for arm in material.arms):
        return None
    figure = canvas.blank()
    left, right = figure.subplots(1, 2, width_ratios=[1.1, 1])
    marks.lying(left, places, lambda arm: arm.speedup, _text, room=1.45)
    marks.unity(left)
    base = short(places[0].arms[0].label, 14)
    left.set_title(f"throughput over that of {base}", loc="left")
    marks.dots(right, places, share, lambda value: f"{value.value:z.0f} %")
    seen = False
    rows = marks.labels(places)
    for number, place in enumerate(places):
        for arm in place.arms:
            waited = arm.outcome("waited_share")
            if math.isfinite(waited):
                y = rows.index(arm.label) + (number - (len(places) - 1) / 2) * 0.5 / len(places) + 0.24
                right.plot([100 * waited], [y], marker="|", color="black", markersize=7, linestyle="none")
                seen = True
    marks.unity(right, at=0.0)
    right.set_xlim(min(-5.0, right.dataLim.x0 - 3), max(20.0, 1.25 * right.dataLim.x1))
    right.set_title("input-bound share of the step, %", loc="left")
    for axes in (left, right):
        marks.rows_axis(axes, marks.ticks(places), first=axes is left)
    kinds = (
        [Line2D([], [], color="black", marker="|", linestyle="none", markersize=7, label="seen waiting")]
        if seen
        else []
    )
    handles = [*marks.legend_handles(places, lines=True), *kinds]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: is the step waiting for data?")
    notes = [] if base == OWN else [f"the baseline is {base}, not data on the device: shares are over it"]
    below = canvas.footnotes(figure, [*notes, *marks.remarks(places)])
    figure.set_figheight(0.85 + 0.34 * len(rows) * max(1.0, 0.6 * len(places)) + 0.16 * lines + 0.12 * below)
    return figure


def share(arm: Arm) -> Estimate:
    """Percent of the step; UNKNOWN of the baseline."""
    if arm.row is arm.baseline or not arm.ratio.known:
        return UNKNOWN
    value = bound(arm)
    return Estimate(value=100 * value.value, lo=100 * value.lo, hi=100 * value.hi)


def _text(value: Estimate) -> str:
    return f"{value.value:.2f}" + (f" [{value.lo:.2f}, {value.hi:.2f}]" if value.has_interval else "")
