# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of two known shapes from data: `lines` (values over x, a line per series) and `rows` (values by name).

The first part makes marks, labels and footnotes of arms. Each arm group of the run has its own style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import ArmGroup, arms_of
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import Show, bar_axis, entitle, log_axis, plain, reach, spread, zero_axis
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate

TEXT_ROOM = 0.17  # of an axis, for the text next to the last mark


def any_timed(places: Sequence[ArmGroup]) -> bool:
    return any(arm.timing.step_s.known for arm in arms_of(places))


def arm_labels(places: Sequence[ArmGroup]) -> list[str]:
    """The labels of all arms without duplicates."""
    return list(dict.fromkeys(arm.label for arm in arms_of(places)))


def arm_ticks(places: Sequence[ArmGroup]) -> list[str]:
    """`arm_labels`, with the baseline marked."""
    base = {place.arms[0].label for place in places}
    return [short(name, 26) + "\n(baseline)" * (name in base) for name in arm_labels(places)]


def arm_remarks(places: Sequence[ArmGroup], *, paired: bool = True) -> list[str]:
    """The footnotes of every figure of arms. paired: whether its ratios are over shared rounds."""
    arms = [arm for arm in arms_of(places) if arm.timing.step_s.known]
    sentences = notes.of_times(arms, "per setting", of=", ratios over shared rounds" if paired else "")
    sentences += notes.of_states(arms)
    missing = [arm.label for arm in arms_of(places) if not arm.timing.step_s.known]
    if missing:
        sentences.append(f"not measured: {', '.join(short(name, 30) for name in dict.fromkeys(missing))}")
    return sentences


def arm_handles(places: Sequence[ArmGroup], *, bars: bool = False) -> list[Artist]:
    """A legend entry for each arm group; [] if there is only one."""
    make = marks.bar_handle if bars else marks.handle
    return [make(i, short(place.name)) for i, place in enumerate(places)] if len(places) > 1 else []


def arm_line(axes: Axes, places: Sequence[ArmGroup], at: Callable[[Row], float], value: Value, **style: Any) -> None:
    """Draws a line for each arm group. style: passed to `marks.line`."""
    for number, place in enumerate(places):
        marks.line(axes, marks.of(place.arms, at, value), place=number, **style)


def side_by_side(
    places: Sequence[ArmGroup], names: Sequence[str], *, apart: float = 0.74
) -> Iterator[tuple[Row, int, float]]:
    """(arm, number of its group, its y) for each arm in `names`. apart: the share of a row's height that the groups
    fill."""
    for number, place in enumerate(places):
        for arm in place.arms:
            if arm.label in names:
                yield arm, number, names.index(arm.label) + (number - (len(places) - 1) / 2) * apart / len(places)


def arm_marks(
    places: Sequence[ArmGroup],
    value: Value,
    show: Callable[[Estimate], str],
    *,
    names: Sequence[str] = (),
    apart: float = 0.74,
) -> list[Mark]:
    """A mark for each arm with a known value, in the row of its label (those in `names`, or all)."""
    made = []
    for arm, number, at in side_by_side(places, names or arm_labels(places), apart=apart):
        mark = Mark(at=at, value=value(arm), style=number, state=marks.state(arm))
        if mark.value.known:
            made.append(replace(mark, text=show(mark.drawn)))  # as drawn: perhaps without its interval
    return made


Value = Callable[[Row], Estimate]
Curve = Value | tuple[Value, dict[str, Any]]  # with a style of `marks.line`
Axis = Callable[[Axes], object]


def log(which: str, show: Show = plain, **settings: Any) -> Axis:
    """`log_axis`, to be applied after everything is drawn."""
    return lambda axes: log_axis(axes, which, show=show, **settings)


DOUBLING = log("x", base=2)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel of `lines` or `rows`."""

    title: str = ""
    x: str = ""
    values: Sequence[Curve] = ()  # of `lines`: each is drawn for each series
    made: Sequence[Mark] = ()  # of `rows`: `at` is the number of the row
    draw: Callable[[Axes, Sequence[Mark]], object] = marks.dots  # of `rows`: how the marks are drawn
    axis: Axis | None = None  # sets the axis of the values
    level: float | None = None  # a dashed line at this value: no difference, or a limit
    extra: Axis | None = None  # draws what only this figure has, after the axes are set

    def finish(self, axes: Axes, *, along: str, x: str = "") -> None:
        if self.level is not None:  # before the axis, which then includes it
            marks.unity(axes, at=self.level, along=along)
        if self.axis is not None:
            self.axis(axes)
        entitle(axes, self.title, x=self.x or x)
        if self.extra is not None:
            self.extra(axes)


def lines(
    title: str,
    groups: Sequence[ArmGroup],
    at: Callable[[Row], float],
    panels: Sequence[Panel],
    *,
    x: str,
    axis: Axis = DOUBLING,
    handles: Sequence[Artist] = (),
    remarks: Sequence[str] = (),
) -> Figure:
    """Draws panels next to each other, with a line for each group of arms over `at(arm)`. x: the label of the axis."""
    sheet = Sheet(1, len(panels))
    for axes, panel in zip(sheet.panels[0], panels, strict=True):
        for value in panel.values:
            value, style = value if isinstance(value, tuple) else (value, {})
            arm_line(axes, groups, at, value, **style)
        axis(axes)
        panel.finish(axes, along="y", x=x)
    return sheet.finish(title, [*arm_handles(groups), *handles], remarks)


def rows(
    title: str,
    names: Sequence[str],
    panels: Sequence[Panel],
    *,
    abreast: int = 1,
    handles: Sequence[Artist] = (),
    remarks: Sequence[str] = (),
    **sizes: Any,
) -> Figure:
    """Draws panels that share the names of their rows. abreast: marks in a row. sizes: passed to `Sheet`."""
    sheet = Sheet(1, len(panels), **sizes)
    for number, (axes, panel) in enumerate(zip(sheet.panels[0], panels, strict=True)):
        panel.draw(axes, panel.made)
        panel.finish(axes, along="x")
        sheet.names(axes, names, abreast=abreast, shown=not number)
    return sheet.finish(title, handles, remarks)


def bars(show: Show, room: float = TEXT_ROOM) -> Callable[..., None]:
    """Draws horizontal bars from 0, or dots on a logarithmic axis where short bars would vanish.

    room: for the text next to the longest, as a share of the axis.
    """

    def draw(axes: Axes, made: Sequence[Mark]) -> None:
        if spread(made):
            marks.dots(axes, made)
            log_axis(axes, "x", show=show, max_ticks=8)
            low, high = axes.get_xlim()
            axes.set_xlim(low, high * (high / low) ** room)
        else:
            marks.hbars(axes, made)
            bar_axis(axes, made, show=show, room=room)

    return draw


def bars_from_zero(room: float, *, thick: float) -> Callable[..., None]:
    """Draws horizontal bars from 0. room: the axis's end over the longest bar."""

    def draw(axes: Axes, made: Sequence[Mark]) -> None:
        marks.hbars(axes, made, thick=thick)
        zero_axis(axes, "x", reach(made), room=room, max_ticks=4)

    return draw
