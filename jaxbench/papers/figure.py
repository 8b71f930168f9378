# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a paper in its own style: its axes, its series dashed and grey, those of this machine solid."""

from __future__ import annotations

from itertools import count

from jaxbench.catalog import published
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Panel, Paper
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, log_axis, plain, si
from jaxbench.report.drawing.marks import MARKERS

FOLDER, NAME = "figures", "paper"


def write(paper: Paper, found: Evidence) -> None:
    """Draws the figure into the folder of the paper."""
    canvas.write(canvas.render(lambda: draw(paper, found)), found.folder / FOLDER, NAME)


def draw(paper: Paper, found: Evidence) -> Figure:
    """One panel for each of the paper's, side by side. A panel without measurements says why."""
    sheet = Sheet(1, len(paper.panels), heights=2.4)
    handles, remarks, looks = [], [], count()
    for axes, panel in zip(sheet.panels[0], paper.panels, strict=True):
        for number, series in enumerate(panel.published()):
            shape = MARKERS[number % len(MARKERS)] if len(series.x) > 2 else ""
            handles.append(marks.published(axes, list(series.x), list(series.y), shape=shape, label=series.label))
        try:
            for ours in panel.ours(found):
                place = next(looks)
                marks.line(axes, ours.marks, place=place)
                handles.append(marks.handle(place, ours.label))
        except NotTestable as reason:
            remarks.append(f"{panel.title}: nothing measured here. {reason}")
        _axes(axes, panel)
    sources = [published.read(table).project for table in paper.tables]
    remarks.append(notes.cited("; ".join(sources)) if sources else "dashed: the laws, not measurements")
    return sheet.finish(paper.title, handles, remarks)


def _axes(axes: Axes, panel: Panel) -> None:
    entitle(axes, panel.title, x=panel.x, y=panel.y)
    if "x" in panel.log:
        log_axis(axes, "x", show=_tick, base=panel.base)
    if "y" in panel.log:
        log_axis(axes, "y", show=_tick)
    elif panel.top:
        axes.set_ylim(0, max(panel.top, 1.05 * axes.dataLim.y1))


def _tick(value: float) -> str:
    """Counts and batches as they are, larger numbers with a unit."""
    return plain(value) if value < 1e5 else si(value)
