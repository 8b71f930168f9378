# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What every figure is made on: 7 inches wide, in SVG, PNG and PDF, with bytes that depend on its data alone.

A figure must survive a black-and-white printer: a series is a marker and a colour (Okabe and Ito's palette, which
colour-blind readers can tell apart). Filled means measured and honest, hollow means more devices than cores, hollow and
dashed grey means published by others, a cross means that the number is not to be believed.
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
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from jaxbench.records.store import write_atomic

FORMATS = ("svg", "pdf", "png")
DPI = 200  # of the PNG
HOLLOW = "hollow: more devices than cores; proves correctness, not speed"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")  # for bars, which have no markers
GREY = "#6b6b6b"
PALE = "#8a8a8a"  # published by others, or measured in another run
DASHES: Any = dict(color=GREY, linewidth=0.8, linestyle=(0, (6, 1.5)))
_TITLE, _NAME, _LEGEND, _NOTE = 84, 40, 110, 150  # letters that fit: a title line, a name, the legend, a footnote line
_STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5, "legend.fontsize": 7.5, "axes.linewidth": 0.6, "axes.spines.top": False,
    "axes.spines.right": False, "lines.linewidth": 1.1, "lines.markersize": 4.0, "grid.linewidth": 0.4,
    "grid.color": "#d9d9d9", "axes.axisbelow": True, "svg.fonttype": "path", "svg.hashsalt": "jaxbench",
    "pdf.fonttype": 42, "text.usetex": False, "axes.formatter.use_mathtext": False, "text.parse_math": False,
    "figure.dpi": 100,
}  # fmt: skip
_METADATA: Any = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": "jaxbench", "Producer": None},
    "png": {"Software": None},
}


def render(make: Callable[[], Figure | None]) -> dict[str, bytes]:
    """Calls `make` under the style and returns its figure by suffix; {} when it has nothing to draw.

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
    """Writes ``<name>.svg``, ``.pdf`` and ``.png`` into `folder`; removes what an earlier report left when {}."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in FORMATS:
        path = folder / f"{name}.{suffix}"
        if suffix in files:
            write_atomic(path, files[suffix])
        else:
            path.unlink(missing_ok=True)


@contextmanager
def style() -> Iterator[None]:
    """The figures' settings, whatever the user's matplotlibrc says; both are as before afterwards."""
    chatty = logging.getLogger("fontTools")  # tells every glyph that goes into the PDF
    level = chatty.level
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        chatty.setLevel(logging.WARNING)
        try:
            yield
        finally:
            chatty.setLevel(level)


def blank(*, dpi: int = DPI) -> Figure:
    """An empty figure of the right width. The caller sets its height when it knows its panels and legend.

    dpi: at which the layout is found. At less than the PNG has, text is measured some percent too narrow.
    """
    spacing = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.03, wspace=0.03)
    figure = Figure(figsize=(7.0, 1.0), layout=spacing, dpi=dpi)
    FigureCanvasAgg(figure)
    return figure


def short(name: str, limit: int = _NAME) -> str:
    """A long name without its middle, so that its ends still tell it from others."""
    return name if len(name) <= limit else f"{name[: limit // 2 - 1]}…{name[-(limit // 2) :]}"


def legend(figure: Figure, handles: Sequence[Any], *, title: str, even: bool = True) -> int:
    """Title and legend above the panels, in lines of about the same length if `even`. Returns how many lines."""
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


def footnotes(figure: Figure, notes: Sequence[str]) -> int:
    """Small print below the panels, each note once. Returns how many lines it takes."""
    text = "\n".join(textwrap.fill(note, _NOTE) for note in dict.fromkeys(notes))
    if not text:
        return 0
    figure.supxlabel(text, fontsize=6.5, color="#333333", x=0.01, ha="left")
    return text.count("\n") + 1


def end_labels(axes: Axes, lines: Sequence[Line2D], *, reach: float = 1.45, size: float = 5.5) -> None:
    """Names right of the last points of the panel, pushed apart, each with a thin line to its point.

    reach: how far right of its point a name begins, as a factor. size: of the letters, in points.
    """
    low, high = axes.get_ylim()
    apart = (high / low) ** 0.06
    y = high * apart
    ends = [(*np.asarray(line.get_xydata())[-1], str(line.get_label())) for line in lines]
    for x, value, name in sorted(ends, key=lambda end: -end[1]):
        y = min(value * apart, y / apart)
        axes.annotate(
            name, (x, value), xytext=(x * reach, y), textcoords="data", fontsize=size, color="#444444", va="center",
            annotation_clip=False, zorder=0,
            arrowprops=dict(arrowstyle="-", color=PALE, linewidth=0.4, shrinkA=0, shrinkB=2, relpos=(0, 0.5)),
        )  # fmt: skip
