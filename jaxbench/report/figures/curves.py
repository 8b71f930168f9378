# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Latency and throughput: seconds per call and elements per second over size, a row of panels per operation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from jaxbench.analysis.crossings import Crossing, HalfPerformance
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, extent, log_axis, seconds_tick, short, si
from jaxbench.report.drawing.series import Series, believed, elements, per_second

VIEWS = ("cases/curves", "cases/versus")
CAPTION = (
    "Left: at small sizes read the time; it is flat as long as launching the work takes longer than the work itself. "
    "Right: at large sizes read the throughput. Dotted lines: sizes from which one implementation is faster than "
    "another, drawn if there are few operations; the table has all. Short bars: n½, the size at which a series "
    "reaches half of its best throughput."
)
UNIT = "elements"
FEW = 3  # up to this many operations have a column that explains letters and short bars; for more, see the table
_WORDS = 29  # characters per line of that column


def draw(run: CaseFindings) -> Figure | None:
    """Draws a row of panels per operation. None when no size was measured."""
    rows = [row for row in run.rows if row.point.elements and row.timing.step_s.known]
    if not rows:
        return None
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations = series.operations(rows)
    few = len(operations) <= FEW
    words = {op: _words(op, run) if few else [] for op in operations}
    tall = max(1.65 if few else 1.25, 0.25 + 0.108 * max(map(len, words.values())))
    widths = [1, 1, 0.6] if any(words.values()) else [1, 1]
    sheet = Sheet(len(operations), len(widths), widths=widths, heights=tall)
    for line, op in zip(sheet.panels, operations, strict=True):
        of_op = series.of_op(every, op)
        for one in of_op:
            one.draw(line[0], elements, series.time)
            one.draw(line[1], elements, per_second)
        _crossings(line[:2], _inside(op, run) if few else [])
        _knees(line[1], _half(op, run), of_op)
        for beside in line[2:]:  # the column of explanations, which exists only if there are marks to explain
            beside.axis("off")
            beside.text(0, 1, "\n".join(words[op]), va="top", fontsize=6.3, linespacing=1.2, color="#222222")
    _axes(sheet.panels, operations)
    handles = [one.handle() for one in every]
    return sheet.finish(f"{run.experiment}: from latency to throughput", handles, notes.of_marks(rows))


def _axes(panels: Any, operations: Sequence[str]) -> None:
    """Sets the same scales for every operation, so that they can be compared; labels only the outer panels."""
    for column, show, what in ((0, seconds_tick, "time per call"), (1, si, f"{UNIT}/s")):
        wide, tall = (extent(panels[:, column], which) for which in "xy")
        for axes, op in zip(panels[:, column], operations, strict=True):
            log_axis(axes, "x", show=si, span=wide, max_ticks=5)
            log_axis(axes, "y", show=show, span=tall, max_ticks=6)
            entitle(axes, f"{short(op)}: {what}")
            axes.tick_params(labelbottom=axes is panels[-1, column])
        entitle(panels[-1, column], x=UNIT)


def _inside(op: str, run: CaseFindings) -> list[Crossing]:
    """The crossings that lie between two measured sizes."""
    inside = [c for c in run.crossings if c.op == op and c.below is not None and c.from_ is not None]
    return sorted(inside, key=lambda crossing: crossing.from_ or 0)


def _half(op: str, run: CaseFindings) -> list[HalfPerformance]:
    return [k for k in run.knees if k.op == op and k.elements.known and k.below is not None]


def _letters(crossings: Sequence[Crossing]) -> dict[int, str]:
    """A letter for each distinct size."""
    sizes = dict.fromkeys(crossing.from_ or 0 for crossing in crossings)
    return {size: chr(ord("a") + place % 26) for place, size in enumerate(sizes)}


def _words(op: str, run: CaseFindings) -> list[str]:
    """Explanations of the letters and bars in one operation's panels, in wrapped lines."""
    passed = _inside(op, run)
    letters = _letters(passed)
    lines = []
    for c in passed:
        size = c.from_ or 0
        text = f"{letters[size]}  {si(size)}: {short(c.faster, 24)} passes {short(c.slower, 24)}"
        lines += textwrap.wrap(text, _WORDS, subsequent_indent="    ")
    for k in _half(op, run):
        half = si(float(f"{k.elements.value:.2g}"))
        lines.append(f"n½ {short(k.series, 24)}: {'> ' if k.rising else ''}{half}")
    return lines


def _crossings(line: Sequence[Axes], crossings: Sequence[Crossing]) -> None:
    """Draws a dotted line with a letter through both panels, behind the data."""
    for size, letter in _letters(crossings).items():
        for axes in line:
            marks.boundary(axes, size, letter, y=0.995, va="top", color="#222222", zorder=1.9)


def _knees(axes: Axes, knees: Sequence[HalfPerformance], of_op: Sequence[Series]) -> None:
    """Draws a short bar at (n½, half of the best throughput) of each series."""
    colours = {one.label: marks.series_style(one.place)[0] for one in of_op if any(map(believed, one.rows))}
    for knee in knees:
        axes.plot(
            [knee.elements.value], [knee.best_per_s.value / 2], marker="|", markersize=10, markeredgewidth=1.2,
            color=colours.get(knee.series, "black"), zorder=5,
        )  # fmt: skip
