# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison for its readers: the terminal, the summary page of a CI job, JUnit XML, and JSON for programs."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from rich.console import Console
from rich.text import Text

from jaxbench.features.comparison import sentences as words
from jaxbench.features.comparison.comparison import Change, Comparison
from jaxbench.features.comparison.judge import ALPHA, CANNOT_TELL, FASTER, SAME, SLOWER, Answer
from jaxbench.features.comparison.sentences import Level
from jaxbench.records import documents
from jaxbench.report.page import section

STYLES = {FASTER: "green", SLOWER: "bold red", SAME: "", CANNOT_TELL: "yellow"}


def show(comparison: Comparison, console: Console) -> None:
    """Prints the verdict as a sentence, the tables, what would help, and all notes."""
    console.print()
    console.print(Text(words.headline(comparison), style=STYLES[comparison.verdict] or "bold"))
    console.print()
    for table in filter(None, (words.table(comparison.answers), words.factor_table(comparison))):
        console.print(table.terminal(console.width))
        console.print()
    for heading, sentences in words.sections(comparison):
        section(heading, sentences, console)


_MARKS = re.compile(r"([\\`*_{}\[\]#~$!])")  # characters that are special in Markdown but not in HTML


def markdown(comparison: Comparison, name: str) -> str:
    """The verdict and the table, then collapsed sections on how it was decided."""
    lines = [f"## {escape(name)}: {comparison.verdict}", "", escape(words.headline(comparison)), ""]
    lines += words.table(comparison.answers).markdown(escape)
    if (factors := words.factor_table(comparison)) is not None:
        lines += ["", *factors.markdown(escape)]
    for heading, sentences in words.sections(comparison):
        lines += ["", "<details>", f"<summary>{html.escape(heading)}</summary>", ""]
        lines += [*(f"- {escape(note)}" for note in sentences), "", "</details>"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Escapes a text for Markdown and its tables."""
    marked = _MARKS.sub(r"\\\1", words.clean(text))
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
    attributes = {"name": words.named(name), **{key: str(count) for key, count in counts.items()}}
    root = Element("testsuites", attributes)
    suite = SubElement(root, "testsuite", attributes)
    _add_properties(suite, _of_all(comparison))
    for answer in answers:
        _case(suite, name, answer, comparison)
    for each in comparison.left_out:
        case = SubElement(suite, "testcase", classname=words.named(name), name=words.named(each.point))
        SubElement(case, "error", type="left out", message=words.named(each.why)).text = words.clean(str(each))
    lines = [words.headline(comparison)]
    for heading, sentences in words.sections(comparison, helping=False):
        lines += [heading, *(f"  {sentence}" for sentence in sentences)]
    SubElement(suite, "system-out").text = "\n".join(lines)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: Element, name: str, answer: Answer, comparison: Comparison) -> None:
    metric = comparison.answers.metric
    case = SubElement(suite, "testcase", classname=words.named(name), name=words.named(answer.name))
    ratio = {f"ratio{end}": getattr(answer.ratio, key) for end, key in (("", "value"), ("_lo", "lo"), ("_hi", "hi"))}
    known = {key: repr(float(value)) for key, value in ratio.items() if value == value}
    _add_properties(case, {"verdict": answer.verdict, **known})
    message = f"B's {words.called(metric)} is {words.ratio(answer.ratio) or 'an unknown number of'} times A's"
    if answer.verdict == SLOWER:
        SubElement(case, "failure", type=SLOWER, message=f"slower: {message}").text = message
    elif answer.verdict == CANNOT_TELL:
        SubElement(case, "skipped", message=f"cannot tell: {message}; {words.clean(answer.why)}")


def _of_all(comparison: Comparison) -> dict[str, str]:
    answers = comparison.answers
    return {
        "verdict": comparison.verdict, "a": comparison.a, "b": comparison.b, "metric": answers.metric.name,
        "margin": f"{answers.margin:g}", "spread": answers.spread.source,
    }  # fmt: skip


def _add_properties(parent: Element, named: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in named.items():
        SubElement(properties, "property", name=name, value=words.clean(value))


SCHEMA: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """What is compared. more_is_better: a ratio above 1 is faster."""

    name: str
    unit: str
    more_is_better: bool


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence levels of the intervals for a point, and for the overall answer."""

    point: Level
    overall: Level


@dataclass(frozen=True, kw_only=True)
class SpreadEntry:
    """Run-to-run variance, used if a side has fewer than 3 processes.

    Attributes:
      sd, df: of the logarithm of processes' medians; null if pairs of processes show it.
      source: whether it was calibrated or assumed, as a clause.
      session_sd: between sessions, such as two days; null if pairs were measured at the same time.
    """

    sd: float
    df: float
    source: str
    session_sd: float | None


@dataclass(frozen=True, kw_only=True)
class ComparisonDocument:
    """Two runs, compared point by point.

    Attributes:
      a, b: names of the runs. B is judged against A.
      verdict: slower if any answer is, otherwise the overall one.
      exit_code: 0 same or faster, 1 slower, 2 cannot tell.
      margin: a smaller difference counts as none: ratios from 1 / (1 + margin) to 1 + margin.
      alpha: the largest chance of any false "faster" or "slower" in the table.
      paired: whether ratios are within pairs of processes, measured until the verdict was clear.
      autocorrelation: of neighbouring pairs; null without pairs.
      overall: the geometric mean over points; processes and rounds are those of the point with the fewest processes.
      factors: of each point with ablations in both runs, in the order of its waterfall.
      across: the fields that were declared to differ.
      software: software differences that may change the time.
      left_out: each point that is not compared: name, colon, reason.
    """

    schema: Literal[1] = SCHEMA
    kind: Literal["comparison"] = "comparison"
    a: str
    b: str
    verdict: str
    exit_code: int
    metric: MetricEntry
    margin: float
    alpha: float = ALPHA
    paired: bool
    confidence: Confidence
    spread: SpreadEntry
    autocorrelation: float
    overall: Answer
    points: tuple[Answer, ...]
    factors: tuple[Change, ...]
    across: tuple[str, ...]
    software: tuple[str, ...]
    left_out: tuple[str, ...]


def json_schema() -> dict[str, Any]:
    """The JSON schema of a comparison."""
    definitions: dict[str, Any] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:jaxbench:comparison:{SCHEMA}"}
    return {**head, **documents.json_schema(ComparisonDocument, definitions, written=True), "$defs": definitions}


def as_json(comparison: Comparison) -> dict[str, Any]:
    answers, metric, spread = comparison.answers, comparison.answers.metric, comparison.answers.spread
    point, overall = words.levels(answers)
    document = ComparisonDocument(
        a=comparison.a,
        b=comparison.b,
        verdict=comparison.verdict,
        exit_code=comparison.exit_code,
        metric=MetricEntry(name=metric.name, unit=metric.unit, more_is_better=metric.more_is_better),
        margin=answers.margin,
        paired=words.paired(answers),
        confidence=Confidence(point=point, overall=overall),
        spread=SpreadEntry(
            sd=spread.sd, df=spread.df, source=spread.source,
            session_sd=None if words.paired(answers) else spread.session_sd,
        ),
        autocorrelation=answers.autocorrelation,
        overall=answers.overall,
        points=answers.points,
        factors=comparison.factors,
        across=comparison.across,
        software=comparison.software,
        left_out=tuple(str(each) for each in comparison.left_out),
    )  # fmt: skip
    return dict(documents.plain(document))
