# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From latency to throughput: seconds per call and elements per second over the size, a row of panels an operation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.crossings import Crossing, Knee
from jaxbench.analysis.intervals import Estimate
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, seconds_tick, si
from jaxbench.report.figures.canvas import GREY, short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import Series, believed, of_op, plot, remarks, split

CAPTION = (
    "Left: small sizes are read as time, which is flat as long as starting the work costs more than the work. Right: "
    "large sizes are read as throughput. Dotted lines: the size from which one way is faster than another. Short "
    "bars: n½, where a series reaches half of its best throughput."
)
_WORDS = 29  # letters in a line of the column that says what the marks mean


def draw(material: Material) -> Figure | None:
    """None when no size was measured."""
    rows = [row for row in material.rows if row.point.elements and row.timing.step_s.known]
    if not rows:
        return None
    series = split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations = list(dict.fromkeys(row.point.op for row in rows))
    words = {op: _words(op, material) for op in operations}
    figure = canvas.blank()
    ratios = [1, 1, 0.6] if any(words.values()) else [1, 1]
    panels = figure.subplots(len(operations), len(ratios), squeeze=False, width_ratios=ratios)
    for line, op in zip(panels, operations, strict=True):
        mine = of_op(series, op)
        for one in mine:
            plot(line[0], one, elements, lambda row: row.timing.step_s)
            plot(line[1], one, elements, per_second)
        _crossings(line[:2], _told(op, material))
        _knees(line[1], _half(op, material), mine)
    _axes(panels, operations, material.unit)
    for line, op in zip(panels[:, 2:], operations, strict=True):
        for beside in line:  # there is none where no mark needs words
            _legend_of_marks(beside, words[op])
    lines = canvas.legend(
        figure, [one.handle() for one in series], title=f"{material.experiment}: from latency to throughput"
    )
    notes = canvas.footnotes(figure, remarks(rows))
    tall = max(1.65 if len(operations) <= 4 else 1.35, 0.25 + 0.108 * max(map(len, words.values())))
    figure.set_figheight(0.5 + tall * len(operations) + 0.16 * lines + 0.12 * notes)
    return figure


def elements(row: CaseRow) -> float:
    return float(row.point.elements or 0)


def per_second(row: CaseRow) -> Estimate:
    """Elements per second: the ends of the interval of the time swap."""
    time, count = row.timing.step_s, elements(row)
    if not time.has_interval:
        return Estimate(value=count / time.value)
    return Estimate(value=count / time.value, lo=count / time.hi, hi=count / time.lo)


def _axes(panels: Any, operations: Sequence[str], unit: str) -> None:
    """The same scales for every operation, so that they can be compared; written at the edge only."""
    for line, op in zip(panels, operations, strict=True):
        line[0].set_title(f"{short(op)}: time per call", loc="left")
        line[1].set_title(f"{short(op)}: {unit}/s", loc="left")
    for column, show in ((0, seconds_tick), (1, si)):
        every = [axes.dataLim for axes in panels[:, column]]
        tall = [y for lim in every for y in (lim.y0, lim.y1)]
        wide = [x for lim in every for x in (lim.x0, lim.x1)]
        for axes in panels[:, column]:
            log_axis(axes, "x", show=si, span=wide, most=5)
            log_axis(axes, "y", show=show, span=tall, most=6)
            axes.tick_params(labelbottom=axes is panels[-1, column])
        panels[-1, column].set_xlabel(unit)


def _told(op: str, material: Material) -> list[Crossing]:
    """The crossings that lie between two measured sizes."""
    found = [c for c in material.crossings if c.op == op and c.below is not None and c.from_ is not None]
    return sorted(found, key=lambda crossing: crossing.from_ or 0)


def _half(op: str, material: Material) -> list[Knee]:
    return [k for k in material.knees if k.op == op and k.elements.known and k.below is not None]


def _letters(crossings: Sequence[Crossing]) -> dict[int, str]:
    """A letter for each different size."""
    sizes = dict.fromkeys(crossing.from_ or 0 for crossing in crossings)
    return {size: chr(ord("a") + place % 26) for place, size in enumerate(sizes)}


def _words(op: str, material: Material) -> list[str]:
    """What the letters and bars of one operation's panels mean, in lines."""
    told = _told(op, material)
    letters = _letters(told)
    lines = []
    for c in told:
        size = c.from_ or 0
        text = f"{letters[size]}  {si(size)}: {short(c.faster, 24)} passes {short(c.slower, 24)}"
        lines += textwrap.wrap(text, _WORDS, subsequent_indent="    ")
    for k in _half(op, material):
        half = si(float(f"{k.elements.value:.2g}"))
        lines.append(f"n½ {short(k.series, 24)}: {'> ' if k.rising else ''}{half}")
    return lines


def _legend_of_marks(axes: Axes, words: Sequence[str]) -> None:
    axes.axis("off")
    axes.text(
        0, 1, "\n".join(words), va="top", fontsize=6.3, linespacing=1.2, transform=axes.transAxes, color="#222222"
    )


def _crossings(line: Sequence[Axes], crossings: Sequence[Crossing]) -> None:
    """A dotted line with a letter through both panels, behind the data."""
    for size, letter in _letters(crossings).items():
        for axes in line:
            axes.axvline(size, color=GREY, linewidth=0.7, linestyle=(0, (1, 1.2)), zorder=1)
            axes.annotate(
                letter, (size, 0.995), xycoords=("data", "axes fraction"), xytext=(2, 0), textcoords="offset points",
                va="top", fontsize=6.3, color="#222222", zorder=1.9,
            )  # fmt: skip


def _knees(axes: Axes, knees: Sequence[Knee], series: Sequence[Series]) -> None:
    """A short bar at (n½, half of the best throughput) of each series."""
    colours = {one.label: one.colour for one in series if any(believed(row) for row in one.rows)}
    for knee in knees:
        axes.plot(
            [knee.elements.value], [knee.best_per_s.value / 2], marker="|", markersize=10, markeredgewidth=1.2,
            color=colours.get(knee.series, "black"), zorder=5,
        )  # fmt: skip
