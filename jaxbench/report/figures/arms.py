# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Any sweep of levers as a forest plot: each arm's time over its baseline's, with its interval."""

from __future__ import annotations

from matplotlib.figure import Figure

from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Time per example over that of the baseline, the first arm of the same strategy, scaling and device count. Left of "
    "the dashed line an arm is faster; where its interval crosses the line, one cannot tell. The scale is logarithmic."
)
MOST = 40


def draw(material: LeverMaterial) -> Figure | None:
    """None when no arm can be compared."""
    rows = [
        (place, number, arm) for number, place in enumerate(material.places) for arm in place.arms if arm.ratio.known
    ]
    if not any(arm.row is not arm.baseline for _, _, arm in rows):
        return None
    shown = rows[:MOST]
    figure = canvas.blank()
    axes = figure.subplots()
    ends = []
    for y, (_, number, arm) in enumerate(shown):
        value = cost(arm)
        marks.dot(axes, arm, value.value, y, value, look=number)
        ends += [value.lo, value.hi] if value.has_interval and not arm.point.oversubscribed else [value.value]
    marks.unity(axes)
    log_axis(axes, "x", show=plain, most=8, span=[*ends, 1.0])
    marks.rows_axis(axes, [_name(place, arm, material) for place, _, arm in shown])
    for y, (_, _, arm) in enumerate(shown):
        axes.annotate(
            _text(arm), (1.0, y), xycoords=("axes fraction", "data"), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=6.5,
        )  # fmt: skip
    axes.set_xlabel("time per example over the baseline's")
    handles = marks.legend_handles(material.places, lines=True)
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: what each setting costs")
    more = [f"the first {MOST} of {len(rows)} arms; the table has all"] if len(rows) > MOST else []
    below = canvas.footnotes(figure, [*more, *marks.remarks(material.places)])
    figure.set_figheight(0.75 + 0.22 * len(shown) + 0.16 * lines + 0.12 * below)
    return figure


def cost(arm: Arm) -> Estimate:
    """Time per example over the baseline's."""
    return arm.ratio.times(arm.baseline.point.global_batch / arm.point.global_batch)


def _text(arm: Arm) -> str:
    if arm.row is arm.baseline:
        return "baseline"
    value = cost(arm)
    between = f" [{value.lo:.2f}, {value.hi:.2f}]" if value.has_interval and not arm.point.oversubscribed else ""
    return f"{value.value:.2f}{between}{'  cannot tell' if arm.verdict == 'cannot tell' else ''}"


def _name(place: Place, arm: Arm, material: LeverMaterial) -> str:
    return short(", ".join(filter(None, [arm.label, place.name if len(material.places) > 1 else ""])), 46)
