# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows as lines over devices, for the figures about how a model is spread.

Filled is honest or exact, hollow has more devices than cores, a large black x failed its checks, hollow and dashed grey
was published by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.figures.canvas import HOLLOW, PALE, short
from jaxbench.report.figures.marks import WRONG, colour, cross, marker
from jaxbench.report.figures.spread_material import believed

EXACT = "bytes are exact, so they are filled also on more devices than cores"
Value = Callable[[Row], Estimate]
_OTHERS: Any = dict(color=PALE, markersize=3.4, markerfacecolor="white", markeredgewidth=0.7, linewidth=0.8)


def families(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by strategy and arm, each family by devices. The order is that of the run, and so is each one's look."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        name = ", ".join(filter(None, (row.point.strategy, row.point.arm)))
        found.setdefault(name, []).append(row)
    return {name: sorted(mine, key=lambda row: row.point.devices) for name, mine in found.items()}


def line(axes: Axes, rows: Sequence[Row], value: Value, *, look: int, exact: bool = False, between: Any = "-") -> None:
    """The line through the rows that may be believed, with their intervals.

    exact: a number that does not depend on speed, so that no point is hollow. between: the style of the line.
    """
    known = [row for row in rows if value(row).known]
    good = [row for row in known if believed(row)]
    whole = [row for row in good if exact or not row.point.oversubscribed]
    hollow = [row for row in good if not exact and row.point.oversubscribed]
    mark: dict[str, Any] = dict(color=colour(look), marker=marker(look), linestyle="none")

    def x(of: Sequence[Row]) -> list[float]:
        return [row.point.devices for row in of]

    if len(good) > 1:
        axes.plot(x(good), [value(r).value for r in good], color=colour(look), linestyle=between, zorder=2)
    if whole:
        ends = np.array([_reach(value(row)) for row in whole]).T
        axes.errorbar(
            x(whole), [value(r).value for r in whole], yerr=None if exact else ends, **mark, capsize=1.8,
            elinewidth=0.8, capthick=0.8, zorder=3,
        )  # fmt: skip
    if hollow:
        white: dict[str, Any] = dict(markerfacecolor="white", markeredgewidth=0.9)
        axes.plot(x(hollow), [value(r).value for r in hollow], **mark, **white, zorder=4)
    for row in known:
        if not believed(row):
            cross(axes, row.point.devices, value(row).value)


def _reach(value: Estimate) -> tuple[float, float]:
    return (value.value - value.lo, value.hi - value.value) if value.has_interval else (0.0, 0.0)


def others(axes: Axes, x: Any, y: Any, *, shape: str, joined: bool = True) -> None:
    """What others published: hollow grey markers, dashed between them if `joined`."""
    axes.plot(x, y, marker=shape, linestyle="--" if joined else "none", zorder=1.5, **_OTHERS)


def handle(look: int, label: str) -> Line2D:
    """A measured series' entry in the legend."""
    return Line2D([], [], color=colour(look), marker=marker(look), label=label)


def others_handle(shape: str, label: str) -> Line2D:
    """A published series' entry in the legend."""
    return Line2D([], [], marker=shape, linestyle="--", label=label, **_OTHERS)


def handles(names: Iterable[str], *, limit: int = 28) -> list[Line2D]:
    """One entry a family."""
    return [handle(look, short(name, limit)) for look, name in enumerate(names)]


def remarks(timed: Sequence[Row], drawn: Sequence[Row]) -> list[str]:
    """The footnotes: what n is and what the bars are of times, what hollow and crossed out mean."""
    notes = []
    honest = [row for row in timed if row.timing.step_s.known]
    if honest:
        blocks, rounds = ([getattr(row.timing, name) for row in honest] for name in ("samples", "rounds"))
        notes.append(f"times: n = {_span(blocks)} blocks in {_span(rounds)} rounds a point; error bars: 95 % intervals")
    if any(row.point.oversubscribed for row in honest):
        notes.append(HOLLOW)
    if any(not believed(row) for row in drawn):
        notes.append(WRONG)
    return notes


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"
