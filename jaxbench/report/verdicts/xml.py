# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as JUnit XML, which continuous-integration systems show as tests."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import CANNOT_TELL, SLOWER, Answer


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
    _properties(suite, _of_all(comparison))
    for answer in answers:
        _case(suite, name, answer, comparison)
    for each in comparison.left_out:
        case = SubElement(suite, "testcase", classname=words.named(name), name=words.named(each.point))
        SubElement(case, "error", type="left out", message=words.named(each.why)).text = words.clean(str(each))
    lines = [words.headline(comparison)]
    for heading, sentences in notes.sections(comparison, helping=False):
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
    _properties(case, {"verdict": answer.verdict, **known})
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


def _properties(parent: Element, named: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in named.items():
        SubElement(properties, "property", name=name, value=words.clean(value))
