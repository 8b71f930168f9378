# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Measures whether a figure can be read without its page: overlaps, nameless series, clamped marks, empty panels.

`faults` needs a figure that `canvas.lay_out` has laid out. `benchmarks.figures` runs it over every committed figure, at
the width of a page and of a column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from jaxbench.report.drawing import contents
from jaxbench.report.drawing.marks import GREY, PALE

LEAST_PT = 6.0  # letters smaller than this cannot be read in print
MOST_SERIES = 6  # series in the legend of one figure
PAGE_IN = 9.5  # a taller figure does not fit on a page with its caption
CLAMPED = 3  # more marks than this at one extreme value look like a limit of the axis
HOUSE_WORDS = re.compile(
    r"\b(session\d*|worker sets?|dense rounds?|gate|headline|A/A|folds?|arm|arms)\b|\b(?=[0-9]*[a-f])[0-9a-f]{7,}\b"
    r"|\w/(strong|weak)/\d|holds here|cannot tell"
)
KINDS = (
    "text over text",
    "text cut off",
    "text below 6 pt",
    "series without a name",
    "too many series",
    "marks at a limit",
    "panel without data",
    "bars without a zero",
    "axis without a name",
    "house words",
    "taller than a page",
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One reason why a figure is not fit. kind: one of `KINDS`."""

    kind: str
    what: str


def faults(figure: Figure) -> list[Fault]:
    """Every fault of a figure that was laid out, in the order of `KINDS`."""
    found = [
        *(Fault(kind="text over text", what=f"{one!r} and {other!r}") for one, other in overlaps(figure)),
        *(Fault(kind="text cut off", what=text) for text in cut(figure)),
        *(Fault(kind="text below 6 pt", what=text.get_text()) for text in shown(figure) if _is_too_small(text)),
        *_nameless(figure),
        *_too_many_series(figure),
        *(Fault(kind="house words", what=word) for word in house_words(figure)),
    ]
    for axes in contents.visible_panels(figure):
        found += _of_panel(axes)
    if figure.get_figheight() > PAGE_IN:
        found.append(Fault(kind="taller than a page", what=f"{figure.get_figheight():.1f} in"))
    return sorted(found, key=lambda fault: KINDS.index(fault.kind))


def shown(figure: Figure) -> list[Text]:
    """The visible texts."""
    ticks: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            every = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            off = [tick for tick in every if not low <= tick.get_loc() <= high or not axes.axison]
            ticks |= {label for tick in off for label in (tick.label1, tick.label2)}
    return [
        text
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible() and text not in ticks and not _hidden(text)
    ]


def _hidden(text: Text) -> bool:
    """Whether the panel or the axis side of a text is hidden."""
    axes = text.axes
    if axes is None:
        return False
    if not axes.get_visible():
        return True
    sides = {"bottom": axes.xaxis, "left": axes.yaxis}
    for side, axis in sides.items():
        labels = {tick.label1 for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]}
        if text in labels and not (axes.axison and axis.get_tick_params().get(f"label{side}", True)):
            return True
    return False


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Each text with its position, except texts rotated along a line."""
    level = [text for text in shown(figure) if text.get_rotation() in (0.0, 90.0)]
    return [(text.get_text(), Text.get_window_extent(text)) for text in level]


def overlaps(figure: Figure, slack: float = 1.5) -> list[tuple[str, str]]:
    """Pairs of texts that are printed over each other by more than `slack` pixels in both directions."""
    every = boxes(figure)
    return [
        (text, other)
        for number, (text, box) in enumerate(every)
        for other, second in every[number + 1 :]
        if min(box.x1, second.x1) - max(box.x0, second.x0) > slack
        and min(box.y1, second.y1) - max(box.y0, second.y0) > slack
    ]


def cut(figure: Figure, slack: float = 2.0) -> list[str]:
    """Texts that reach beyond the figure by more than `slack` pixels."""
    frame = figure.bbox
    return [
        text
        for text, box in boxes(figure)
        if box.x0 < -slack or box.y0 < -slack or box.x1 > frame.x1 + slack or box.y1 > frame.y1 + slack
    ]


def _is_too_small(text: Text) -> bool:
    return float(text.get_fontsize()) < LEAST_PT


def house_words(figure: Figure) -> list[str]:
    """Words of this project that a reader from outside does not know, once each."""
    said = "\n".join(text.get_text() for text in shown(figure))
    return list(dict.fromkeys(match[0] for match in HOUSE_WORDS.finditer(said)))


Style = tuple[str, str]  # a series as a reader tells it: its colour and its marker


def _colour_and_marker(line: Line2D) -> Style:
    return str(line.get_color()), str(line.get_marker())


def series(figure: Figure) -> set[Style]:
    """The styles of the measured marks: not of published ones, which are grey, nor of crosses."""
    lines = (line for axes in contents.visible_panels(figure) for line in contents.data_lines(axes))
    styles = map(_colour_and_marker, lines)
    return {
        (colour, marker)
        for colour, marker in styles
        if marker not in ("None", "", " ", "x", "|") and colour not in (PALE, GREY)
    }


def _legend_handles(figure: Figure) -> list[Line2D | Patch]:
    every = (handle for legend in figure.legends for handle in legend.legend_handles)
    return [handle for handle in every if isinstance(handle, (Line2D, Patch))]


def _nameless(figure: Figure) -> Iterator[Fault]:
    """Series that are told apart by their style alone, without an entry in the legend or a name at their row."""
    found = {style for axes in contents.visible_panels(figure) for style in _unnamed_styles(axes)}
    named = {_colour_and_marker(handle) for handle in _legend_handles(figure) if isinstance(handle, Line2D)}
    every = series(figure)
    if len(every) > 1:
        for colour, marker in sorted(style for style in found if not _is_named(style, named, every)):
            yield Fault(kind="series without a name", what=f"colour {colour}, marker {marker}")


def _is_named(style: Style, named: set[Style], every: set[Style]) -> bool:
    """Whether the legend names a style: as it is, or its marker in black and its colour in another entry.

    A single colour needs no entry.
    """
    colour, marker = style
    of_colour = len({each for each, _ in every}) == 1 or colour in {each for each, _ in named}
    return style in named or (of_colour and ("black", marker) in named)


def _unnamed_styles(axes: Axes) -> set[Style]:
    """The styles of a panel; none if its rows have names, or its marks bear texts."""
    if _named_rows(axes) or any(text.get_text().strip() for text in axes.texts):
        return set()
    styles = {_colour_and_marker(line) for line in contents.data_lines(axes)}
    return {(c, m) for c, m in styles if m not in ("None", "", " ", "x", "|") and c not in (PALE, GREY)}


def _named_rows(axes: Axes) -> bool:
    """Whether the ticks along y are names and not numbers."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return any(re.search(r"[^\W\d]{3}", label) for label in labels)


def _too_many_series(figure: Figure) -> Iterator[Fault]:
    measured = [handle for handle in _legend_handles(figure) if not (isinstance(handle, Line2D) and _is_guide(handle))]
    if len(measured) > MOST_SERIES:
        yield Fault(kind="too many series", what=f"{len(measured)} entries in the legend")


def _is_guide(handle: Line2D) -> bool:
    return handle.is_dashed() and handle.get_color() in ("black", PALE, GREY)  # with hollow marks: published


def _of_panel(axes: Axes) -> Iterator[Fault]:
    name = axes.get_title(loc="left") or axes.get_ylabel() or axes.get_xlabel()
    if not contents.has_data(axes):
        yield Fault(kind="panel without data", what=name)
        return
    for which in ("x", "y"):
        if clamped(axes, which):
            yield Fault(kind="marks at a limit", what=f"{name}: along {which}")
        if getattr(axes, f"get_{which}scale")() == "log" and _bars_along(axes, which):
            yield Fault(kind="bars without a zero", what=name)
    if not (axes.get_title(loc="left") or axes.get_ylabel() or axes.get_xlabel() or _named_rows(axes)):
        yield Fault(kind="axis without a name", what="a panel")


def clamped(axes: Axes, which: str) -> bool:
    """Whether marks lie beyond an axis, or several lie at one extreme value of a continuous axis of values."""
    column = "xy".index(which)
    marked = [line for line in contents.data_lines(axes) if line.get_marker() not in ("", "None", None, " ", "x")]
    if not marked:
        return False
    lines = [np.asarray(line.get_xydata(), dtype=float)[:, column] for line in marked]
    lines = [values[np.isfinite(values)] for values in lines]
    found = np.concatenate(lines)
    low, high = sorted(getattr(axes, f"get_{which}lim")())
    slack = 1e-6 * (high - low)
    if ((found < low - slack) | (found > high + slack)).any():
        return True
    if getattr(axes, f"get_{which}scale")() != "log" or not (which == "x" and _named_rows(axes)):
        return False  # on other axes, many marks share a position
    # A constant series and the common base of several are no clamp: each line counts once, and ratios of 1 not at all.
    ends = Counter(float(value) for values in lines for value in {*values} if value not in (1.0, 100.0))
    different = len(set(found.tolist()))
    at_end = max(ends[float(found.min())], ends[float(found.max())])
    return different > len(found) / 2 and at_end > max(CLAMPED, len(found) / 5)


def _bars_along(axes: Axes, which: str) -> bool:
    """Whether the lengths of bars lie along x or y: bars of one thickness, and several."""
    bars: Iterable[Rectangle] = (each for each in axes.patches if isinstance(each, Rectangle))
    sizes = [(bar.get_width(), bar.get_height()) for bar in bars if contents.in_data(bar)]
    return len(sizes) > 1 and len({round(size["yx".index(which)], 9) for size in sizes}) == 1
