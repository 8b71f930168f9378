# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bars with intervals, for what has no size axis. Hatches tell them apart without colour; hollow is oversubscribed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.figures.axes import log_axis, seconds_tick
from jaxbench.report.figures.canvas import COLOURS, HATCHES, PALE
from jaxbench.report.figures.series import believed

WIDTH = 0.72  # of a bar, of the 1 that it has
LOGARITHMIC = 10  # from this ratio of times on their axis is
_LIGHT = ("#9ecae1", "#fdbe85", "#a1d9b4", "#e7b8d3", "#c6e5f5", "#f5d391", "#bdbdbd")  # COLOURS, with room for hatches
_ERROR: Any = dict(ecolor="black", elinewidth=0.8, capsize=2, capthick=0.8)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar. text: written at its end. look: which colour and hatch."""

    row: CaseRow
    value: Estimate
    text: str
    look: int = 0


def style(look: int, *, hollow: bool = False) -> dict[str, Any]:
    """How a bar looks: a light fill with a hatch in the colour of its outline."""
    edge, light = COLOURS[look % len(COLOURS)], _LIGHT[look % len(_LIGHT)]
    face = "white" if hollow else light
    return dict(facecolor=face, edgecolor=edge, hatch=HATCHES[look % len(HATCHES)], linewidth=0.8)


def handle(look: int, label: str) -> Patch:
    """The entry in the legend of the bars that look so."""
    return Patch(label=label, **style(look))


def lying(axes: Axes, bars: Sequence[tuple[float, Bar]], *, height: float = WIDTH, start: float = 0.0) -> None:
    """Horizontal bars at the given places, each with its interval and its text right of both.

    start: where bars begin: 0, or the left end of a logarithmic axis.
    """
    for place, bar in bars:
        value, sound = bar.value, believed(bar.row)
        if not sound:
            axes.plot([value.value], [place], **_cross(bar.row))
            _text(axes, value.value, place, f"{bar.text}  {'refused' if bar.row.gate == 'refused' else 'wrong'}")
            continue
        hollow = bar.row.point.oversubscribed
        ends = [[value.value - value.lo], [value.hi - value.value]] if value.has_interval and not hollow else None
        look = style(bar.look, hollow=hollow)
        axes.barh([place], [value.value - start], left=start, height=height, xerr=ends, error_kw=_ERROR, **look)
        _text(axes, value.hi if ends else value.value, place, bar.text)


def standing(axes: Axes, bars: Sequence[tuple[float, Bar]], *, width: float = WIDTH) -> None:
    """Vertical bars from 0 at the given places, each with its interval and its text above both."""
    for place, bar in bars:
        value = bar.value
        if not believed(bar.row):
            axes.plot([place], [value.value], **_cross(bar.row))
            continue
        hollow = bar.row.point.oversubscribed
        ends = [[value.value - value.lo], [value.hi - value.value]] if value.has_interval and not hollow else None
        axes.bar([place], [value.value], width=width, yerr=ends, error_kw=_ERROR, **style(bar.look, hollow=hollow))
        axes.annotate(
            bar.text, (place, value.hi if ends else value.value), xytext=(0, 2), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5,
        )  # fmt: skip


def time_axis(axes: Axes, times: Sequence[Estimate]) -> float:
    """The x axis of lying bars of seconds, with room for a text right of the longest. Returns where bars begin.

    Lengths can be compared on an axis from 0; it is logarithmic where the longest would leave nothing of the others.
    """
    low = min(time.value for time in times)
    high = max(time.hi if time.has_interval else time.value for time in times)
    axes.set_xlabel("time per call")
    if high < LOGARITHMIC * low:
        axes.set_xlim(0, 1.17 * high)
        axes.locator_params(axis="x", nbins=7)
        axes.xaxis.set_major_formatter(lambda value, _: seconds_tick(value) if value else "0")
        return 0.0
    start = low / max(2.0, (high / low) ** 0.1)
    log_axis(axes, "x", show=seconds_tick, most=8, span=(start, high))
    axes.set_xlim(start, high * (high / start) ** 0.17)
    return start


def names(axes: Axes, places: Sequence[float], labels: Sequence[str]) -> None:
    """What lying bars are called, the first on top."""
    axes.set_yticks(list(places), list(labels))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x")


def _cross(row: CaseRow) -> dict[str, Any]:
    refused = row.gate == "refused"
    size, colour = (4, PALE) if refused else (8, "black")
    return dict(linestyle="none", marker="x", markersize=size, color=colour, markeredgewidth=0.9, zorder=5)


def _text(axes: Axes, x: float, y: float, text: str) -> None:
    said = axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", ha="left", va="center", fontsize=6.5)
    said.set_in_layout(False)  # room for it is made by the limits of the axis
