# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a paper in its own style: its axes, its series dotted and grey, those of this machine solid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.catalog import published
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import MARKERS, Mark
from jaxbench.suites.papers import page
from jaxbench.suites.papers import series as series_lib
from jaxbench.suites.papers.evidence import Evidence, NotTestable
from jaxbench.suites.papers.paper import Panel, Paper
from jaxbench.suites.papers.series import Measured, PublishedSeries

_MEANINGS = {"hollow": notes.HOLLOW, "refused": notes.REFUSED, "wrong": notes.WRONG}


def write(paper: Paper, runs: Evidence, claims: Sequence[Mapping[str, Any]]) -> None:
    """Draws the figure into the folder of the paper. claims: as judged, in the paper's document."""
    canvas.write(canvas.render(lambda: draw(paper, runs, claims)), runs.folder / page.FIGURES, page.FIGURE)


def draw(paper: Paper, runs: Evidence, claims: Sequence[Mapping[str, Any]]) -> Figure:
    """One panel for each of the paper's, side by side. A panel without measurements says why.

    The title names what is measured, and never what the paper claims: the verdicts below the panels answer that.
    """
    sheet = Sheet(1, len(paper.panels), heights=2.4)
    legend = _Legend()
    seen: list[Mark] = []
    remarks: list[str] = []
    for axes, panel in zip(sheet.panels[0], paper.panels, strict=True):
        for call in panel.published:
            for series in series_lib.make(call):
                legend.draw(axes, panel, series)
        # All series of a panel are made before one is drawn: half a panel would look complete.
        try:
            for series in [each for call in panel.measured for each in series_lib.make(call, runs)]:
                legend.draw(axes, panel, series)
                if isinstance(series, Measured):
                    seen += series.marks
                    states = {mark.state for mark in series.marks}
                    remarks += [series.crosses or meaning for state, meaning in _MEANINGS.items() if state in states]
        except NotTestable as reason:
            remarks.append(f"{panel.title}: nothing measured here. {reason}")
        _axes(axes, panel)
    remarks = list(dict.fromkeys(remarks))
    sources = dict.fromkeys(published.read(table).project for table in paper.tables)
    remarks += [notes.cited("; ".join(sources))] if sources else []
    if any(handle.get_linestyle() == "--" and handle.get_marker() == "None" for handle in legend.handles.values()):
        remarks.append("dashed, without marks: formulas")
    bars = [mark.n for mark in seen if mark.drawn.has_interval and mark.n]
    groups = [[n for n in bars if len(n) == parts] for parts in sorted({len(n) for n in bars})]
    remarks += [f"{notes.BARS}; {' or '.join(map(notes.n_of, groups))} per mark"] if bars else []
    verdicts = []
    for claim in claims:
        number = page.number(claim)
        limit = f" ({number}, claimed {claim['limit']})" if number else ""
        verdicts.append(f"{claim['name']}: {claim['verdict']}{limit}")
    return sheet.finish(paper.title, list(legend.handles.values()), ["; ".join(verdicts), *remarks])


class _Legend:
    """The series of a figure: a label has one style in all panels, and no other label has it."""

    def __init__(self) -> None:
        self.handles: dict[str, Any] = {}
        self._places: dict[tuple[str, type], int] = {}

    def draw(self, axes: Axes, panel: Panel, series: PublishedSeries | Measured) -> None:
        """Measured series solid; published ones with their marks; formulas as dashed lines."""
        kind = type(series)
        if isinstance(series, Measured) and not series.marks:
            return
        place = self._places.setdefault((series.label, kind), sum(each == kind for _, each in self._places))
        if isinstance(series, Measured):
            marks.line(axes, series.marks, place=place, between="none" if panel.names else "-")
            self.handles[series.label] = marks.handle(place, series.label.replace("here", "measured"))
        elif series.formula:
            drawn = marks.guide(axes, series.x, series.y, label=series.label, number=place)
            self.handles.setdefault(series.label, drawn)
        else:
            shape = MARKERS[place % len(MARKERS)] if len(series.x) > 2 or panel.names else ""
            joined = not panel.names
            drawn = marks.published(axes, series.x, series.y, shape=shape, joined=joined, label=series.label)
            self.handles.setdefault(series.label, drawn)


def _axes(axes: Axes, panel: Panel) -> None:
    entitle(axes, panel.title, x=panel.x, y=panel.y)
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names)
        axes.set_xlim(-0.5, len(panel.names) - 0.5)
    if "x" in panel.log:
        log_axis(axes, "x", show=_tick, base=panel.base)
    if "y" in panel.log:
        relative = panel.y.startswith(("speed-up", "relative to"))  # ticks as of a count of devices
        log_axis(axes, "y", show=_tick, base=2 if relative else 10)
    elif panel.top:
        axes.set_ylim(0, max(panel.top, 1.05 * axes.dataLim.y1))


def _tick(value: float) -> str:
    """Counts and batches as they are, larger numbers with a unit."""
    return plain(value) if value < 1e5 else si(value)
