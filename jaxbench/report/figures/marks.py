# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Arms as marks of a figure: bars and points over names, lines over numbers; one look for each place of the run.

Filled is measured and honest, hollow has more devices than cores, a large black x failed its checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.analysis.timing import Timing
from jaxbench.report.figures import bars
from jaxbench.report.figures.bars import handle, style
from jaxbench.report.figures.canvas import COLOURS, DASHES, GREY, HOLLOW, MARKERS, PALE, short

WRONG = "large black x: did not pass its checks"
PUBLISHED: Any = dict(facecolor="white", edgecolor=PALE, linewidth=0.9, linestyle=(0, (4, 2)))  # a bar of others
DASHED: Any = (0, (3, 1.5))
Value = Callable[[Arm], Estimate]
Show = Callable[[Estimate], str]
Measured = TypeVar("Measured", Arm, Row)
_ERROR: Any = dict(ecolor="black", elinewidth=0.8, capsize=1.8, capthick=0.8)


def exact(value: float) -> Estimate:
    """A number that has no noise, such as what the compiler counts."""
    return Estimate(value=value)


def bytes_tick(value: float) -> str:
    """ "20 MB", "1.5 GB"; for ticks, which are round."""
    size, prefix = next(((s, p) for s, p in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= s), (1.0, ""))
    return f"{value / size:.3g} {prefix}B" if value else "0"


def labels(places: Sequence[Place]) -> list[str]:
    """What all arms are called, each once."""
    return list(dict.fromkeys(arm.label for place in places for arm in place.arms))


def ticks(places: Sequence[Place]) -> list[str]:
    """`labels`, with the baseline marked as such."""
    base = {place.arms[0].label for place in places}
    return [f"{short(name, 26)}\n(baseline)" if name in base else short(name, 26) for name in labels(places)]


def remarks(places: Sequence[Place], *, paired: bool = True) -> list[str]:
    """The footnotes that every figure of arms needs: what n is, what the bars are, what hollow means."""
    timed = [arm for place in places for arm in place.arms if arm.timing.step_s.known]
    if not timed:
        return []
    notes = counted([arm.timing for arm in timed], "an arm", ", ratios over shared rounds" if paired else "")
    if any(arm.point.oversubscribed for arm in timed):
        notes.append(HOLLOW)
    if any(arm.point.check_ok is False for arm in timed):
        notes.append(WRONG)
    missing = [arm.label for place in places for arm in place.arms if not arm.timing.step_s.known]
    if missing:
        notes.append(f"not measured: {', '.join(short(name, 30) for name in dict.fromkeys(missing))}")
    return notes


def counted(timings: Sequence[Timing], each: str, of: str = "", *, barred: Sequence[Timing] | None = None) -> list[str]:
    """What n is, and what the error bars are, where there are any. barred: those that are drawn with one if they have
    an interval; all by default."""
    blocks, rounds = ([getattr(timing, name) for timing in timings] for name in ("samples", "rounds"))
    bars = [timing.step_s.has_interval for timing in (timings if barred is None else barred)]
    meaning = f"; error bars: 95 % intervals{of}" if any(bars) else ""
    notes = [f"n = {_span(blocks)} blocks in {_span(rounds)} rounds {each}{meaning}"]
    return notes if all(bars) else [*notes, "no error bar: fewer than 3 rounds"]


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def legend_handles(places: Sequence[Place], *, lines: bool) -> list[Any]:
    """One entry a place; none where there is one place only."""
    if len(places) < 2:
        return []
    if not lines:
        return [handle(i, short(place.name)) for i, place in enumerate(places)]
    return [Line2D([], [], color=colour(i), marker=marker(i), label=short(p.name)) for i, p in enumerate(places)]


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def marker(place: int) -> str:
    return MARKERS[place % len(MARKERS)]


def lying(axes: Axes, places: Sequence[Place], value: Value, show: Show, *, room: float = 1.3) -> float:
    """Horizontal bars from 0, a group an arm, a bar a place. room: of the axis, over the longest. Returns its end."""
    rows, top = labels(places), 0.0
    height = 0.74 / len(places)
    for number, place in enumerate(places):
        for arm in place.arms:
            found = value(arm)
            if not found.known:
                continue
            y = rows.index(arm.label) + (number - (len(places) - 1) / 2) * height
            top = max(top, found.hi if found.has_interval else found.value)
            bar(
                axes,
                arm,
                y,
                found,
                show(found.alone() if arm.point.oversubscribed else found),
                height=height,
                look=number,
            )
    axes.set_xlim(0, room * top or 1)
    return room * top or 1.0


def bar(
    axes: Axes, arm: Arm, y: float, value: Estimate, text: str, *, height: float, look: int, start: float = 0.0
) -> None:
    """One arm's bar from `start` with its interval and a text right of both."""
    if not arm.believed:
        cross(axes, value.value, y)
        return
    hollow = arm.point.oversubscribed
    ends = [[value.value - value.lo], [value.hi - value.value]] if value.has_interval and not hollow else None
    axes.barh(
        [y], [value.value - start], left=start, height=0.92 * height, xerr=ends, error_kw=_ERROR,
        **style(look, hollow=hollow),
    )  # fmt: skip
    write(axes, max(start, value.hi if ends else value.value), y, text)


def write(axes: Axes, x: float, y: float, text: str, *, size: float = 6.5) -> None:
    """A number right of its mark. The axis must have room for it."""
    said = axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", ha="left", va="center", fontsize=size)
    said.set_in_layout(False)


def dots(axes: Axes, places: Sequence[Place], value: Value, show: Show | None = None) -> None:
    """A point an arm and place with its interval, for values whose distance from 0 says nothing."""
    rows = labels(places)
    for number, place in enumerate(places):
        for arm in place.arms:
            found = value(arm)
            if not found.known:
                continue
            y = rows.index(arm.label) + (number - (len(places) - 1) / 2) * 0.5 / len(places)
            dot(axes, arm, found.value, y, found, look=number)
            if show is not None:
                at = found.hi if found.has_interval and not arm.point.oversubscribed else found.value
                write(axes, at, y, show(found))


def dot(axes: Axes, arm: Arm, x: float, y: float, value: Estimate, *, look: int) -> None:
    """One arm's point with a horizontal interval."""
    if not arm.believed:
        cross(axes, x, y)
        return
    hollow = arm.point.oversubscribed
    ends = [[value.value - value.lo], [value.hi - value.value]] if value.has_interval and not hollow else None
    axes.errorbar(
        [x], [y], xerr=ends, color=colour(look), marker=marker(look), linestyle="none", capsize=1.8, elinewidth=0.8,
        capthick=0.8, markerfacecolor="white" if hollow else colour(look), markeredgewidth=0.9, zorder=3,
    )  # fmt: skip


def cross(axes: Axes, x: float, y: float) -> None:
    axes.plot([x], [y], linestyle="none", marker="x", markersize=8, color="black", markeredgewidth=0.9, zorder=5)


def line(
    axes: Axes, rows: Sequence[Measured], x: Callable[[Measured], float], value: Callable[[Measured], Estimate], *,
    look: int, between: Any = "-", shape: str = "", exact: bool = False,
) -> None:  # fmt: skip
    """The line through the rows (or arms) that may be believed, by x, with their intervals.

    between: the style of the line. shape: another marker. exact: values that do not depend on speed: none is hollow and
    none has an interval.
    """
    known = sorted((row for row in rows if value(row).known and math.isfinite(x(row))), key=x)
    good = [row for row in known if row.believed]
    mark: dict[str, Any] = dict(color=colour(look), marker=shape or marker(look), linestyle="none")
    axes.plot([x(r) for r in good], [value(r).value for r in good], color=colour(look), linestyle=between, zorder=2)
    solid = [row for row in good if exact or not row.point.oversubscribed]
    hollow = [row for row in good if not exact and row.point.oversubscribed]
    if solid:
        ends = None if exact else np.array([_reach(value(row)) for row in solid]).T
        axes.errorbar(
            [x(r) for r in solid], [value(r).value for r in solid], yerr=ends, **mark, capsize=1.8, elinewidth=0.8,
            capthick=0.8, zorder=3,
        )  # fmt: skip
    if hollow:
        white: dict[str, Any] = dict(markerfacecolor="white", markeredgewidth=0.9)
        axes.plot([x(r) for r in hollow], [value(r).value for r in hollow], **mark, **white, zorder=4)
    for row in known:
        if not row.believed:
            cross(axes, x(row), value(row).value)


def _reach(value: Estimate) -> tuple[float, float]:
    return (value.value - value.lo, value.hi - value.value) if value.has_interval else (0.0, 0.0)


def published_bars(axes: Axes, entries: Sequence[tuple[float, float, str]]) -> None:
    """Hollow dashed bars of others at the given places: (y, value, text)."""
    for y, value, text in entries:
        axes.barh([y], [value], height=0.62, zorder=2, **PUBLISHED)
        write(axes, max(value, 0.0), y, text)


def unity(axes: Axes, *, vertical: bool = True, at: float = 1.0) -> None:
    """The line of no difference."""
    (axes.axvline if vertical else axes.axhline)(at, **{**DASHES, "color": GREY}, zorder=1)


def rows_axis(axes: Axes, ticks: Sequence[str], *, first: bool = True) -> None:
    """Names of lying marks, top down; only ticks without names on panels right of the first."""
    bars.names(axes, range(len(ticks)), ticks)
    if not first:
        axes.tick_params(axis="y", labelleft=False)
