# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison for its readers: the terminal, the summary page of a CI job, JUnit XML, and JSON for programs.

The sentences and numbers of a comparison, shared by the terminal, Markdown, XML and figures.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from rich.console import Console
from rich.text import Text

from jaxbench.analysis.quantities import percent, seconds
from jaxbench.analysis.waterfall import TERMS
from jaxbench.features.comparison import judge, sequential
from jaxbench.features.comparison.comparison import ONE_DEVICE, Comparison, factor_sentences
from jaxbench.features.comparison.judge import ALPHA, CANNOT_TELL, FASTER, SAME, SLOWER, Answer, Answers, Metric
from jaxbench.records import documents
from jaxbench.report.page import section
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill, throughput
from jaxbench.statistics.bootstrap import CALIBRATED, MIN_PROCESSES, Estimate

_STYLES = {FASTER: "ok", SLOWER: "no", CANNOT_TELL: "unchecked"}
_CALLED = {
    "step_s": "time per step",
    "trace_s": "time to trace",
    "lower_s": "time to lower",
    "compile_s": "time to compile",
    "first_run_s": "time of the first run",
    "peak_bytes": "peak memory",
}
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}  # bidirectional controls reorder the text
_PHASE_NAMES = {
    "trace_s": "trace",
    "lower_s": "lower",
    "compile_s": "compile",
    "first_run_s": "first run",
    "step_s": "step",
    "throughput": "step",
}
SHOWN = 0.95
SCHEMA = 1  # of comparison.json
STYLES = {FASTER: "green", SLOWER: "bold red", SAME: "", CANNOT_TELL: "yellow"}
# CI services show the summary of a job as Markdown, where the name of a run must not become a link or an image.
_MARKS = re.compile(r"([\\`*_{}\[\]#~$!])")  # characters that are special in Markdown but not in HTML
_LIST = re.compile(r"^(\d{0,9})([-+.)])")  # begins one


def clean(text: str) -> str:
    """The text as one line. Characters that a terminal would obey or an XML parser would refuse become spaces."""
    return " ".join("".join(" " if _harmful(letter) else letter for letter in text).split())


# Names come from the files of other people: a run folder may be downloaded.
def _harmful(letter: str) -> bool:
    """Whether XML refuses a character, or a terminal would act on it."""
    # The last two code points of each plane are no characters, and XML refuses U+FFFE and U+FFFF.
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


def shown_ratio(estimate: Estimate) -> str:
    """A ratio with its interval: "1.023 [1.012, 1.034]", with more digits if it is narrow; "" if unknown."""
    if not estimate.known:
        return ""
    # Two digits of the half width: more would suggest a precision that the interval denies.
    finest = (estimate.hi - estimate.lo) / 2 if estimate.has_interval else estimate.value / 50
    digits = min(6, max(0, -math.floor(math.log10(max(finest, 1e-6)))))
    digits = max(digits, 3 if estimate.value < 10 else 1)  # a ratio near 1 is read in percent, so in thousandths
    between = f" [{estimate.lo:.{digits}f}, {estimate.hi:.{digits}f}]" if estimate.has_interval else ""
    return f"{estimate.value:.{digits}f}{between}"


def answers_table(answers: Answers) -> Table:
    """One line for each point and, for several points, an overall line."""

    def shown(number: float) -> str:
        return value(number, answers.metric)

    columns = (
        Column("point", lambda answer: named(answer.name), kind=TEXT, terminal=ALWAYS),
        Column("A", "a", shown, terminal=ALWAYS),
        Column("B", "b", shown, terminal=ALWAYS),
        Column(f"B / A [{'95 %' if answers.looks is None else 'interval'}]", "ratio", shown_ratio, terminal=ALWAYS),
        Column("verdict", "verdict", kind=TEXT, style=lambda word: _STYLES.get(word, ""), terminal=ALWAYS),
    )
    return fill(columns, _lines(answers), group=lambda answer: answer is answers.overall)  # a rule above the last line


def factor_table(comparison: Comparison) -> Table | None:
    """The waterfalls of both runs as one table; None without waterfalls."""
    if not comparison.factors:
        return None

    def shown(estimate: Estimate, name: str) -> str:
        return seconds(estimate.value) if name == ONE_DEVICE else percent(estimate)

    columns = (
        Column("point", lambda change: named(change.point), kind=TEXT, terminal=ALWAYS),
        Column("factor", lambda change: TERMS.get(change.name, change.name), kind=TEXT, terminal=ALWAYS),
        Column("A", lambda change: shown(change.a, change.name), terminal=ALWAYS),
        Column("B", lambda change: shown(change.b, change.name), terminal=ALWAYS),
        Column("B faster by it [95 %]", "faster", shown_ratio, terminal=ALWAYS),
    )
    return fill(columns, comparison.factors, group=lambda change: change.point)


@dataclass(frozen=True)
class _PhaseLine:
    """A line of the table of phases. metric: its unit; the rest is that of its answer."""

    metric: Metric
    answer: Answer


def phase_table(comparison: Comparison) -> Table | None:
    """Each phase before the first step, as the sum over points, and the step itself; None without phases."""
    if not comparison.phases:
        return None
    lines = [_PhaseLine(answers.metric, answers.points[0]) for answers in comparison.phases]
    if comparison.answers.metric.name in judge.METRICS:
        steps = comparison.answers
        lines.append(_PhaseLine(steps.metric, steps.points[0] if len(steps.points) == 1 else steps.overall))
    columns = (
        Column("phase", lambda line: _PHASE_NAMES.get(line.metric.name, line.metric.name), kind=TEXT, terminal=ALWAYS),
        Column("A", lambda line: value(line.answer.a, line.metric), terminal=ALWAYS),
        Column("B", lambda line: value(line.answer.b, line.metric), terminal=ALWAYS),
        Column("B / A [interval]", "answer.ratio", shown_ratio, terminal=ALWAYS),
        Column("verdict", "answer.verdict", kind=TEXT, style=lambda word: _STYLES.get(word, ""), terminal=ALWAYS),
    )
    return fill(columns, lines)


def _lines(answers: Answers) -> list[Answer]:
    """All points, and the overall answer if there are several."""
    return [*answers.points, *([answers.overall] if len(answers.points) > 1 else [])]


def headline(comparison: Comparison) -> str:
    """The verdict, the overall ratio with its interval, and the points that decided if single points did."""
    answers, overall = comparison.answers, comparison.answers.overall
    verdict = answers.verdict.capitalize()
    if not overall.ratio.known:
        return f"{verdict}: {overall.why or 'no point has a verdict'}."
    about = f"B's {called(answers.metric)} is {shown_ratio(overall.ratio)} times A's"
    count = len(answers.points)
    alike = len({point.ratio.has_interval for point in answers.points}) == 1
    counted = f"{count} points" if alike else f"the points with an interval, of {count}"
    over = f", the geometric mean over {counted}" if count > 1 else ""
    if slow := deciding(comparison):  # otherwise "slower" next to an overall ratio of 1 would look like an error
        which = ", ".join(slow[:3]) + (f" and {len(slow) - 3} more" if len(slow) > 3 else "")
        return f"{verdict} at {len(slow)} of {count} points ({which}). Overall {about}{over}: {overall.verdict}."
    return f"{verdict}: {about}{over}."


def deciding(comparison: Comparison) -> list[str]:
    """The points that make the verdict slower if the overall ratio does not."""
    if comparison.answers.overall.verdict == SLOWER:
        return []
    return [named(point.name) for point in comparison.answers.points if point.verdict == SLOWER]


Section = tuple[str, list[str]]


class Level(NamedTuple):
    """The confidence levels of the interval shown and of the interval that decides. None: there is no interval yet."""

    shown: float | None
    decides: float | None


def of_pairs(answers: Answers) -> bool:
    """Whether pairs of processes were measured until the verdict was clear (`jaxbench ab`)."""
    return answers.looks is not None


def levels(answers: Answers) -> tuple[Level, Level]:
    """(level of a point, level overall), as `judge` or `judge_pairs` of `judge` uses them."""
    points, look = len(answers.points), answers.looks
    if look is None:
        return Level(SHOWN, 1 - ALPHA / 2 / points), Level(SHOWN, 1 - ALPHA / 2)
    if not look:
        return Level(None, None), Level(None, None)
    alpha = ALPHA * sequential.share(look)
    point, overall = (1 - alpha, 1 - alpha) if points == 1 else (1 - alpha / 2 / points, 1 - alpha / 2)
    return Level(point, point), Level(overall, overall)


def sections(comparison: Comparison, *, helping: bool = True) -> list[Section]:
    """(heading, notes) in order, without empty ones. helping: whether to include what would decide the verdict."""
    answers = comparison.answers
    intervals, alarms = (_of_pairs, _alarms_of_looks) if of_pairs(answers) else (_intervals, _alarms)
    help_lines = _reasons(_lines(answers))
    band = f"{1 / (1 + answers.margin):.3f} to {1 + answers.margin:.3f}"
    margin = (
        f"differences within {100 * answers.margin:.3g} % count as none: same if the whole confidence interval is "
        f"inside {band}; faster or slower if the interval excludes 1 and the ratio is outside that band; otherwise "
        "cannot tell"
    )
    above = f"above 1, B is {'faster' if answers.metric.more_is_better else 'slower'}"
    every = [  # in the order in which a reader asks
        ("What would help", help_lines if helping else []),
        ("Which factor", [clean(each) for each in factor_sentences(comparison.factors, answers.points)]),
        ("Compared", compared(comparison)),
        ("Ratio", [f"B's {called(answers.metric)} over A's: {above}", *intervals(answers)]),
        ("Verdicts", [margin, alarms(answers), *_of_phases(comparison)]),
        ("What else differs", [clean(sentence) for sentence in comparison.software]),
        ("Left out", [clean(str(each)) for each in comparison.left_out]),
    ]
    return [(heading, notes) for heading, notes in every if notes]


def _of_phases(comparison: Comparison) -> Iterator[str]:
    if comparison.phases:
        yield (
            "trace, lower, compile and first run are sums over points, and questions of their own: each has a chance "
            f"of a false faster or slower of at most {_percent(ALPHA)}, counts differences within "
            f"{100 * comparison.phases[0].margin:.3g} % as none, and does not change the verdict"
        )


def _reasons(answers: Sequence[Answer]) -> list[str]:
    """What would decide each answer, each reason once with the answers that have it."""
    by_reason: dict[str, list[str]] = {}
    for answer in answers:
        if answer.why:
            by_reason.setdefault(clean(answer.why), []).append(named(answer.name))
    if [len(names) for names in by_reason.values()] == [len(answers)]:
        return [*by_reason]
    return [
        f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {why}"
        for why, names in by_reason.items()
    ]


def _side(name: str, text: str) -> str:
    """What a side is: "A is --config.batch=64"; the title of an arm, "A (--config.batch=64)", has its name already."""
    shown = clean(text)
    return f"{name} is {shown[3:-1] if shown.startswith(f'{name} (') else shown}"


def compared(comparison: Comparison) -> list[str]:
    """Notes on what A and B are, and on how often each was measured."""
    across = [f"declared to differ: {clean(', '.join(comparison.across))}"] if comparison.across else []
    return [_side("A", comparison.a), _side("B", comparison.b), *across, *_counts(comparison.answers)]


def _alarms(answers: Answers) -> str:
    """The confidence level of the verdicts, and the chance of a false alarm."""
    points, (point, overall) = len(answers.points), (level.decides or 0.0 for level in levels(answers))
    if points == 1:
        return (
            f"the verdict uses the {_percent(point)} interval, which is wider than the interval shown: if there is no "
            f"difference, the chance of a false faster or slower is at most {_percent(1 - point)}"
        )
    return (
        "verdicts use intervals that are wider than those shown: if there is no difference anywhere, the chance of any "
        f"false faster or slower in the table is at most {_percent(ALPHA)}; half of it goes to the overall answer "
        f"({_percent(overall)} interval), half is divided by {points} points (Bonferroni; {_percent(point)} "
        "intervals)"
    )


def _alarms_of_looks(answers: Answers) -> str:
    """The note on repeated looks, which make the intervals wider."""
    look, points, (point, overall) = answers.looks, len(answers.points), (level.decides for level in levels(answers))
    if point is None or overall is None:
        return f"the first look for a verdict is after {sequential.LOOKS[0]} pairs"
    each = f", {_percent(point)} for each of {points} points" if points > 1 else ""
    return (
        f"{look} look{'' if look == 1 else 's'} for a verdict so far; each look spends a share of {_percent(ALPHA)}: "
        "if there is no difference anywhere, the chance of any false faster or slower at any look is at most that; "
        f"with the share of this look, verdicts use intervals of {_percent(overall)}{each}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.5g} %"


def _of_pairs(answers: Answers) -> Iterator[str]:
    yield "A and B are geometric means over processes of each one's median"
    yield "the ratio of a pair of processes is the median over their rounds of B over A"
    yield "the ratio shown is the geometric mean over pairs"
    yield (
        "intervals: Student's t on the differences between pairs; their standard deviation counts as at least "
        f"{100 * sequential.FLOOR:g} %"
    )
    if math.isfinite(answers.autocorrelation):
        yield (
            f"autocorrelation of neighbouring pairs: {answers.autocorrelation:.2f}; intervals are widened for the "
            "upper end of its confidence interval"
        )


def _intervals(answers: Answers) -> Iterator[str]:
    """Notes on how the intervals are computed, which depends on the number of processes."""
    fewest = min((min(answer.processes) for answer in answers.points), default=0)
    largest = max((max(answer.processes) for answer in answers.points), default=0)
    yield "A and B are geometric means over processes of each one's median"
    yield "95 % intervals: Student's t, with Welch's degrees of freedom"
    if largest >= MIN_PROCESSES:
        where = "" if fewest >= MIN_PROCESSES else f"with {MIN_PROCESSES} or more processes: "
        yield f"{where}standard error by bootstrap over whole processes"
    # A number that is assumed must be said to be: most intervals depend on it.
    spread, calibrated = answers.spread, answers.spread.kind == CALIBRATED
    if fewest < MIN_PROCESSES:
        yield (
            f"with fewer than {MIN_PROCESSES} processes: standard error by bootstrap over rounds, plus the A/A spread "
            f"between processes: {100 * spread.sd:.2g} % each ({spread.kind if calibrated else clean(spread.source)})"
        )
    yield (
        "A and B were measured at two times, and runs of one program at two times differ by "
        f"{100 * spread.session_sd:.2g} % each ({spread.session_kind}), which every interval includes"
    )
    if calibrated:
        yield f"the spread was {clean(spread.source)}"


def _counts(answers: Answers) -> Iterator[str]:
    """How many processes and rounds each side has."""
    points: Sequence[Answer] = answers.points
    if of_pairs(answers):
        yield f"{_span([point.processes[0] for point in points], 'pair')} of processes"
        return
    for side, which in enumerate("AB"):
        processes, rounds = ([getattr(point, name)[side] for point in points] for name in ("processes", "rounds"))
        yield f"{which}: {_span(processes, 'process')}, {_span(rounds, 'round')} per point"


def _span(values: Sequence[int], what: str) -> str:
    """The range of some counts: "3 to 5 rounds"."""
    low, high = min(values), max(values)
    many = "es" if what.endswith("s") else "s"
    return f"{low if low == high else f'{low} to {high}'} {what}{'' if high == 1 else many}"


def show(comparison: Comparison, console: Console) -> None:
    """Prints the verdict as a sentence, the tables, what would help, and all notes."""
    console.print()
    console.print(Text(headline(comparison), style=STYLES[comparison.verdict] or "bold"))
    console.print()
    for table in filter(None, (answers_table(comparison.answers), phase_table(comparison), factor_table(comparison))):
        console.print(table.terminal(console.width))
        console.print()
    for heading, sentences in sections(comparison):
        section(heading, sentences, console)


def markdown(comparison: Comparison, name: str) -> str:
    """The verdict and the table, then collapsed sections on how it was decided."""
    lines = [f"## {escape(name)}: {comparison.verdict}", "", escape(headline(comparison)), ""]
    lines += answers_table(comparison.answers).markdown(escape)
    for table in filter(None, (phase_table(comparison), factor_table(comparison))):
        lines += ["", *table.markdown(escape)]
    for heading, sentences in sections(comparison):
        lines += ["", "<details>", f"<summary>{html.escape(heading)}</summary>", ""]
        lines += [*(f"- {escape(note)}" for note in sentences), "", "</details>"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Escapes a text for Markdown and its tables."""
    marked = _LIST.sub(r"\1\\\2", _MARKS.sub(r"\\\1", clean(text)))
    # "://": an address becomes a link without any markup. "|" would begin a new cell. "&" comes first.
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("://", "&#58;//")):
        marked = marked.replace(letter, entity)
    return marked


def junit(comparison: Comparison, name: str) -> bytes:
    """One test for each point and one for the overall answer.

    "slower" is a failure, "cannot tell" is skipped, and a point that was left out is an error.
    """
    answers = [*comparison.answers.points, comparison.answers.overall]
    verdicts = [answer.verdict for answer in answers]
    counts = {
        "tests": len(answers) + len(comparison.left_out),
        "failures": verdicts.count(SLOWER),
        "errors": len(comparison.left_out),
        "skipped": verdicts.count(CANNOT_TELL),
    }
    attributes = {"name": named(name), **{key: str(count) for key, count in counts.items()}}
    root = Element("testsuites", attributes)
    suite = SubElement(root, "testsuite", attributes)
    judged = comparison.answers
    _add_properties(
        suite,
        {
            "verdict": comparison.verdict,
            "a": comparison.a,
            "b": comparison.b,
            "metric": judged.metric.name,
            "margin": f"{judged.margin:g}",
            "spread": judged.spread.source,
        },
    )
    for answer in answers:
        _case(suite, name, answer, comparison)
    for each in comparison.left_out:
        case = SubElement(suite, "testcase", classname=named(name), name=named(each.point))
        # Not "skipped", which CI services hide: nobody would notice that a point has vanished.
        SubElement(case, "error", type="left out", message=named(each.why)).text = clean(str(each))
    lines = [headline(comparison)]
    for heading, sentences in sections(comparison, helping=False):
        lines += [heading, *(f"  {sentence}" for sentence in sentences)]
    SubElement(suite, "system-out").text = "\n".join(lines)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: Element, name: str, answer: Answer, comparison: Comparison) -> None:
    """Adds one answer to a JUnit document: slower is a failure, undecided is skipped."""
    metric = comparison.answers.metric
    case = SubElement(suite, "testcase", classname=named(name), name=named(answer.name))
    ratio = {f"ratio{end}": getattr(answer.ratio, key) for end, key in (("", "value"), ("_lo", "lo"), ("_hi", "hi"))}
    known = {key: repr(float(value)) for key, value in ratio.items() if value == value}  # NaN is not equal to itself
    _add_properties(case, {"verdict": answer.verdict, **known})
    message = f"B's {called(metric)} is {shown_ratio(answer.ratio) or 'an unknown number of'} times A's"
    if answer.verdict == SLOWER:
        SubElement(case, "failure", type=SLOWER, message=f"slower: {message}").text = message
    elif answer.verdict == CANNOT_TELL:
        SubElement(case, "skipped", message=f"cannot tell: {message}; {clean(answer.why)}")


def _add_properties(parent: Element, named: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in named.items():
        SubElement(properties, "property", name=name, value=clean(value))


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for a program. Unknown numbers are null.

    margin: ratios from 1 / (1 + margin) to 1 + margin count as the same. alpha: the largest chance of any false
    "faster" or "slower" in the table. paired: whether the ratios are within pairs of processes, which show themselves
    how much processes and sessions differ, so `spread` has no numbers.
    """
    answers, metric, spread = comparison.answers, comparison.answers.metric, comparison.answers.spread
    point, overall = levels(answers)
    paired = of_pairs(answers)
    session_sd = None if paired else spread.session_sd  # both sides of a pair are of one session
    document = {  # programs read these names: they may be added to, never changed
        "schema": SCHEMA,
        "kind": "comparison",
        "a": comparison.a,
        "b": comparison.b,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "metric": {"name": metric.name, "unit": metric.unit, "more_is_better": metric.more_is_better},
        "margin": answers.margin,
        "alpha": ALPHA,
        "paired": paired,
        "confidence": {"point": point, "overall": overall},
        "spread": {"sd": spread.sd, "df": spread.df, "source": spread.source, "session_sd": session_sd},
        "autocorrelation": answers.autocorrelation,
        "overall": answers.overall,
        "points": answers.points,
        "factors": comparison.factors,
        "across": comparison.across,
        "software": comparison.software,
        "left_out": [str(each) for each in comparison.left_out],
        "phases": [_as_phase(answers) for answers in comparison.phases],
    }
    return dict(documents.plain(document))


def _as_phase(answers: Answers) -> dict[str, object]:
    answer = answers.points[0]
    about = {"name": answers.metric.name, "unit": answers.metric.unit, "margin": answers.margin}
    return {**about, "verdict": answer.verdict, "a": answer.a, "b": answer.b, "ratio": answer.ratio, "why": answer.why}
