# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of a paper: what was measured for each panel, as JSON, and the drawing of it next to the paper's curves.

The JSON is all that drawing needs of the runs, so a committed figure can be drawn again without them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.catalog import published
from jaxbench.core.store import write_atomic
from jaxbench.records.reading import read_document
from jaxbench.report.drawing import axes as axis_lib
from jaxbench.report.drawing import canvas, marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, si
from jaxbench.report.drawing.canvas import Sheet
from jaxbench.report.drawing.marks import MARKERS, Mark
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.suites.papers import series as series_lib
from jaxbench.suites.papers.paper import Evidence, NotTestable, Panel, Paper
from jaxbench.suites.papers.series import Measured, PublishedSeries, Series

FOLDER, NAME, PHONE, KIND = "figures", "paper", "paper-phone.svg", "jaxbench figure of a paper"
_MEANINGS = {"hollow": notes.HOLLOW, "refused": notes.REFUSED, "wrong": notes.WRONG}
_MEASURED, _CURVE = "measured", "curve"  # a curve that was fitted to measured values, or computed with them


@dataclass(frozen=True, kw_only=True)
class PanelData:
    """What the runs say for one panel. why_not: the reason if they say nothing."""

    series: tuple[Series, ...] = ()
    why_not: str = ""


def of_runs(paper: Paper, runs: Evidence) -> list[PanelData]:
    """The data of each panel. One series without data leaves its panel empty: half a panel would look complete."""
    found = []
    for panel in paper.panels:
        try:
            made = tuple(each for call in panel.measured for each in series_lib.make(call, runs))
            found.append(PanelData(series=made))
        except NotTestable as reason:
            found.append(PanelData(why_not=str(reason)))
    return found


def write(paper: Paper, runs: Evidence) -> None:
    """Writes the figure and its data into the folder of the paper."""
    data = of_runs(paper, runs)
    canvas.write(canvas.render(lambda: draw(paper, data)), runs.folder / FOLDER, NAME)
    write_atomic(runs.folder / FOLDER / PHONE, canvas.for_phone(lambda: draw(paper, data)))
    document = {"kind": KIND, "schema": 1, "id": paper.id, "panels": [_to_json(panel) for panel in data]}
    text = json.dumps(document, indent=1, allow_nan=False)
    write_atomic(runs.folder / FOLDER / f"{NAME}.json", f"{text}\n")


def read(path: Path) -> tuple[str, list[PanelData]]:
    """(id of the paper, data of its panels). Raises UserError for another file."""
    document = read_document(path, KIND, 1, ("id", "panels"), "delete it: 'jaxbench paper' makes it again.")
    return str(document["id"]), [_from_json(panel) for panel in document["panels"]]


def _to_json(panel: PanelData) -> dict[str, object]:
    return {"why_not": panel.why_not, "series": [_series_to_json(each) for each in panel.series]}


def _series_to_json(series: Series) -> dict[str, object]:
    if isinstance(series, Measured):
        points = [
            {"at": float(mark.at), **_finite_ends(mark.value), "state": mark.state, "n": list(map(int, mark.n))}
            for mark in series.marks
        ]
        return {"kind": _MEASURED, "label": series.label, "crosses": series.crosses, "marks": points}
    curve = {"x": [float(x) for x in series.x], "y": [float(y) for y in series.y], "formula": series.formula}
    return {"kind": _CURVE, "label": series.label, **curve}


def _finite_ends(value: Estimate) -> dict[str, float | None]:
    ends = {name: float(getattr(value, name)) for name in ("value", "lo", "hi")}
    return {name: end if math.isfinite(end) else None for name, end in ends.items()}  # JSON has no NaN


def _from_json(panel: Mapping[str, Any]) -> PanelData:
    return PanelData(series=tuple(map(_series_from_json, panel["series"])), why_not=panel["why_not"])


def _series_from_json(series: Mapping[str, Any]) -> Series:
    if series["kind"] == _CURVE:
        return PublishedSeries(label=series["label"], x=series["x"], y=series["y"], formula=series["formula"])
    points = [
        Mark(
            at=mark["at"],
            value=Estimate(**{end: math.nan if mark[end] is None else mark[end] for end in ("value", "lo", "hi")}),
            state=mark["state"],
            n=tuple(mark["n"]),
        )
        for mark in series["marks"]
    ]
    return Measured(label=series["label"], marks=points, crosses=series["crosses"])


def draw(paper: Paper, data: Sequence[PanelData]) -> Figure:
    """One panel for each of the paper's, side by side. A panel without measurements says why."""
    sheet = Sheet(1, len(paper.panels), heights=2.4)
    legend = _Legend()
    seen: list[Mark] = []
    remarks: list[str] = []
    for axes, panel, found in zip(sheet.panels[0], paper.panels, data, strict=True):
        for call in panel.published:
            for series in series_lib.make(call):
                legend.draw(axes, panel, series)
        for series in found.series:
            legend.draw(axes, panel, series)
            if isinstance(series, Measured):
                seen += series.marks
                states = {mark.state for mark in series.marks}
                remarks += [series.crosses or meaning for state, meaning in _MEANINGS.items() if state in states]
        if found.why_not:
            remarks.append(f"{panel.title}: nothing measured here. {found.why_not}")
        _style_axes(axes, panel)
    remarks = list(dict.fromkeys(remarks))
    sources = dict.fromkeys(published.read(table).project for table in paper.tables)
    remarks += [notes.cited("; ".join(sources))] if sources else []
    if any(handle.get_linestyle() == "--" and handle.get_marker() == "None" for handle in legend.handles.values()):
        remarks.append("dashed, without marks: formulas")
    bars = [mark.n for mark in seen if mark.drawn.has_interval and mark.n]
    # Marks count rounds and processes, or seeds: each kind of n has its own range.
    groups = [[n for n in bars if len(n) == parts] for parts in sorted({len(n) for n in bars})]
    remarks += [f"{notes.BARS}; {' or '.join(map(notes.n_of, groups))} per mark"] if bars else []
    # The title names what is measured, and never what the paper claims: the table below the figure answers that.
    return sheet.finish(paper.title, list(legend.handles.values()), remarks)


class _Legend:
    """The series of a figure: a label has one style in all panels, and no other label has it."""

    def __init__(self) -> None:
        self.handles: dict[str, Line2D] = {}
        self._places: dict[tuple[str, type], int] = {}

    def draw(self, axes: Axes, panel: Panel, series: PublishedSeries | Measured) -> None:
        """Measured series solid; published ones with their marks; formulas as dashed lines."""
        kind = type(series)
        if isinstance(series, Measured) and not series.marks:
            return
        # Measured and published series count separately: each kind has its own colours and marks.
        place = self._places.setdefault((series.label, kind), sum(each == kind for _, each in self._places))
        if isinstance(series, Measured):
            marks.line(axes, series.marks, place=place, between="none" if panel.names else "-")
            self.handles[series.label] = marks.handle(place, series.label.replace("here", "measured"))
        elif series.formula:
            drawn = marks.guide(axes, series.x, series.y, label=series.label, number=place)
            self.handles.setdefault(series.label, drawn)
        else:
            # Two points are a line that a paper states, such as 90 % up to 256 GPUs, and not two measurements.
            shape = MARKERS[place % len(MARKERS)] if len(series.x) > 2 or panel.names else ""
            joined = not panel.names
            drawn = marks.published(axes, series.x, series.y, shape=shape, joined=joined, label=series.label)
            self.handles.setdefault(series.label, drawn)


def _style_axes(axes: Axes, panel: Panel) -> None:
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
        axes.set_ylim(0, max(panel.top, 1.05 * axes.dataLim.y1))  # from 0, so that heights can be compared


def _tick(value: float) -> str:
    """Counts and batches as they are, larger numbers with a unit."""
    return axis_lib.plain(value) if value < 1e5 else si(value)
