# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The canvas of every figure: SVG, PNG and PDF, 7 inches wide by default. The bytes depend only on the data.

Figures must work in black and white: a series has a marker and a colour (Okabe and Ito's palette, which colour-blind
readers can distinguish), and a bar has a hatch. `marks` defines filled, hollow, dashed and crossed-out marks.
Labels get their positions last, once the layout is known: next to their marks, without overlap, inside the figure.

A figure is a `Plot`: a name, a caption, the runs that it is for, and a function that draws it, or that returns it as
data (`shapes.Chart`).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import itertools
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.path import Path as Outline
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import Bbox, BboxBase

from jaxbench.core.store import write_atomic
from jaxbench.errors import of_kind
from jaxbench.report.drawing import contents
from jaxbench.report.drawing.notes import display
from jaxbench.texts import visible

FORMATS = ("svg", "pdf", "png")
DPI = 200  # of the PNG
PANEL = 2.0  # height of a panel of lines in inches, including its title and labels
FULL_IN = 7.0  # the width of a page in inches
PHONE_IN = 3.6  # the width of a figure that is shown 390 pixels wide
PHONE_PANEL = 1.6  # height of a panel there: three of them leave room for the result on its first screen
STACKED_IN = 5.0  # figures narrower than this have all panels below each other
NO_TITLE = "none"
EMPTY = "_empty"  # the label of a figure without data
LEAVING = "an error bar that reaches the end of an axis goes on beyond it; the table has its ends"
_TITLE, _NAME, _LEGEND, _NOTE = 84, 48, 110, 150  # letters in 7 inches: a title, a name, the legend, a footnote line
# DejaVu Sans comes with matplotlib, so figures look the same everywhere. Math is off, because ids may contain "$".
# Texts are paths in an SVG, for readers without the font, and TrueType (42) in a PDF, where they can be searched.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "#d9d9d9",
    "axes.axisbelow": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "jaxbench",
    "pdf.fonttype": 42,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "text.parse_math": False,
    "figure.dpi": 100,
}
_METADATA: Any = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": "jaxbench", "Producer": None},
    "png": {"Software": None},
}
MOVABLE, SPREAD = "_movable", "_spread"  # marks texts that `move_texts` may move: around their mark, or up and down
_SIDES: dict[str, int] = {"left": -1, "center": 0, "right": 1, "top": -1, "bottom": 1}
_AROUND = (  # (horizontal, vertical) alignment in order of preference; the offset is away from the mark
    ("left", "center"),
    ("center", "bottom"),
    ("center", "top"),
    ("right", "center"),
    ("left", "bottom"),
    ("left", "top"),
    ("right", "bottom"),
    ("right", "top"),
)
_OFFSETS = (4.0, 9.0, 16.0)  # points between a mark and its label
# The costs of a position's faults. A cut label is worse than all others together; two crossed lines cost more than a
# place outside the panel.
_CUT, _ON_TEXT, _OUTSIDE, _CROSSED = 100, 10, 4, 3


@dataclass(frozen=True)
class Look:
    """The user's settings for all figures of a run."""

    width_in: float = FULL_IN
    title: str = ""  # replaces the experiment's name in titles; "" keeps it


PLAIN = Look()
# A context and not an argument: `Sheet` needs it, and every function that draws would have to pass it on.
_LOOK: ContextVar[Look] = ContextVar("look", default=PLAIN)


def look_of(config: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> Look:
    """The look in a run's config, or in `asked` if given. Runs older than these settings have the defaults."""
    found = asked if asked is not None else config.get("report")
    section = found if isinstance(found, Mapping) else {}
    return Look(float(section.get("width_in", FULL_IN)), str(section.get("title") or ""))


def render(make: Callable[[], Figure | None], look: Look | None = None) -> dict[str, bytes]:
    """Calls `make` with the style applied, and returns the bytes of its figure by suffix; {} if it draws nothing.

    The bytes depend only on the figure: there are no dates and no random ids.
    """
    files: dict[str, bytes] = {}
    with style(look):
        figure = make()
        if figure is None or is_empty(figure):
            return files
        lay_out(figure)
        for suffix in FORMATS:
            figure.savefig(buffer := io.BytesIO(), format=suffix, dpi=DPI, metadata=_METADATA[suffix])
            files[suffix] = buffer.getvalue()
    return files


def for_phone(make: Callable[[], Figure | None], look: Look | None = None) -> bytes:
    """The SVG of the same figure with its panels below each other, PHONE_IN wide; b"" if it draws nothing."""
    with style(dataclasses.replace(look or PLAIN, width_in=PHONE_IN)):
        figure = make()
        if figure is None or is_empty(figure):
            return b""
        lay_out(figure)
        figure.savefig(buffer := io.BytesIO(), format="svg", metadata=_METADATA["svg"])
        return buffer.getvalue()


def is_empty(figure: Figure) -> bool:
    """Whether no panel of a finished figure has data, so that words say more than an empty frame."""
    return figure.get_label() == EMPTY


def lay_out(figure: Figure) -> None:
    """Computes the layout, once for all formats, and then the positions of labels. Call it inside `style`."""
    for text in figure.findobj(Text):
        if (shown := visible(text.get_text())) != text.get_text():  # of a name from a foreign file
            text.set_text(shown)
    figure.draw_without_rendering()  # texts have no size before
    figure.set_layout_engine("none")  # keeps the layout just computed: each format would compute it again
    for axes in figure.axes:
        # The last bits of the layout differ from process to process, and ids of clip paths are hashes of positions.
        axes.set_position(Bbox(np.round(axes.get_position().get_points(), 9)))
        axes.set_in_layout(True)  # which that ends: a user may save the figure with a tight box
    move_texts(figure)


def write(files: dict[str, bytes], folder: Path, name: str) -> None:
    """Writes ``<name>.svg``, ``.pdf`` and ``.png`` into `folder`, or removes old ones if `files` is {}."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in FORMATS:
        path = folder / f"{name}.{suffix}"
        if suffix in files:
            write_atomic(path, files[suffix])
        else:
            path.unlink(missing_ok=True)


@contextmanager
def style(look: Look | None = None) -> Iterator[None]:
    """A context with the figures' settings instead of the user's matplotlibrc."""
    token = _LOOK.set(look or PLAIN)
    chatty = logging.getLogger("fontTools")  # logs every glyph that goes into the PDF
    level = chatty.level
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # or a user's matplotlibrc would change the bytes
        matplotlib.rcParams.update(_STYLE)
        chatty.setLevel(logging.WARNING)
        try:
            yield
        finally:
            chatty.setLevel(level)
            _LOOK.reset(token)


class Sheet:
    """A figure under construction: first its panels, then marks, then `finish`."""

    def __init__(
        self,
        rows: int = 1,
        columns: int = 1,
        *,
        widths: Sequence[float] | None = None,
        heights: float | Sequence[float] = PANEL,
        **shared: Any,
    ) -> None:
        """heights: of each row of panels in inches; panels with named rows are as high as their names need.
        shared: matplotlib's ``sharex`` and ``sharey``."""
        self._look, self._named = _LOOK.get(), dict[Axes, float]()
        self._heights = list(heights) if isinstance(heights, Sequence) else [heights] * rows
        self._stacked = self._look.width_in < STACKED_IN and columns > 1
        grid = (rows, columns)
        if self._stacked:
            # sharex="col" or sharey="row" mean other panels now; only True means the same.
            grid, widths, shared = (rows * columns, 1), None, {key: one for key, one in shared.items() if one is True}
            self._heights = [height for height in self._heights for _ in range(columns)]
        if self._look.width_in == PHONE_IN:
            self._heights = [min(height, PHONE_PANEL) for height in self._heights]
        self.figure = Figure(
            figsize=(self._look.width_in, 1.0),  # `finish` sets the height, once legend and names are known
            layout=ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03),
            dpi=DPI,
        )
        FigureCanvasAgg(self.figure)  # not pyplot, which keeps every figure alive and may open windows
        panels = self.figure.subplots(*grid, squeeze=False, width_ratios=widths, **shared)
        self.panels: np.ndarray = panels.reshape(rows, columns)  # of Axes

    def only(self) -> Axes:
        """The panel of a figure with a single panel."""
        axes: Axes = self.panels[0, 0]
        return axes

    def join(self, row: int) -> Axes:
        """Replaces a row of panels with one wide panel."""
        for axes in self.panels[row]:
            axes.remove()
        first = row * self.panels.shape[1] if self._stacked else row  # stacked, a row of panels is several grid rows
        wide: Axes = self.figure.add_subplot(self.panels[0, 0].get_gridspec()[first, :])
        self.panels[row, 0] = wide
        return wide

    def names(self, axes: Axes, labels: Sequence[str], *, abreast: int = 1, shown: bool = True) -> None:
        """Writes the names of horizontal marks at 0, 1, ... with the first on top. abreast: marks per row. shown: False
        for a panel that shares the names of the panel to its left."""
        fits = max(16, round(_NAME * self._look.width_in / FULL_IN))
        labels = [textwrap.fill(label, fits) if len(label) > fits and "\n" not in label else label for label in labels]
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", length=0, labelleft=shown or self._stacked)
        axes.set_ylim(len(labels) - 0.4, -0.6)  # downwards, with the first name on top
        axes.grid(False, axis="y")
        lines = max((label.count("\n") + 1 for label in labels), default=1)
        # In inches: title and labels, and for each row a line of text, its lines, or its marks.
        self._named[axes] = max(1.15, 0.5 + len(labels) * max(0.21, 0.14 * lines, 0.17 * abreast))

    def finish(
        self, title: str, handles: Sequence[Artist] = (), notes: Sequence[str] = (), *, even: bool = True
    ) -> Figure:
        """Adds legend and footnotes, and sets the height. even: make legend lines of about the same length."""
        lines = self.panels.reshape(-1, 1) if self._stacked else self.panels
        self._heights = contents.drop_empty(self.figure, lines, self._heights)
        if not self._heights:  # a figure without data is not drawn: `render` says so
            self.figure.clear()
            self.figure.set_label(EMPTY)
            return self.figure
        lines = np.array([line for line in lines if any(axes.figure is not None for axes in line)])
        if self._stacked:
            for axes in self.panels.flat:
                axes.tick_params(labelleft=True, labelbottom=True)
        heights = [
            max((self._named.get(axes, height) for axes in line if axes.figure is not None), default=0.01)
            for line, height in zip(lines, self._heights, strict=True)
        ]
        first = next(axes for axes in lines.flat if axes.figure is not None)
        first.get_gridspec().set_height_ratios(heights)
        if any(map(contents.leaving, self.figure.axes)):
            notes = [*notes, LEAVING]
        scale = self._look.width_in / FULL_IN
        above = _legend(self.figure, handles, title=self._title(title), even=even, scale=scale)
        below = _footnotes(self.figure, notes, round(_NOTE * scale) - 6 * (scale < 1))
        # Inches of a legend's line and of a footnote's; matplotlib would take both from the panels.
        self.figure.set_figheight(0.35 + sum(heights) + 0.16 * above + 0.12 * below)
        return self.figure

    def _title(self, title: str) -> str:
        """The title with the look applied. Titles are "experiment: subject"; the look replaces the first part."""
        if not self._look.title:
            return title
        subject = title.partition(": ")[2] or title
        return "" if self._look.title == NO_TITLE else f"{self._look.title}: {subject}"


def short(name: str, limit: int = _NAME) -> str:
    """The name as figures show it. A long name is shortened in the middle, because its ends distinguish it."""
    name = display(name)
    return name if len(name) <= limit else f"{name[: limit // 2 - 1]}…{name[-(limit // 2) :]}"


def _legend(figure: Figure, handles: Sequence[Artist], *, title: str, even: bool, scale: float) -> int:
    """Draws title and legend above the panels. Returns the number of lines. scale: the width relative to a page's."""
    widest = max((len(str(handle.get_label())) for handle in handles), default=0) + 8  # the sample of the line
    columns = max(1, min(len(handles), 5, round(_LEGEND * scale) // widest))
    if even and handles:  # as few columns as the number of lines allows: 4 entries in 3 columns become 2 and 2
        columns = -(-len(handles) // -(-len(handles) // columns))
    letters = round(_TITLE * scale)
    heading = textwrap.fill(short(title, 2 * letters - 10), letters)
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
        title=heading,
        frameon=False,
        handlelength=2.6,
        title_fontproperties={"weight": "bold", "size": 8.5},
        borderpad=0.1,
    )
    return -(-len(handles) // columns) + heading.count("\n") + 1


def _footnotes(figure: Figure, notes: Sequence[str], letters: int) -> int:
    """Draws the footnotes below the panels, without duplicates. Returns the number of lines."""
    text = "\n".join(textwrap.fill(display(note), letters) for note in dict.fromkeys(notes))
    if not text:
        return 0
    figure.supxlabel(text, fontsize=6.5, color="#333333", x=0.01, ha="left")
    return text.count("\n") + 1


def move_texts(figure: Figure) -> None:
    """Moves labels that overlap something to the best position next to their marks. Call it after the layout."""
    for axes in figure.axes:
        _thin(figure, axes)  # first, because ticks are obstacles for labels
        _spread([t for t in axes.texts if isinstance(t, Annotation) and t.get_label() == SPREAD])
    written = [text for text in figure.findobj(Text) if text.axes is None] + [t for a in figure.axes for t in a.texts]
    for axes in figure.axes:
        lines, points = list(_paths(axes)), np.array(list(_points(axes))).reshape(-1, 2)
        for text in axes.texts:
            if isinstance(text, Annotation) and text.get_label() == MOVABLE and not text.get_rotation():
                boxes = [Text.get_window_extent(other) for other in written if other is not text and other.get_text()]
                _move(text, axes, boxes, lines, points)


def _thin(figure: Figure, axes: Axes) -> None:
    """Removes every second tick along x until their labels do not touch. Names are never removed."""
    axis = axes.xaxis
    while isinstance(axis.get_major_formatter(), FuncFormatter) and len(axis.get_majorticklocs()) > 2:
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: box.x0)
        if all(right.x0 - left.x1 > 2 for left, right in zip(boxes, boxes[1:], strict=False)):
            return
        axis.set_major_locator(FixedLocator(axis.get_majorticklocs()[::2].tolist()))
        figure.draw_without_rendering()  # moves the remaining labels to their ticks


def _spread(texts: Sequence[Annotation]) -> None:
    """Shifts labels at the right of a panel up and down, as little as possible, until none overlap."""
    blocks: list[tuple[float, list[Annotation]]] = []  # of touching labels: mean height, labels from the lowest on
    # Text's method and not Annotation's, which includes the arrow.
    gap = 1.1 * max((Text.get_window_extent(text).height for text in texts), default=0.0)
    for text in sorted(texts, key=lambda text: text.xy[1]):
        blocks.append((_panel_of(text).transData.transform(text.xy)[1], [text]))
        # Touching blocks merge around their common mean, and may then touch the block below.
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * sum(len(b[1]) for b in blocks[-2:]) / 2:
            (low, below), (high, above) = blocks.pop(-2), blocks.pop()
            count = len(below) + len(above)
            blocks.append(((low * len(below) + high * len(above)) / count, [*below, *above]))
    for middle, members in blocks:
        for number, text in enumerate(members):
            height = middle + gap * (number - (len(members) - 1) / 2)
            text.set_y(_panel_of(text).transData.inverted().transform((0, height))[1])


def _panel_of(text: Annotation) -> Axes:
    return of_kind(Axes, text.axes)


def _move(text: Annotation, axes: Axes, boxes: Sequence[Bbox], lines: Sequence[Outline], points: np.ndarray) -> None:
    """Moves a label to the position with the least cost. boxes, lines, points: the obstacles."""
    figure, panel = axes.figure.bbox, axes.get_window_extent()
    first = text.xyann, text.get_horizontalalignment(), text.get_verticalalignment()
    outside = not _is_inside(text.get_window_extent(), panel)

    def cost(box: Bbox) -> float:
        bad = _CUT * (not _is_inside(box, figure)) + _OUTSIDE * (not outside and not _is_inside(box, panel))
        bad += _ON_TEXT * sum(box.overlaps(other) for other in boxes)
        bad += _CROSSED * int(((box.min < points) & (points < box.max)).all(axis=1).sum())
        return bad + _CROSSED * sum(path.intersects_bbox(box, filled=False) for path in lines)

    def put(offset: tuple[float, float], ha: str, va: str) -> float:
        text.xyann = offset
        text.set(ha=ha, va=va)
        return cost(text.get_window_extent())

    # As it stands, a label is kept where nothing is in its way: other positions are tried from the nearest on.
    best: tuple[float, tuple[tuple[float, float], str, str]] = cost(text.get_window_extent()), first
    for offset, (ha, va) in itertools.product(_OFFSETS, _AROUND):
        if not best[0]:
            break
        x, y = {"left": 1, "right": -1}.get(ha, 0), _SIDES[va]
        place = (offset * x, (offset / 2 if x else offset) * y), ha, va
        best = min(best, (put(*place), place), key=lambda tried: tried[0])
    put(*best[1])


def _is_inside(box: Bbox, frame: BboxBase) -> bool:
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)


def _paths(axes: Axes) -> Iterator[Outline]:
    """The paths in a panel, in figure coordinates: lines, error bars and the outlines of bars."""
    for line in axes.lines:
        if len(line.get_xydata()) > 1 and line.get_linestyle() != "None":  # type: ignore[arg-type]
            yield line.get_transform().transform_path(line.get_path())
    for collection in axes.collections:
        if isinstance(collection, LineCollection):
            yield from map(collection.get_transform().transform_path, collection.get_paths())
    for patch in axes.patches:
        yield patch.get_transform().transform_path(patch.get_path())


def _points(axes: Axes) -> Iterator[np.ndarray]:
    """The positions of a panel's marks, in figure coordinates."""
    for line in axes.lines:
        if line.get_marker() not in ("", "None", None):
            yield from axes.transData.transform(line.get_xydata())


class Drawable(Protocol):
    """A figure as data, such as a `shapes.Chart`."""

    @property
    def title(self) -> str: ...

    def figure(self, title: str) -> Figure: ...


Made = Figure | Drawable | None  # what the function of a figure returns


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A figure. Call it with the report of a run: it returns None if there is nothing to draw."""

    name: str  # of its files, too
    caption: str
    make: Callable[..., Made]
    title: str = ""  # what it shows, after the name of the experiment; "": its chart has the whole title
    # The runs that it is for: a kind ("training", "levers", "cases", "compiled"), or a kind with the view of the
    # experiment or of the swept lever ("cases/stream", "levers/remat"). Without views, other code draws it.
    views: tuple[str, ...] = ()
    order: int = 0  # its place on the page, among figures of the same order by name
    diagnostic: bool = False  # shows how it was measured, not what was found: the page folds it
    more: Callable[..., str] | None = None  # a run's own sentence at the end of the caption

    def draw(self, *what: Any, **settings: Any) -> Figure | None:
        made = self.make(*what, **settings)
        if made is None or isinstance(made, Figure):
            return made
        return made.figure(made.title or f"{what[0].experiment}: {self.title}")

    __call__ = draw


def plot(name: str, **facts: Any) -> Callable[[Callable[..., Made]], Plot]:
    """Makes a `Plot` of the function below it. The function's docstring is the caption."""
    return lambda make: Plot(name=name, caption=_caption(make), make=make, **facts)


def _caption(make: Callable[..., Made]) -> str:
    """The docstring of a function as one line, also under -OO, where Python drops docstrings and keeps the source."""
    text = make.__doc__
    if text is None and sys.flags.optimize >= 2:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(make))).body
        text = ast.get_docstring(of_kind(ast.FunctionDef, function))
    return " ".join((text or "").split())
