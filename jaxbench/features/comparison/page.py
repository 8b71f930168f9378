# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison for its readers: the terminal, the summary page of a CI job, JUnit XML, and JSON for programs."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from rich.console import Console
from rich.text import Text

from jaxbench.features.comparison import sentences as words
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.judge import ALPHA, CANNOT_TELL, FASTER, SAME, SLOWER, Answer
from jaxbench.records import documents
from jaxbench.report.page import section

SCHEMA = 1  # of comparison.json
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


# CI services show the summary of a job as Markdown, where the name of a run must not become a link or an image.
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
    attributes = {"name": words.named(name), **{key: str(count) for key, count in counts.items()}}
    root = Element("testsuites", attributes)
    suite = SubElement(root, "testsuite", attributes)
    judged = comparison.answers
    _add_properties(
        suite,
        {
            "verdict": comparison.verdict, "a": comparison.a, "b": comparison.b, "metric": judged.metric.name,
            "margin": f"{judged.margin:g}", "spread": judged.spread.source,
        },
    )  # fmt: skip
    for answer in answers:
        _case(suite, name, answer, comparison)
    for each in comparison.left_out:
        case = SubElement(suite, "testcase", classname=words.named(name), name=words.named(each.point))
        # Not "skipped", which CI services hide: nobody would notice that a point has vanished.
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
    known = {key: repr(float(value)) for key, value in ratio.items() if value == value}  # NaN is not equal to itself
    _add_properties(case, {"verdict": answer.verdict, **known})
    message = f"B's {words.called(metric)} is {words.ratio(answer.ratio) or 'an unknown number of'} times A's"
    if answer.verdict == SLOWER:
        SubElement(case, "failure", type=SLOWER, message=f"slower: {message}").text = message
    elif answer.verdict == CANNOT_TELL:
        SubElement(case, "skipped", message=f"cannot tell: {message}; {words.clean(answer.why)}")


def _add_properties(parent: Element, named: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in named.items():
        SubElement(properties, "property", name=name, value=words.clean(value))


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for a program. Unknown numbers are null.

    margin: ratios from 1 / (1 + margin) to 1 + margin count as the same. alpha: the largest chance of any false
    "faster" or "slower" in the table. paired: whether the ratios are within pairs of processes, which show themselves
    how much processes and sessions differ, so `spread` has no numbers.
    """
    answers, metric, spread = comparison.answers, comparison.answers.metric, comparison.answers.spread
    point, overall = words.levels(answers)
    paired = words.paired(answers)
    session_sd = None if paired else spread.session_sd  # both sides of a pair are of one session
    document = {  # programs read these names: they may be added to, never changed
        "schema": SCHEMA, "kind": "comparison", "a": comparison.a, "b": comparison.b,
        "verdict": comparison.verdict, "exit_code": comparison.exit_code,
        "metric": {"name": metric.name, "unit": metric.unit, "more_is_better": metric.more_is_better},
        "margin": answers.margin, "alpha": ALPHA, "paired": paired,
        "confidence": {"point": point, "overall": overall},
        "spread": {"sd": spread.sd, "df": spread.df, "source": spread.source, "session_sd": session_sd},
        "autocorrelation": answers.autocorrelation, "overall": answers.overall, "points": answers.points,
        "factors": comparison.factors, "across": comparison.across, "software": comparison.software,
        "left_out": [str(each) for each in comparison.left_out],
    }  # fmt: skip
    return dict(documents.plain(document))
