# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of two runs: their verdicts, and their waterfalls next to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from jaxbench.features.ablations.figures import WATERFALL_MOST, handles, panel, remarks
from jaxbench.features.comparison import page
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, SAME, SLOWER, Answer, Answers
from jaxbench.report.drawing import contents, marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, plain, round_ticks
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import COLOURS, GREY
from jaxbench.report.drawing.shapes import Chart, Panel, on

LIMIT = 40
BAND = "#e8e8e8"
_VERDICTS_STYLES: dict[str, tuple[str, str, str]] = {  # colour, marker, inside
    SLOWER: (COLOURS[1], "s", COLOURS[1]),
    FASTER: (COLOURS[2], "^", COLOURS[2]),
    SAME: (COLOURS[0], "o", COLOURS[0]),
    CANNOT_TELL: (GREY, "o", "white"),
}


@plot("verdicts")
def draw_verdicts(comparison: Comparison) -> Figure | None:
    """B's value divided by A's, for each point and overall (the geometric mean). Differences within the grey band count
    as the same. Verdicts may use wider intervals than those drawn, to keep false alarms rare in the whole table. The
    scale is logarithmic."""
    answers = comparison.answers
    shown = selected(answers.points)
    if not any(answer.ratio.known for answer in shown):
        return None
    rows = [*shown, answers.overall] if len(answers.points) > 1 else shown
    sheet = Sheet()
    axes = sheet.only()
    _axis(axes, rows, answers)
    for y, answer in enumerate(rows):
        _row(axes, y, answer, overall=answer is answers.overall)
    sheet.names(axes, [short(drawable(page.named(answer.name)), 36) for answer in rows])
    if len(rows) > len(shown):  # the last row is the overall answer
        axes.axhline(len(shown) - 0.5, color="black", linewidth=0.6)
        axes.get_yticklabels()[-1].set_fontweight("bold")
    slow = page.deciding(comparison)
    at = f" at {len(slow)} of {len(answers.points)} points" if slow else ""
    title = f"{page.called(answers.metric)}, B over A: {answers.verdict}{at}"
    return sheet.finish(title, _verdicts_handles(rows, answers.margin), _verdicts_notes(comparison, shown))


def selected(points: Sequence[Answer]) -> list[Answer]:
    """At most LIMIT points, in their order: slower points are kept first, then the most changed ones."""

    def rank(answer: Answer) -> tuple[bool, float]:
        return answer.verdict != SLOWER, -abs(math.log(answer.ratio.value)) if answer.ratio.known else 1.0

    # Ranked for the choice, but drawn in the order of the table.
    chosen = {id(answer) for answer in sorted(points, key=rank)[:LIMIT]}
    return [answer for answer in points if id(answer) in chosen]


def drawable(text: str) -> str:
    """The text with a question mark for each character that the figures' font lacks: matplotlib would warn of each."""
    known = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()
    return "".join(letter if ord(letter) in known else "?" for letter in page.clean(text))


def _axis(axes: Axes, rows: Sequence[Answer], answers: Answers) -> None:
    """Sets a logarithmic axis around 1 and draws the margin's band. Ticks are round numbers."""
    inside = 1 / (1 + answers.margin), 1 + answers.margin
    known = [row.ratio for row in rows if row.ratio.known]
    middle = [*inside, *(ratio.value for ratio in known)]
    ends = [end for ratio in known for end in (ratio.lo, ratio.hi) if math.isfinite(end) and end > 0]
    log_axis(axes, "x", show=lambda value: plain(round(value, 6)))
    # The band is always in view: without it, a small difference would fill the panel and look large.
    low, high = contents.robust(middle, [*ends, *middle])
    room = max((high / low) ** 0.06, 1.005)  # as a factor, because the axis is logarithmic
    axes.set_xlim(low / room, high * room)
    axes.xaxis.set_major_locator(FixedLocator(ticks(low / room, high * room)))
    axes.axvspan(*inside, color=BAND, linewidth=0, zorder=0)
    marks.unity(axes)
    left, right = (SLOWER, FASTER) if answers.metric.more_is_better else (FASTER, SLOWER)
    entitle(axes, x=f"{page.called(answers.metric)}, B over A  (left: B is {left}, right: B is {right})")


def ticks(low: float, high: float) -> list[float]:
    """At most 9 ticks: multiples of a round step for a short axis, else round numbers of each decade."""
    if high / low > 4:
        return round_ticks(low, high)
    for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        multiples = [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if len(multiples) <= 9:
            return multiples
    return round_ticks(low, high)


def _row(axes: Axes, y: int, answer: Answer, *, overall: bool) -> None:
    """Draws one interval, with verdict and numbers right of the panel. Overall is a large diamond in bold."""
    colour, marker, inside = _VERDICTS_STYLES[answer.verdict]
    ratio, weight = answer.ratio, "bold" if overall else "normal"
    if ratio.known:
        ends = [[ratio.value - ratio.lo], [ratio.hi - ratio.value]] if ratio.has_interval else None
        axes.errorbar(
            [ratio.value],
            [y],
            xerr=ends,
            color=colour,
            marker="D" if overall else marker,
            linestyle="none",
            markersize=6 if overall else 4.5,
            markerfacecolor=inside,
            markeredgewidth=0.9,
            capsize=1.8,
            zorder=3,
            elinewidth=1.8 if overall else 0.9,
            capthick=0.8,
        )
    ink = "#333333" if answer.verdict == CANNOT_TELL else colour
    marks.write_at_right(axes, y, answer.verdict, color=ink, fontweight=weight)
    marks.write_at_right(axes, y, page.shown_ratio(ratio), right=52, fontweight=weight)


def _verdicts_handles(rows: Sequence[Answer], margin: float) -> list[Line2D | Patch]:
    """Legend entries of the verdicts that occur, and of the band."""
    found = {row.verdict for row in rows}
    lines = [
        Line2D([], [], label=verdict, linestyle="none", color=colour, marker=marker, markerfacecolor=inside)
        for verdict, (colour, marker, inside) in _VERDICTS_STYLES.items()
        if verdict in found
    ]
    return [*lines, Patch(color=BAND, label=f"within {100 * margin:.3g} %")]


def _verdicts_notes(comparison: Comparison, shown: Sequence[Answer]) -> list[str]:
    """Notes on A and B, on n and the error bars, and on points that are not shown."""
    answers = comparison.answers
    wider = "95 % confidence intervals; verdicts use wider ones"
    which = "the intervals that verdicts use" if page.of_pairs(answers) else wider
    bars = f"error bars: {which}, see docs/STATISTICS.md" if any(a.ratio.has_interval for a in shown) else ""
    few = "no error bar: too few rounds or pairs for one" if any(not a.ratio.has_interval for a in shown) else ""
    large = "large diamond: all points together" if len(answers.points) > 1 and answers.overall.ratio.known else ""
    sentences = [*map(drawable, page.compared(comparison)), "; ".join(filter(None, [bars, few, large]))]
    sentences += notes.rest(len(shown), len(answers.points), "points: the slower ones, then the most changed")
    if comparison.left_out:
        count = len(comparison.left_out)
        sentences.append(f"{count} point{'' if count == 1 else 's'} left out, as the table says")
    return sentences


@plot("factors")
def draw_factors(comparison: Comparison) -> Chart | None:
    """The efficiency of each run in steps down from 100 %: one per factor, with its confidence interval."""
    families = list(dict.fromkeys((pair.a.family, pair.b.family) for pair in comparison.waterfalls))
    if not families:
        return None
    shown = families[:WATERFALL_MOST]
    pairs = [pair for pair in comparison.waterfalls if (pair.a.family, pair.b.family) in shown]
    panels = []
    for family in shown:
        members = [pair for pair in pairs if (pair.a.family, pair.b.family) == family]
        a, b = [pair.a for pair in members], [pair.b for pair in members]
        left = Panel(title=f"A: {short(family[0], 30)}", y="efficiency, %", layers=[on(panel, a)])
        panels.append([left, Panel(title=f"B: {short(family[1], 30)}", layers=[on(panel, b)])])
    every = [one for pair in pairs for one in (pair.a, pair.b)]
    rest = notes.rest(len(shown), len(families), "strategies and scalings, in the order of the table")
    return Chart(
        title="Why not 100 %: A and B",
        panels=panels,
        heights=1.9,
        sharey=True,  # so that steps of A and B can be compared by eye
        handles=handles(every),
        remarks=[*remarks(every), *rest],
    )
