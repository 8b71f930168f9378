# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of `benchmarks.forecasts`: published over forecast step, run by run, with the band of each family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet

if TYPE_CHECKING:
    from benchmarks.forecasts import Family

NAME = "accountability"
_BOUND = 5  # matplotlib's caret to the right
_TICKS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75)


def save(families: Sequence[Family], folder: Path) -> None:
    """Writes accountability.png, .svg and .pdf."""
    if families:
        canvas.write(canvas.render(lambda: draw(families)), folder, NAME)


def draw(families: Sequence[Family]) -> Figure:
    """One row per project; the rows of a family of programs are next to each other, on its shaded band."""
    sheet = Sheet(1, 1)
    axes = sheet.panels[0, 0]
    names: list[str] = []
    for place, family in enumerate(families):
        colour, shape = marks.series_style(place)
        first = len(names)
        for project in dict.fromkeys(row.family for row in family.rows):
            some = [row for row in family.rows if row.family == project]
            for row in some:
                face = colour if row.id in family.held else "white"
                mark = _BOUND if row.bound else shape
                axes.plot([1 / row.over], [len(names)], color=colour, marker=mark, markerfacecolor=face, zorder=3)
            names.append(f"{project} ({len(some)})")
        if family.band[1] < math.inf:
            rows = first - 0.4, len(names) - 0.6
            # Two strokes and not an area: a wide band would swallow its marks.
            axes.vlines(family.band, *rows, color=colour, linewidth=1.4, zorder=1)
            axes.hlines([sum(rows) / 2], *family.band, color=colour, linewidth=0.5, linestyle=":", zorder=1)
    axes.set_xscale("log")
    axes.set_xlim(_TICKS[0], _TICKS[-1])
    axes.set_xticks(_TICKS)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    marks.unity(axes)
    entitle(axes, x="published step / forecast step")
    sheet.names(axes, names, shown=True)
    handles = [
        marks.style_handle(f"{each.name} ({len(each.rows)})", color=marks.series_style(place)[0], linestyle="none",
                           marker=marks.series_style(place)[1])
        for place, each in enumerate(families)
    ]  # fmt: skip
    notes = [
        "a mark: one published run; right of 1 it was slower than forecast; in brackets: the number of runs",
        "between the strokes of a colour: where nine in ten further runs are expected; hollow: outside its band, "
        "which is wider than the strokes for a run with few large products",
    ]
    if any(row.bound for family in families for row in family.rows):
        notes.append(
            "small triangle to the right: the forecast is only a bound, so the run may be slower by any factor"
        )
    count = sum(len(each.rows) for each in families)
    title = f"Published step time over its forecast, for {count} training runs"
    return sheet.finish(title, [*handles, marks.guide_handle("equal")], notes)
