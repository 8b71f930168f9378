# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A ladder of levers: how much faster the step is after each rung than before the first, and by which factor each."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import Place
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.figures import bars, canvas, marks
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Each rung keeps the ones above it. Bars: examples per second over the first rung's. The factor is that of the "
    "rung alone, over the one before it. Where the axis is logarithmic, lengths are to be read at the ticks."
)


def draw(material: LeverMaterial) -> Figure | None:
    """One panel a place. None when nothing was measured."""
    places = [place for place in material.places if any(arm.speedup.known for arm in place.arms)]
    if not places:
        return None
    figure = canvas.blank()
    panels = figure.subplots(len(places), 1, squeeze=False)[:, 0]
    for axes, place in zip(panels, places, strict=True):
        _panel(axes, place, named=len(places) > 1)
    panels[-1].set_xlabel("speed-up over the first rung")
    lines = canvas.legend(figure, [], title=f"{material.experiment}: the ladder")
    notes = ["x: of the rung alone over the one before it, with its 95 % interval; ?: its interval holds 1"]
    below = canvas.footnotes(figure, [*notes, *marks.remarks(places)])
    rungs = sum(len(place.arms) for place in places)
    figure.set_figheight(0.6 + 0.24 * rungs + 0.3 * len(places) + 0.16 * lines + 0.12 * below)
    return figure


def factors(place: Place) -> list[Estimate]:
    """The speed-up of each rung over the one before it; UNKNOWN of the first, and beside a rung without times."""
    found = [UNKNOWN]
    for before, arm in zip(place.arms, place.arms[1:], strict=False):
        found.append(place.speedup(arm, before) if before.believed and arm.believed else UNKNOWN)
    return found


def _panel(axes: Axes, place: Place, *, named: bool) -> None:
    values = [arm.speedup for arm in place.arms]
    known = [value for value in values if value.known]
    low, high = min(v.value for v in known), max(v.hi if v.has_interval else v.value for v in known)
    start = _axis(axes, low, high)
    for y, (arm, value, factor) in enumerate(zip(place.arms, values, factors(place), strict=True)):
        if not value.known:
            marks.write(
                axes, start, y, arm.point.status if arm.point.status in ("failed", "unsupported") else "not measured"
            )
            continue
        alone = factor.alone() if arm.point.oversubscribed else factor
        text = f"{value.value:.2f} x" + (f"   {_factor(alone)}" if factor.known else "")
        marks.bar(axes, arm, y, value, text, height=0.74, look=0, start=start)
    bars.names(axes, range(len(place.arms)), [short(arm.label, 32) for arm in place.arms])
    marks.unity(axes)
    if named:
        axes.set_title(place.name, loc="left")


def _axis(axes: Axes, low: float, high: float) -> float:
    """Linear from 0, or logarithmic where the longest would leave nothing of the others. Returns where bars begin."""
    if high < bars.LOGARITHMIC * low:
        axes.set_xlim(0, 1.42 * high)
        return 0.0
    start = low / max(1.5, (high / low) ** 0.06)
    log_axis(axes, "x", show=plain, most=8, span=(start, high))
    axes.set_xlim(start, high * (high / start) ** 0.42)
    return start


def _factor(value: Estimate) -> str:
    if not value.has_interval:
        return f"(rung {value.value:.2f} x)"
    sure = "" if value.lo > 1 or value.hi < 1 else " ?"
    return f"(rung {value.value:.2f} x [{value.lo:.2f}, {value.hi:.2f}]{sure})"
