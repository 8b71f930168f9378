# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rows as lines over devices, for the figures about how a model is spread.

Filled is honest or exact, hollow has more devices than cores, a large black x failed its checks, hollow and dashed grey
was published by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.figures import marks
from jaxbench.report.figures.canvas import HOLLOW, PALE, short
from jaxbench.report.figures.marks import WRONG, colour, marker

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
    """`marks.line` over devices."""
    marks.line(axes, rows, lambda row: row.point.devices, value, look=look, exact=exact, between=between)


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
        solid = [row.timing for row in honest if not row.point.oversubscribed]  # hollow marks have no bars
        first, *rest = marks.counted([row.timing for row in honest], "a point", barred=solid)
        notes += [f"times: {first}", *rest]
    if any(row.point.oversubscribed for row in honest):
        notes.append(HOLLOW)
    if any(not row.believed for row in drawn):
        notes.append(WRONG)
    return notes
