# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of `benchmarks.forecasts`: forecast against published on the diagonal, with bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.axes import entitle, log_axis, seconds_tick
from jaxbench.report.drawing.canvas import Sheet

if TYPE_CHECKING:
    from benchmarks.forecasts import Judged

NAME = "accountability"
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


def save(rows: Sequence[Judged], bands: Mapping[str, tuple[float, float]], folder: Path) -> None:
    """Writes accountability.png, .svg and .pdf. bands: seconds by id; infinite ones are not drawn."""
    if rows:
        canvas.write(canvas.render(lambda: draw(rows, bands)), folder, NAME)


def draw(rows: Sequence[Judged], bands: Mapping[str, tuple[float, float]]) -> Figure:
    sheet = Sheet(1, 1, heights=[3.6])
    axes = sheet.panels[0, 0]
    families = list(dict.fromkeys(row.family for row in rows))
    known = {id: band for id, band in bands.items() if band[1] < math.inf}
    ends = [value for row in rows for value in (*known.get(row.id, ()), row.forecast_s, row.published_s)]
    edge = min(ends) / 1.3, max(ends) * 1.3
    marks.guide(axes, edge, edge)
    handles = []
    for place, family in enumerate(families):
        colour, _ = marks.series_style(place)
        some = [row for row in rows if row.family == family]
        shape = _SHAPES[place % len(_SHAPES)]
        for row in some:
            if band := known.get(row.id):
                axes.plot([row.published_s] * 2, band, color=colour, linewidth=1.1, solid_capstyle="butt", zorder=2)
        style = dict(color=colour, marker=shape, markersize=5.5, linestyle="none")
        axes.plot([row.published_s for row in some], [row.forecast_s for row in some], zorder=3, **style)
        handles.append(marks.style_handle(f"{family} ({len(some)})", **style))
    entitle(axes, x="published step", y="forecast step")
    for side in ("x", "y"):
        log_axis(axes, side, show=seconds_tick)
    axes.set_xlim(*edge)
    axes.set_ylim(*edge)
    notes = ["bar: the band in which nine in ten are expected, from the other runs of the same family of programs"]
    return sheet.finish("Forecasts of published training runs", [*handles, marks.guide_handle("equal")], notes)
