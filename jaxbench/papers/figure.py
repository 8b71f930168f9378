# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a paper in its own style: its axes, its series dotted and grey, those of this machine solid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.catalog import published
from jaxbench.papers import document as documents
from jaxbench.papers.evidence import Evidence, NotTestable
from jaxbench.papers.paper import Panel, Paper, PublishedSeries
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import MARKERS, Mark

FOLDER, NAME = "figures", "paper"
_MEANINGS = {"hollow": notes.HOLLOW, "refused": notes.REFUSED, "wrong": notes.WRONG}


def write(paper: Paper, found: Evidence, claims: Sequence[Mapping[str, Any]]) -> None:
    """Draws the figure into the folder of the paper. claims: as judged, in the paper's document."""
    canvas.write(canvas.render(lambda: draw(paper, found, claims)), found.folder / FOLDER, NAME)


def draw(paper: Paper, found: Evidence, claims: Sequence[Mapping[str, Any]]) -> Figure:
    """One panel for each of the paper's, side by side. A panel without measurements says why.

    The title names what is measured, and never what the paper claims: the verdicts below the panels answer that.
    """
    sheet = Sheet(1, len(paper.panels), heights=2.4)
    handles: dict[str, Any] = {}
    looks: dict[tuple[str, bool], int] = {}  # (label, whether it is ours): one look in all panels, and no other's
    seen: list[Mark] = []
    remarks: list[str] = []
    for axes, panel in zip(sheet.panels[0], paper.panels, strict=True):
        _theirs(axes, panel, panel.published(), handles, looks)
        try:
            for series in filter(lambda one: one.marks, panel.ours(found)):
                place = _look(looks, series.label, ours=True)
                marks.line(axes, series.marks, place=place, between="none" if panel.names else "-")
                handles[series.label] = marks.handle(place, series.label.replace("here", "measured"))
                seen += series.marks
                states = {mark.state for mark in series.marks}
                remarks += [series.crosses or meaning for state, meaning in _MEANINGS.items() if state in states]
            _theirs(axes, panel, panel.laws(found), handles, looks)
        except NotTestable as reason:
            remarks.append(f"{panel.title}: nothing measured here. {reason}")
        _axes(axes, panel)
    remarks = list(dict.fromkeys(remarks))
    sources = dict.fromkeys(published.read(table).project for table in paper.tables)
    remarks += [notes.cited("; ".join(sources))] if sources else []
    if any(handle.get_linestyle() == "--" and handle.get_marker() == "None" for handle in handles.values()):
        remarks.append("dashed, without marks: formulas")
    bars = [mark.n for mark in seen if mark.drawn.has_interval and mark.n]
    groups = [[n for n in bars if len(n) == parts] for parts in sorted({len(n) for n in bars})]
    remarks += [f"{notes.BARS}; {' or '.join(map(notes.n_of, groups))} a mark"] if bars else []
    verdicts = "; ".join(f"{claim['name']}: {_verdict(claim)}" for claim in claims)
    return sheet.finish(paper.title, list(handles.values()), [verdicts, *remarks])


def _verdict(claim: Mapping[str, Any]) -> str:
    """ "holds here (0.93 [0.91, 0.95], claimed at least 0.9)"."""
    number = documents.number(claim)
    return f"{claim['verdict']} ({number}, claimed {claim['limit']})" if number else str(claim["verdict"])


def _look(looks: dict[tuple[str, bool], int], label: str, *, ours: bool) -> int:
    return looks.setdefault((label, ours), sum(one == ours for _, one in looks))


def _theirs(
    axes: Axes, panel: Panel, every: Sequence[PublishedSeries], handles: dict[str, Any], looks: dict[Any, int]
) -> None:
    """Published series with their marks; formulas as dashed lines."""
    for series in every:
        place = _look(looks, series.label, ours=False)
        if series.formula:
            drawn = marks.guide(axes, series.x, series.y, label=series.label, number=place)
        else:
            shape = MARKERS[place % len(MARKERS)] if len(series.x) > 2 or panel.names else ""
            joined = not panel.names
            drawn = marks.published(axes, series.x, series.y, shape=shape, joined=joined, label=series.label)
        handles.setdefault(series.label, drawn)


def _axes(axes: Axes, panel: Panel) -> None:
    entitle(axes, panel.title, x=panel.x, y=panel.y)
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names)
        axes.set_xlim(-0.5, len(panel.names) - 0.5)
    if "x" in panel.log:
        log_axis(axes, "x", show=_tick, base=panel.base)
    if "y" in panel.log:
        log_axis(axes, "y", show=_tick, base=2 if panel.relative else 10)
    elif panel.top:
        axes.set_ylim(0, max(panel.top, 1.05 * axes.dataLim.y1))


def _tick(value: float) -> str:
    """Counts and batches as they are, larger numbers with a unit."""
    return plain(value) if value < 1e5 else si(value)
