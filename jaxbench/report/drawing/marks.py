# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The marks of the figures: lines with intervals, bars, stacks, dots, and published results.

Filled: measured on at most as many devices as cores. Hollow: oversubscribed, so its time is meaningless and it has no
interval. Crosses are on no line: large and black failed its checks, small and grey was refused by a gate. Hollow and
dotted grey: published by others. Dashed black without marks: the ideal, a formula, or a limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.typing import LineStyleType
from numpy.typing import ArrayLike

from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import canvas
from jaxbench.statistics.bootstrap import Estimate

Style = dict[str, Any]  # keyword arguments of matplotlib, which differ by function

# Okabe and Ito's palette without its yellow, which is too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")  # bars have hatches instead of markers
_LIGHT = ("#9ecae1", "#fdbe85", "#a1d9b4", "#e7b8d3", "#c6e5f5", "#f5d391", "#bdbdbd")  # COLOURS, lighter for hatches
GREY, PALE = "#6b6b6b", "#8a8a8a"  # PALE: published by others, or refused
DASHES: Style = dict(color="black", linewidth=0.8, linestyle=(0, (6, 1.5)))  # a reference: ideal, limit, no difference
FORMULAS: tuple[LineStyleType, ...] = (  # several at once, in black: only their dashes tell them apart
    (0, (6, 1.5)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1.5)),
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
)
DASHED: LineStyleType = (0, (3, 1.5))  # a second line of the same series
HOLLOW: Style = dict(markersize=3.3, markerfacecolor="white", markeredgecolor=PALE, markeredgewidth=0.7)
PUBLISHED: Style = {**HOLLOW, "color": PALE, "linewidth": 1.0, "linestyle": ":"}
UNTOLD: Style = dict(facecolor="white", edgecolor=PALE, linewidth=0.7, linestyle=(0, (2, 1.5)))  # a part of a bar
THICK = 0.72  # the height of a bar; rows are 1 apart
_ERROR: Style = dict(elinewidth=0.8, capsize=1.8, capthick=0.8)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One number of a figure."""

    at: float  # its position: the size, the devices, or the row
    value: Estimate
    state: str = "solid"  # solid | hollow | wrong | refused
    style: int = 0  # number of its colour with marker or hatch, if it is not part of a line
    text: str = ""  # written next to it
    n: tuple[int, ...] = ()  # the sample sizes behind its interval: (blocks, rounds, processes), or (seeds,)

    @property
    def drawn(self) -> Estimate:
        """The value as drawn: oversubscribed marks have no interval."""
        return self.value if self.state == "solid" else self.value.alone()

    @property
    def end(self) -> float:
        """The upper end of the mark, including its interval."""
        return self.drawn.hi if self.drawn.has_interval else self.value.value

    @property
    def believed(self) -> bool:
        return self.state in ("solid", "hollow")


def exact(value: float) -> Estimate:
    """A number without noise, such as a count by the compiler."""
    return Estimate(value=value)


def state(row: Row, *, exact: bool = False) -> str:
    """The state with which a row is drawn. exact: its number does not depend on speed, so it is never hollow."""
    if row.wrong:  # first: whether a wrong result was also too fast does not matter
        return "wrong"
    if row.gate == "refused":
        return "refused"
    return "hollow" if row.point.oversubscribed and not exact else "solid"


def of(
    rows: Sequence[Row],
    at: Callable[[Row], float],
    value: Callable[[Row], Estimate],
    *,
    exact: bool = False,
    scale: float = 1,
) -> list[Mark]:
    """One mark for each row with a known value, sorted by `at`. scale: multiplies the value."""
    made = [Mark(at=at(row), value=value(row).times(scale), state=state(row, exact=exact), n=n_of(row)) for row in rows]
    return sorted((mark for mark in made if mark.value.known and math.isfinite(mark.at)), key=lambda mark: mark.at)


def n_of(row: Row) -> tuple[int, int, int]:
    """The sample sizes behind the interval of a row: (blocks, rounds, processes)."""
    return row.timing.samples, row.timing.rounds, row.timing.processes


def series_style(place: int) -> tuple[str, str]:
    """(colour, marker) of series number `place`. The first 49 differ."""
    # Each turn through the colours shifts the markers by one, so that seven times seven pairs differ.
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def dodge(place: int, count: int) -> float:
    """A factor of x that shifts series of equal values slightly apart, so that all stay visible."""
    # A factor and not a distance, because the axis is logarithmic. All series stay within a quarter of an octave.
    return float(2 ** ((place - (count - 1) / 2) * min(0.08, 0.24 / count)))


def line(axes: Axes, marks: Sequence[Mark], *, place: int, between: LineStyleType = "-", shape: str = "") -> None:
    """Draws a line through the valid marks, with their intervals. place: the number of the series, for its style.

    between: the line style. shape: overrides the marker.
    """
    colour, marker = series_style(place)
    good = list(_believed(axes, marks, upright=True))
    if good:
        axes.plot([m.at for m in good], [m.value.value for m in good], color=colour, linestyle=between, zorder=2)
    style: Style = dict(color=colour, marker=shape or marker, linestyle="none")
    solid, hollow = ([mark for mark in good if mark.state == name] for name in ("solid", "hollow"))
    if solid:
        ends = np.array([_reach(mark) for mark in solid]).T
        axes.errorbar([m.at for m in solid], [m.value.value for m in solid], yerr=ends, **style, **_ERROR, zorder=3)
    if hollow:
        white: Style = dict(markerfacecolor="white", markeredgewidth=0.9)
        axes.plot([m.at for m in hollow], [m.value.value for m in hollow], **style, **white, zorder=4)


def _believed(axes: Axes, marks: Sequence[Mark], *, upright: bool = False) -> Iterator[Mark]:
    """The valid marks. Draws crosses for the others. upright: whether values are along y."""
    for mark in marks:
        if mark.believed:
            yield mark
            continue
        x, y = (mark.at, mark.value.value) if upright else (mark.value.value, mark.at)
        cross(axes, x, y, refused=mark.state == "refused")


def dots(axes: Axes, marks: Sequence[Mark]) -> None:
    """Draws a point in each row with a horizontal interval, for values with a meaningless distance from 0."""
    for mark in _believed(axes, marks):
        colour, marker = series_style(mark.style)
        face = "white" if mark.state == "hollow" else colour  # white and not "none": lines behind would show
        axes.errorbar(
            [mark.value.value],
            [mark.at],
            xerr=_reach(mark, column=True),
            color=colour,
            marker=marker,
            linestyle="none",
            markerfacecolor=face,
            markeredgewidth=0.9,
            zorder=3,
            **_ERROR,
        )
        write(axes, mark.end, mark.at, mark.text)


def hbars(axes: Axes, marks: Sequence[Mark], *, thick: float = THICK) -> None:
    """Draws horizontal bars from 0 with intervals, and texts to the right of both."""
    for mark in marks:
        if mark.state == "refused":
            write(axes, mark.value.value, mark.at, f"{mark.text}  refused")
    for mark in _believed(axes, marks):
        axes.barh(
            [mark.at],
            [mark.value.value],
            height=thick,
            xerr=_reach(mark, column=True),
            error_kw={"ecolor": "black", **_ERROR},
            **bar_style(mark.style, hollow=mark.state == "hollow"),
        )
        write(axes, max(0.0, mark.end), mark.at, mark.text)


def vbars(axes: Axes, marks: Sequence[Mark], *, thick: float = THICK) -> None:
    """Draws vertical bars from 0 with intervals, and texts above both."""
    for mark in _believed(axes, marks, upright=True):
        axes.bar(
            [mark.at],
            [mark.value.value],
            width=thick,
            yerr=_reach(mark, column=True),
            error_kw={"ecolor": "black", **_ERROR},
            **bar_style(mark.style, hollow=mark.state == "hollow"),
        )
        write(axes, mark.at, mark.end, mark.text, above=True)


def stack(
    axes: Axes,
    at: float,
    parts: Sequence[tuple[float, int | None]],
    *,
    thick: float = THICK,
    hollow: bool = False,
    upright: bool = False,
) -> float:
    """Draws a bar of (size, style) parts, horizontal or `upright`. Returns where it ends. style None: inconclusive."""
    end = 0.0
    for size, place in parts:
        style = UNTOLD if place is None else bar_style(place, hollow=hollow)
        if upright:
            axes.bar([at], [size], bottom=end, width=thick, **style)
        else:
            axes.barh([at], [size], left=end, height=thick, **style)
        end += size
    return end


def _reach(mark: Mark, *, column: bool = False) -> Any:
    """The lengths of the interval below and above the value in matplotlib's form for error bars; without an interval 0,
    or None for `column`."""
    value = mark.drawn
    if not value.has_interval:
        return None if column else (0.0, 0.0)
    # An interval from a bootstrap may lie beyond the value, and matplotlib refuses negative lengths.
    ends = max(0.0, value.value - value.lo), max(0.0, value.hi - value.value)
    return [[ends[0]], [ends[1]]] if column else ends


def cross(axes: Axes, x: float, y: float, *, refused: bool = False) -> None:
    size, colour = (3.5, PALE) if refused else (8, "black")
    axes.plot([x], [y], linestyle="none", marker="x", markersize=size, color=colour, markeredgewidth=0.9, zorder=5)


def write(axes: Axes, x: float, y: float, text: str, *, above: bool = False, size: float = 6.5, **style: Any) -> None:
    """Writes a text to the right of its mark, or above it. The canvas moves it if something is in the way."""
    if not text:
        return
    place: Style = dict(xytext=(0, 2), ha="center", va="bottom") if above else dict(xytext=(4, 0), va="center")
    place |= style
    written = axes.annotate(text, (x, y), textcoords="offset points", fontsize=size, **place)
    written.set_in_layout(False)  # or the panel would shrink to make room for a text that is moved later
    written.set_label(canvas.MOVABLE)


def write_at_right(axes: Axes, y: float, text: str, *, right: float = 5, **style: Any) -> None:
    """Writes a text to the right of the panel in the row at y. right: the distance in points."""
    axes.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(right, 0),
        textcoords="offset points",
        va="center",
        fontsize=6.5,
        **style,
    )


def boundary(axes: Axes, x: float, text: str, *, y: float, **style: Any) -> None:
    """Draws a dotted vertical line behind the data, with a text to its right. y: the text's height, as a share of the
    panel's."""
    axes.axvline(x, color=GREY, linewidth=0.7, linestyle=(0, (1, 1.2)), zorder=1)
    write(axes, x, y, text, size=6.3, xycoords=("data", "axes fraction"), xytext=(2, 0), **style)


def unity(axes: Axes, *, at: float = 1.0, along: str = "x") -> None:
    """Draws a dashed line of no difference, or of a limit, at one value `along` an axis."""
    (axes.axvline if along == "x" else axes.axhline)(at, **DASHES, zorder=1)


def guide(axes: Axes, x: ArrayLike, y: ArrayLike, *, label: str = "_guide", number: int = 0) -> Line2D:
    """Draws a dashed line of ideal values, or of a formula. number: selects the dashes if several lines must differ."""
    (drawn,) = axes.plot(x, y, **DASHES | {"linestyle": FORMULAS[number % len(FORMULAS)]}, label=label, zorder=1)
    return drawn


def published(
    axes: Axes, x: ArrayLike, y: ArrayLike, *, shape: str, joined: bool = True, label: str = "_published"
) -> Line2D:
    """Draws a published series: hollow grey markers, joined by a dotted line if `joined`."""
    style = PUBLISHED if joined else {**PUBLISHED, "linestyle": "none"}
    (drawn,) = axes.plot(x, y, marker=shape, zorder=1.5, label=label, **style)
    return drawn


def published_bars(axes: Axes, entries: Sequence[tuple[float, float, str]]) -> None:
    """Draws hollow dotted bars of published values: (place, value, text)."""
    style: Style = dict(facecolor="white", edgecolor=PALE, linewidth=0.9, linestyle=":")
    for at, value, text in entries:
        axes.barh([at], [value], height=0.62, zorder=2, **style)
        write(axes, max(value, 0.0), at, text)


def end_labels(axes: Axes, lines: Sequence[Line2D], *, reach: float = 1.45, size: float = 6.0) -> None:
    """Writes a name to the right of each line's last point, with a thin line to it. The canvas spreads close names.

    reach: the x of a name over the x of its point. size: of the letters in points.
    """
    for line in lines:
        x, value = np.asarray(line.get_xydata())[-1]
        axes.annotate(
            str(line.get_label()),
            (x, value),
            xytext=(x * reach, value),
            textcoords="data",
            fontsize=size,
            color="#444444",
            va="center",
            annotation_clip=False,
            zorder=0,
            arrowprops=dict(arrowstyle="-", color=PALE, linewidth=0.4, shrinkA=0, shrinkB=2, relpos=(0, 0.5)),
        ).set_label(canvas.SPREAD)


def bar_style(place: int, *, hollow: bool = False) -> Style:
    """The style of a bar: a light fill with a hatch in the colour of its outline."""
    face = "white" if hollow else _LIGHT[place % len(_LIGHT)]
    edge, hatch = COLOURS[place % len(COLOURS)], HATCHES[place % len(HATCHES)]
    return dict(facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0.8)  # matplotlib hatches in the edge's colour


def bar_handle(place: int, label: str, *, hollow: bool = False) -> Patch:
    """The legend entry of the bars at `place`."""
    return Patch(label=label, **bar_style(place, hollow=hollow))


def handle(place: int, label: str, *, between: LineStyleType = "-") -> Line2D:
    """The legend entry of the series at `place`."""
    colour, marker = series_style(place)
    return Line2D([], [], color=colour, marker=marker, linestyle=between, label=label)


def style_handle(label: str, **style: Any) -> Line2D:
    """The legend entry of a line style or marker that series of several colours share."""
    return Line2D([], [], label=label, **{"color": "black", **style})


def published_handle(shape: str, label: str) -> Line2D:
    return Line2D([], [], marker=shape, label=label, **PUBLISHED)


def guide_handle(label: str, **more: Any) -> Line2D:
    """The legend entry of a `guide`. more: the marker's style, if published values are on the line."""
    return Line2D([], [], label=label, **DASHES, **more)
