# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The canvas of every figure: SVG, PNG and PDF, 7 inches wide by default. The bytes depend only on the data.

Figures must work in black and white: a series has a marker and a colour (Okabe and Ito's palette, which colour-blind
readers can distinguish), and a bar has a hatch. `marks` defines filled, hollow, dashed and crossed-out marks.
"""

from __future__ import annotations

import io
import logging
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from jaxbench.core.store import write_atomic
from jaxbench.report.drawing import placing
from jaxbench.report.drawing.notes import display

FORMATS = ("svg", "pdf", "png")
DPI = 200  # of the PNG
PANEL = 2.0  # height of a panel of lines in inches, including its title and labels
FULL_IN = 7.0  # the width of a page in inches
STACKED_IN = 5.0  # figures narrower than this have all panels below each other
NO_TITLE = "none"
_TITLE, _NAME, _LEGEND, _NOTE = 84, 48, 110, 150  # letters in 7 inches: a title, a name, the legend, a footnote line
_STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.titlelocation": "left",
    "axes.labelsize": 8, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.1, "lines.markersize": 4.0,
    "axes.grid": True, "grid.linewidth": 0.4, "grid.color": "#d9d9d9", "axes.axisbelow": True, "svg.fonttype": "path",
    "svg.hashsalt": "jaxbench", "pdf.fonttype": 42, "text.usetex": False, "axes.formatter.use_mathtext": False,
    "text.parse_math": False, "figure.dpi": 100,
}  # fmt: skip
_METADATA: Any = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": "jaxbench", "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Look:
    """The user's settings for all figures of a run. title: replaces the experiment's name in titles; "" keeps it."""

    width_in: float = FULL_IN
    title: str = ""


PLAIN = Look()
_LOOK: ContextVar[Look] = ContextVar("look", default=PLAIN)


def look_of(config: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> Look:
    """The look in a run's config, or in `asked` if given. Runs older than these settings have the defaults."""
    section = asked if asked is not None else config.get("report")
    section = section if isinstance(section, Mapping) else {}
    return Look(float(section.get("width_in", FULL_IN)), str(section.get("title") or ""))


def render(make: Callable[[], Figure | None], look: Look | None = None) -> dict[str, bytes]:
    """Calls `make` with the style applied, and returns the bytes of its figure by suffix; {} if it draws nothing.

    The bytes depend only on the figure: there are no dates and no random ids.
    """
    files: dict[str, bytes] = {}
    with style(look):
        figure = make()
        if figure is None:
            return files
        lay_out(figure)
        for suffix in FORMATS:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, dpi=DPI, metadata=_METADATA[suffix])
            files[suffix] = buffer.getvalue()
    return files


def lay_out(figure: Figure) -> None:
    """Computes the layout, once for all formats, and then the positions of labels. Call it inside `style`."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # keeps the layout just computed
    placing.settle(figure)


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
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        chatty.setLevel(logging.WARNING)
        try:
            yield
        finally:
            chatty.setLevel(level)
            _LOOK.reset(token)


class Sheet:
    """A figure under construction: first its panels, then marks, then `finish`.

    Attributes:
      panels: (rows, columns) array of Axes.
    """

    def __init__(
        self, rows: int = 1, columns: int = 1, *, widths: Sequence[float] | None = None,
        heights: float | Sequence[float] = PANEL, **shared: Any,
    ) -> None:  # fmt: skip
        """heights: of each row of panels in inches; panels with named rows are as high as their names need.
        shared: matplotlib's ``sharex`` and ``sharey``."""
        self._look, self._named = _LOOK.get(), dict[Axes, float]()
        self._heights = list(heights) if isinstance(heights, Sequence) else [heights] * rows
        self._stacked = self._look.width_in < STACKED_IN and columns > 1
        grid = (rows, columns)
        if self._stacked:
            grid, widths, shared = (rows * columns, 1), None, {key: one for key, one in shared.items() if one is True}
            self._heights = [height for height in self._heights for _ in range(columns)]
        self.figure = Figure(
            figsize=(self._look.width_in, 1.0),
            layout=ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03), dpi=DPI,
        )  # fmt: skip
        FigureCanvasAgg(self.figure)
        panels = self.figure.subplots(*grid, squeeze=False, width_ratios=widths, **shared)
        self.panels: np.ndarray = panels.reshape(rows, columns)

    def only(self) -> Axes:
        """The panel of a figure with a single panel."""
        axes: Axes = self.panels[0, 0]
        return axes

    def join(self, row: int) -> Axes:
        """Replaces a row of panels with one wide panel."""
        for axes in self.panels[row]:
            axes.remove()
        first = row * self.panels.shape[1] if self._stacked else row
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
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(False, axis="y")
        lines = max((label.count("\n") + 1 for label in labels), default=1)
        self._named[axes] = max(1.15, 0.5 + len(labels) * max(0.21, 0.14 * lines, 0.17 * abreast))

    def finish(
        self, title: str, handles: Sequence[Artist] = (), notes: Sequence[str] = (), *, even: bool = True
    ) -> Figure:
        """Adds legend and footnotes, and sets the height. even: make legend lines of about the same length."""
        lines = self.panels.reshape(-1, 1) if self._stacked else self.panels
        if self._stacked:
            for axes in self.panels.flat:
                axes.tick_params(labelleft=True, labelbottom=True)
        heights = [
            max((self._named.get(axes, height) for axes in line if axes.figure is not None), default=0.01)
            for line, height in zip(lines, self._heights, strict=True)
        ]
        self.panels[-1, -1].get_gridspec().set_height_ratios(heights)
        scale = self._look.width_in / FULL_IN
        above = _legend(self.figure, handles, title=self._title(title), even=even, scale=scale)
        below = _footnotes(self.figure, notes, round(_NOTE * scale) - 6 * (scale < 1))
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
    if even and handles:
        columns = -(-len(handles) // -(-len(handles) // columns))
    letters = round(_TITLE * scale)
    heading = textwrap.fill(short(title, 2 * letters - 10), letters)
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, title=heading, frameon=False, handlelength=2.6,
        title_fontproperties={"weight": "bold", "size": 8.5}, borderpad=0.1,
    )  # fmt: skip
    return -(-len(handles) // columns) + heading.count("\n") + 1


def _footnotes(figure: Figure, notes: Sequence[str], letters: int) -> int:
    """Draws the footnotes below the panels, without duplicates. Returns the number of lines."""
    text = "\n".join(textwrap.fill(display(note), letters) for note in dict.fromkeys(notes))
    if not text:
        return 0
    figure.supxlabel(text, fontsize=6.5, color="#333333", x=0.01, ha="left")
    return text.count("\n") + 1
