# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sentences and numbers of a comparison, shared by the terminal, Markdown, XML and figures."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

from jaxbench.analysis.headline import seconds
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import percent
from jaxbench.analysis.waterfall import CALLED
from jaxbench.report.numbers import throughput
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill
from jaxbench.verdicts.comparison import ONE_DEVICE, Comparison
from jaxbench.verdicts.judge import CANNOT_TELL, FASTER, SLOWER, Answer, Answers, Metric

_STYLES = {FASTER: "ok", SLOWER: "no", CANNOT_TELL: "unchecked"}
_CALLED = {"step_s": "time per step"}
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}  # bidirectional controls reorder the text


def clean(text: str) -> str:
    """The text as one line. Characters that a terminal would obey or an XML parser would refuse become spaces."""
    return " ".join("".join(" " if _harmful(letter) else letter for letter in text).split())


def _harmful(letter: str) -> bool:
    control = unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or ord(letter) & 0xFFFE == 0xFFFE
    return control or unicodedata.bidirectional(letter) in _TURNS


def named(text: str) -> str:
    """A cleaned name; "?" if nothing is left."""
    return clean(text) or "?"


def called(metric: Metric) -> str:
    """The metric's name for readers: "time per step"."""
    return _CALLED.get(metric.name, metric.name)


def value(number: float, metric: Metric) -> str:
    """A value with its unit: "12.3 ms", "20.8k/s"; "" if unknown."""
    if not math.isfinite(number):
        return ""
    return seconds(number) if metric.unit == "s" else throughput(number) + metric.unit.removeprefix("1")


def ratio(estimate: Estimate) -> str:
    """A ratio with its interval: "1.023 [1.012, 1.034]", with more digits if it is narrow; "" if unknown."""
    if not estimate.known:
        return ""
    finest = (estimate.hi - estimate.lo) / 2 if estimate.has_interval else estimate.value / 50
    digits = min(6, max(0, -math.floor(math.log10(max(finest, 1e-6)))))
    digits = max(digits, 3 if estimate.value < 10 else 1)
    between = f" [{estimate.lo:.{digits}f}, {estimate.hi:.{digits}f}]" if estimate.has_interval else ""
    return f"{estimate.value:.{digits}f}{between}"


def table(answers: Answers) -> Table:
    """One line for each point and, for several points, an overall line."""

    def shown(number: float) -> str:
        return value(number, answers.metric)

    columns = (
        Column("point", lambda answer: named(answer.name), kind=TEXT, terminal=ALWAYS),
        Column("A", "a", shown, terminal=ALWAYS),
        Column("B", "b", shown, terminal=ALWAYS),
        Column(f"B / A [{'95 %' if answers.looks is None else 'interval'}]", "ratio", ratio, terminal=ALWAYS),
        Column("verdict", "verdict", kind=TEXT, style=lambda word: _STYLES.get(word, ""), terminal=ALWAYS),
    )
    return fill(columns, _lines(answers), group=lambda answer: answer is answers.overall)


def factors(comparison: Comparison) -> Table | None:
    """The waterfalls of both runs as one table; None without waterfalls."""
    if not comparison.factors:
        return None

    def shown(estimate: Estimate, name: str) -> str:
        return seconds(estimate.value) if name == ONE_DEVICE else percent(estimate)

    columns = (
        Column("point", lambda change: named(change.point), kind=TEXT, terminal=ALWAYS),
        Column("factor", lambda change: CALLED.get(change.name, change.name), kind=TEXT, terminal=ALWAYS),
        Column("A", lambda change: shown(change.a, change.name), terminal=ALWAYS),
        Column("B", lambda change: shown(change.b, change.name), terminal=ALWAYS),
        Column("B faster by it [95 %]", "faster", ratio, terminal=ALWAYS),
    )
    return fill(columns, comparison.factors, group=lambda change: change.point)


def _lines(answers: Answers) -> list[Answer]:
    """All points, and the overall answer if there are several."""
    return [*answers.points, *([answers.overall] if len(answers.points) > 1 else [])]


def headline(comparison: Comparison) -> str:
    """The verdict, the overall ratio with its interval, and the points that decided if single points did."""
    answers, overall = comparison.answers, comparison.answers.overall
    verdict = answers.verdict.capitalize()
    if not overall.ratio.known:
        return f"{verdict}: {overall.why or 'no point has a verdict'}."
    about = f"B's {called(answers.metric)} is {ratio(overall.ratio)} times A's"
    count = len(answers.points)
    over = f", the geometric mean over {_counted(answers.points)}" if count > 1 else ""
    if slow := deciding(comparison):
        which = ", ".join(slow[:3]) + (f" and {len(slow) - 3} more" if len(slow) > 3 else "")
        return f"{verdict} at {len(slow)} of {count} points ({which}). Overall {about}{over}: {overall.verdict}."
    return f"{verdict}: {about}{over}."


def deciding(comparison: Comparison) -> list[str]:
    """The points that make the verdict slower if the overall ratio does not."""
    if comparison.answers.overall.verdict == SLOWER:
        return []
    return [named(point.name) for point in comparison.answers.points if point.verdict == SLOWER]


def _counted(points: Sequence[Answer]) -> str:
    if len({point.ratio.has_interval for point in points}) == 1:
        return f"{len(points)} points"
    return f"the points with an interval, of {len(points)}"


def help_lines(comparison: Comparison) -> list[str]:
    """For each inconclusive answer, a line with what would decide it."""
    return [f"{named(answer.name)}: {clean(answer.why)}" for answer in _lines(comparison.answers) if answer.why]


def direction(metric: Metric) -> str:
    """How to read the ratio: "above 1, B is slower"."""
    return f"above 1, B is {'faster' if metric.more_is_better else 'slower'}"
