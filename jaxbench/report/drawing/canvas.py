# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The canvas of every figure: 7 inches wide, in SVG, PNG and PDF, with bytes that depend on its data alone.

Figures must work in black and white: a series has a marker and a colour (Okabe and Ito's palette, which colour-blind
readers can tell apart), a bar has a hatch. `marks` defines filled, hollow, dashed and crossed-out marks.
"""

from __future__ import annotations

import io
import logging
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from jaxbench.records.store import write_atomic

FORMATS = ("svg", "pdf", "png")
DPI = 200  # of the PNG
PANEL = 2.0  # height of a panel of lines in inches, with its title and labels
_TITLE, _NAME, _LEGEND, _NOTE = 84, 40, 110, 150  # letters that fit: a title line, a name, the legend, a footnote line
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


def render(make: Callable[[], Figure | None]) -> dict[str, bytes]:
    """Calls `make` under the style and returns its figure by suffix; {} if it draws nothing.

    The bytes depend on the figure alone: no dates, no random ids.
    """
    files: dict[str, bytes] = {}
    with style():
        figure = make()
        if figure is None:
            return files
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # keeps the layout just found: once is enough for three formats
        for suffix in FORMATS:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, dpi=DPI, metadata=_METADATA[suffix])
            files[suffix] = buffer.getvalue()
    return files


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
def style() -> Iterator[None]:
    """Applies the figures' settings instead of the user's matplotlibrc, and restores the old ones afterwards."""
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


class Sheet:
    """A figure under construction: first its panels, then marks, then `finish`.

    Attributes:
      panels: (rows, columns) array of Axes.
    """

    def __init__(
        self, rows: int = 1, columns: int = 1, *, widths: Sequence[float] | None = None,
        heights: float | Sequence[float] = PANEL, **shared: Any,
    ) -> None:  # fmt: skip
        """heights: of each row of panels, in inches; panels with named rows are as high as their names need.
        shared: matplotlib's ``sharex`` and ``sharey``."""
        self._heights = list(heights) if isinstance(heights, Sequence) else [heights] * rows
        self._named: dict[Axes, float] = {}
        self.figure = Figure(
            figsize=(7.0, 1.0), layout=ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03), dpi=DPI
        )
        FigureCanvasAgg(self.figure)
        self.panels: Any = self.figure.subplots(rows, columns, squeeze=False, width_ratios=widths, **shared)

    def only(self) -> Axes:
        """The panel of a figure that has one."""
        axes: Axes = self.panels[0, 0]
        return axes

    def join(self, row: int) -> Axes:
        """Makes one wide panel of a row of panels."""
        for axes in self.panels[row]:
            axes.remove()
        wide = self.figure.add_subplot(self.panels[0, 0].get_gridspec()[row, :])
        self.panels[row, :] = wide
        return wide

    def names(self, axes: Axes, labels: Sequence[str], *, beside: int = 1, shown: bool = True) -> None:
        """Names of horizontal marks at 0, 1, ..., the first on top. beside: marks per row. shown: False for a panel
        that shares the names of the panel to its left."""
        axes.set_yticks(range(len(labels)), list(labels))
        axes.tick_params(axis="y", length=0, labelleft=shown)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(False, axis="y")
        lines = max((label.count("\n") + 1 for label in labels), default=1)
        self._named[axes] = max(1.15, 0.5 + len(labels) * max(0.21, 0.14 * lines, 0.17 * beside))

    def finish(
        self, title: str, handles: Sequence[Any] = (), notes: Sequence[str] = (), *, even: bool = True
    ) -> Figure:
        """Adds legend and footnotes and sets the height. even: legend lines of about the same length."""
        rows = zip(self.panels, self._heights, strict=True)
        heights = [max(self._named.get(axes, height) for axes in row) for row, height in rows]
        self.panels[-1, -1].get_gridspec().set_height_ratios(heights)
        above, below = _legend(self.figure, handles, title=title, even=even), _footnotes(self.figure, notes)
        self.figure.set_figheight(0.35 + sum(heights) + 0.16 * above + 0.12 * below)
        return self.figure


def short(name: str, limit: int = _NAME) -> str:
    """Shortens a long name in its middle, because its ends distinguish it from others."""
    return name if len(name) <= limit else f"{name[: limit // 2 - 1]}…{name[-(limit // 2) :]}"


def _legend(figure: Figure, handles: Sequence[Any], *, title: str, even: bool) -> int:
    """Title and legend above the panels. Returns how many lines."""
    widest = max((len(str(handle.get_label())) for handle in handles), default=0) + 8  # the sample of the line
    columns = max(1, min(len(handles), 5, _LEGEND // widest))
    if even and handles:
        columns = -(-len(handles) // -(-len(handles) // columns))
    heading = textwrap.fill(short(title, 2 * _TITLE - 10), _TITLE)
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, title=heading, frameon=False, handlelength=2.6,
        title_fontproperties={"weight": "bold", "size": 8.5}, borderpad=0.1,
    )  # fmt: skip
    return -(-len(handles) // columns) + heading.count("\n") + 1


def _footnotes(figure: Figure, notes: Sequence[str]) -> int:
    """Small print below the panels, each note once. Returns how many lines it takes."""
    text = "\n".join(textwrap.fill(note, _NOTE) for note in dict.fromkeys(notes))
    if not text:
        return 0
    figure.supxlabel(text, fontsize=6.5, color="#333333", x=0.01, ha="left")
    return text.count("\n") + 1
