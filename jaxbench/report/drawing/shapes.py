# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures as data: a `Chart` is a grid of panels, and a `Panel` lists what is drawn and how its axes are.

Two shapes are made from data: `lines` (values over x, a line per series) and `rows` (values by name). The first part
makes marks, labels and footnotes of arms. Each arm group of the run has its own style.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import ArmGroup, arms_of
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import Show, bar_axis, entitle, extent, log_axis, plain, reach, spread, zero_axis
from jaxbench.report.drawing.canvas import PANEL, Sheet, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate

P = ParamSpec("P")
Value = Callable[[Row], Estimate]
Curve = Value | tuple[Value, dict[str, Any]]  # with a style of `marks.line`
Layer = Callable[[Axes], object]  # draws something into a panel, or sets one of its axes

TEXT_ROOM = 0.17  # of an axis, for the text next to the last mark


def any_timed(groups: Sequence[ArmGroup]) -> bool:
    return any(arm.timing.step_s.known for arm in arms_of(groups))


def arm_labels(groups: Sequence[ArmGroup]) -> list[str]:
    """The labels of all arms without duplicates."""
    return list(dict.fromkeys(arm.label for arm in arms_of(groups)))


def arm_ticks(groups: Sequence[ArmGroup]) -> list[str]:
    """`arm_labels`, with the baseline marked."""
    base = {group.arms[0].label for group in groups}
    return [short(name, 26) + "\n(baseline)" * (name in base) for name in arm_labels(groups)]


def arm_remarks(groups: Sequence[ArmGroup], *, paired: bool = True) -> list[str]:
    """The footnotes of every figure of arms. paired: whether its ratios are over shared rounds."""
    arms = [arm for arm in arms_of(groups) if arm.timing.step_s.known]
    sentences = notes.of_times(arms, "per setting", of=", ratios over shared rounds" if paired else "")
    sentences += notes.of_states(arms)
    missing = [arm.label for arm in arms_of(groups) if not arm.timing.step_s.known]
    if missing:
        sentences.append(f"not measured: {', '.join(short(name, 30) for name in dict.fromkeys(missing))}")
    return sentences


def arm_handles(groups: Sequence[ArmGroup], *, bars: bool = False) -> list[Artist]:
    """A legend entry for each arm group; [] if there is only one."""
    make = marks.bar_handle if bars else marks.handle
    return [make(i, short(group.name)) for i, group in enumerate(groups)] if len(groups) > 1 else []


def arm_lines(groups: Sequence[ArmGroup], at: Callable[[Row], float], curve: Curve) -> list[Layer]:
    """A line for each arm group."""
    value, style = curve if isinstance(curve, tuple) else (curve, {})
    made = enumerate(marks.of(group.arms, at, value) for group in groups)
    return [on(marks.line, line, place=number, **style) for number, line in made]


def side_by_side(
    groups: Sequence[ArmGroup], names: Sequence[str], *, apart: float = 0.74
) -> Iterator[tuple[Row, int, float]]:
    """(arm, number of its group, its y) for each arm in `names`. apart: the share of a row's height that the groups
    fill."""
    for number, group in enumerate(groups):
        for arm in group.arms:
            if arm.label in names:
                yield arm, number, names.index(arm.label) + (number - (len(groups) - 1) / 2) * apart / len(groups)


def arm_marks(
    groups: Sequence[ArmGroup],
    value: Value,
    show: Callable[[Estimate], str],
    *,
    names: Sequence[str] = (),
    apart: float = 0.74,
) -> list[Mark]:
    """A mark for each arm with a known value, in the row of its label (those in `names`, or all)."""
    made = []
    for arm, number, at in side_by_side(groups, names or arm_labels(groups), apart=apart):
        mark = Mark(at=at, value=value(arm), style=number, state=marks.state(arm))
        if mark.value.known:
            made.append(replace(mark, text=show(mark.drawn)))  # as drawn: perhaps without its interval
    return made


def on(draw: Callable[Concatenate[Axes, P], object], *what: P.args, **how: P.kwargs) -> Layer:
    """`draw(axes, *what, **how)`, for the panel that it will be called with."""
    return lambda axes: draw(axes, *what, **how)


@dataclass(frozen=True)
class Log:
    """`log_axis`, to be applied after everything is drawn. Panels with the same word in `same` have the same ends."""

    which: str
    show: Show = plain
    base: int = 10
    max_ticks: int = 7
    span: Sequence[float] = ()
    min_span: float = 4
    same: str = ""

    def __call__(self, axes: Axes, ends: Sequence[float] = ()) -> None:
        """ends: of the data of all panels with the same axis."""
        log_axis(
            axes,
            self.which,
            show=self.show,
            base=self.base,
            max_ticks=self.max_ticks,
            span=[*self.span, *ends],
            min_span=self.min_span,
        )


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel."""

    title: str = ""
    x: str = ""  # the label of its axis
    y: str = ""
    layers: Sequence[Layer] = ()  # what is drawn, in this order
    axes: Sequence[Layer] = ()  # set after everything is drawn in all panels
    level: float | None = None  # a dashed line at this value: no difference, or a limit
    along: str = "x"  # the axis of `level`
    extra: Sequence[Layer] = ()  # what is drawn after the axes are set, because it depends on their ends
    names: Sequence[str] = ()  # of the rows of horizontal marks, the first on top
    abreast: int = 1  # marks in a row
    named: bool = True  # False: the panel to its left has the same names
    values: Sequence[Curve] = ()  # of `lines`: drawn for each group

    def finish(self, axes: Axes, ends: dict[tuple[str, str], list[float]]) -> None:
        """Sets the axes. ends: by axis and word, of the data of the panels with the same axis."""
        if self.level is not None:  # before the axes, which then include it
            marks.unity(axes, at=self.level, along=self.along)
        for axis in self.axes:
            if isinstance(axis, Log):
                axis(axes, ends.get((axis.which, axis.same), ()))
            else:
                axis(axes)
        entitle(axes, self.title, x=self.x, y=self.y)
        for layer in self.extra:
            layer(axes)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure as data.

    Attributes:
      panels: by row. None leaves a gap. A row with a single panel is as wide as the others.
      title: "": that of its plot.
      widths, heights: as of a `Sheet`.
      sharex, sharey: panels with one axis, as matplotlib names them.
      even: whether lines of the legend have about the same length.
    """

    panels: Sequence[Sequence[Panel | None]]
    title: str = ""
    handles: Sequence[Artist] = ()
    remarks: Sequence[str] = ()
    widths: Sequence[float] | None = None
    heights: float | Sequence[float] = PANEL
    sharex: bool | str = False
    sharey: bool | str = False
    even: bool = True

    def figure(self, title: str) -> Figure:
        across = max(map(len, self.panels))
        shared = {"sharex": self.sharex, "sharey": self.sharey}
        sheet = Sheet(len(self.panels), across, widths=self.widths, heights=self.heights, **shared)
        drawn: list[tuple[Axes, Panel]] = []
        for row, line in enumerate(self.panels):
            places = [sheet.join(row)] if len(line) == 1 < across else sheet.panels[row]
            for axes, panel in zip(places, line, strict=True):
                if panel is None:
                    axes.remove()
                else:
                    drawn.append((axes, panel))
        same: dict[tuple[str, str], list[Axes]] = {}
        for axes, panel in drawn:
            for layer in panel.layers:
                layer(axes)
            for axis in panel.axes:
                if isinstance(axis, Log) and axis.same:
                    same.setdefault((axis.which, axis.same), []).append(axes)
        ends = {key: extent(group, key[0]) for key, group in same.items()}
        for axes, panel in drawn:
            panel.finish(axes, ends)
            if panel.names:
                sheet.names(axes, panel.names, abreast=panel.abreast, shown=panel.named)
        return sheet.finish(title, self.handles, self.remarks, even=self.even)


def wrapped(panels: Sequence[Panel], across: int) -> list[list[Panel | None]]:
    """The panels in rows of at most `across`, with gaps in the last."""
    across = max(1, min(across, len(panels)))
    rows = [list[Panel | None](panels[start : start + across]) for start in range(0, len(panels), across)]
    return [[*row, *[None] * (across - len(row))] for row in rows]


def lines(
    groups: Sequence[ArmGroup],
    at: Callable[[Row], float],
    panels: Sequence[Panel],
    *,
    x: str,
    axis: Layer | None = None,
    handles: Sequence[Artist] = (),
    remarks: Sequence[str] = (),
) -> Chart:
    """Panels next to each other, with a line for each group of arms over `at(arm)`.

    x: the label of the axis. axis: sets it; None: powers of 2.
    """
    made = [
        replace(
            panel,
            layers=[layer for value in panel.values for layer in arm_lines(groups, at, value)],
            axes=[axis or Log("x", base=2), *panel.axes],
            along="y",
            x=panel.x or x,
        )
        for panel in panels
    ]
    return Chart(panels=[made], handles=[*arm_handles(groups), *handles], remarks=remarks)


def rows(
    names: Sequence[str],
    panels: Sequence[Panel],
    *,
    title: str = "",
    abreast: int = 1,
    handles: Sequence[Artist] = (),
    remarks: Sequence[str] = (),
    widths: Sequence[float] | None = None,
) -> Chart:
    """Panels that share the names of their rows, where `Mark.at` is the number of a row. abreast: marks in a row."""
    made = [replace(panel, names=names, abreast=abreast, named=not number) for number, panel in enumerate(panels)]
    return Chart(panels=[made], title=title, handles=handles, remarks=remarks, widths=widths)


def bars(axes: Axes, made: Sequence[Mark], *, show: Show, room: float = TEXT_ROOM) -> None:
    """Draws horizontal bars from 0, or dots on a logarithmic axis where short bars would vanish.

    room: for the text next to the longest, as a share of the axis.
    """
    if spread(made):
        marks.dots(axes, made)
        log_axis(axes, "x", show=show, max_ticks=8)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high * (high / low) ** room)
    else:
        marks.hbars(axes, made)
        bar_axis(axes, made, show=show, room=room)


def bars_from_zero(
    axes: Axes, made: Sequence[Mark], *, show: Show = plain, room: float, thick: float = marks.THICK, ticks: int = 4
) -> None:
    """Draws horizontal bars from 0. room: the axis's end over the longest bar. ticks: the most that it has."""
    marks.hbars(axes, made, thick=thick)
    zero_axis(axes, "x", reach(made), show=show, room=room, max_ticks=ticks)
