# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of two known shapes from data: `lines` (values over x, a line per series) and `rows` (values by name)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.axes import Show, bar_axis, entitle, log_axis, plain, zero_axis
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate

Value = Callable[[Row], Estimate]
Curve = Value | tuple[Value, dict[str, Any]]  # with a style of `marks.line`
Axis = Callable[[Axes], object]


def log(which: str, show: Show = plain, **settings: Any) -> Axis:
    """`log_axis`, to be applied after everything is drawn."""
    return lambda axes: log_axis(axes, which, show=show, **settings)


DOUBLING = log("x", base=2)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel of `lines` or `rows`.

    Attributes:
      values: of `lines`: each is drawn for each series.
      made: the marks of `rows`: `at` is the number of the row.
      draw: of `rows`: how the marks are drawn.
      axis: sets the axis of the values.
      level: draws a dashed line at this value: no difference, or a limit.
      extra: draws what only this figure has, after the axes are set.
    """

    title: str = ""
    x: str = ""
    values: Sequence[Curve] = ()
    made: Sequence[Mark] = ()
    draw: Callable[[Axes, Sequence[Mark]], object] = marks.dots
    axis: Axis | None = None
    level: float | None = None
    extra: Axis | None = None

    def finish(self, axes: Axes, *, along: str, x: str = "") -> None:
        if self.level is not None:
            marks.unity(axes, at=self.level, along=along)
        if self.axis is not None:
            self.axis(axes)
        entitle(axes, self.title, x=self.x or x)
        if self.extra is not None:
            self.extra(axes)


def lines(
    title: str, groups: Sequence[ArmGroup], at: Callable[[Row], float], panels: Sequence[Panel], *, x: str,
    axis: Axis = DOUBLING, handles: Sequence[Artist] = (), remarks: Sequence[str] = (),
) -> Figure:  # fmt: skip
    """Draws panels next to each other, with a line for each group of arms over `at(arm)`. x: the label of the axis."""
    sheet = Sheet(1, len(panels))
    for axes, panel in zip(sheet.panels[0], panels, strict=True):
        for value in panel.values:
            value, style = value if isinstance(value, tuple) else (value, {})
            places.line(axes, groups, at, value, **style)
        axis(axes)
        panel.finish(axes, along="y", x=x)
    return sheet.finish(title, [*places.handles(groups), *handles], remarks)


def rows(
    title: str, names: Sequence[str], panels: Sequence[Panel], *, abreast: int = 1, handles: Sequence[Artist] = (),
    remarks: Sequence[str] = (), **sizes: Any,
) -> Figure:  # fmt: skip
    """Draws panels that share the names of their rows. abreast: marks in a row. sizes: passed to `Sheet`."""
    sheet = Sheet(1, len(panels), **sizes)
    for number, (axes, panel) in enumerate(zip(sheet.panels[0], panels, strict=True)):
        panel.draw(axes, panel.made)
        panel.finish(axes, along="x")
        sheet.names(axes, names, abreast=abreast, shown=not number)
    return sheet.finish(title, handles, remarks)


def bars(show: Show = plain, *, thick: float = marks.THICK, room: float = 0.17) -> Callable[..., None]:
    """Draws horizontal bars on an axis that fits them: from 0, or logarithmic if short bars would vanish."""
    return lambda axes, made: marks.hbars(axes, made, thick=thick, start=bar_axis(axes, made, show=show, room=room))


def bars_from_zero(room: float, *, thick: float = marks.THICK, **settings: Any) -> Callable[..., None]:
    """Draws horizontal bars from 0. room: the axis's end over the longest bar."""

    def draw(axes: Axes, made: Sequence[Mark]) -> None:
        marks.hbars(axes, made, thick=thick)
        longest = max((mark.end for mark in made), default=0.0)
        zero_axis(axes, "x", longest, room=room, **{"max_ticks": 4, **settings})

    return draw
