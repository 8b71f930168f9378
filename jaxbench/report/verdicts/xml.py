# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison as JUnit's XML, which systems of continuous integration show as tests."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import CANNOT_TELL, SLOWER, Answer


def junit(comparison: Comparison, name: str) -> bytes:
    """A test a point and one for the overall answer: slower fails, what cannot be told is skipped, a point that is
    left out is an error."""
    answers = [*comparison.answers.points, comparison.answers.overall]
    verdicts = [answer.verdict for answer in answers]
    counts = {
        "tests": len(answers) + len(comparison.left_out),
        "failures": verdicts.count(SLOWER),
        "errors": len(comparison.left_out),
        "skipped": verdicts.count(CANNOT_TELL),
    }
    said = {"name": words.named(name), **{key: str(count) for key, count in counts.items()}}
    root = Element("testsuites", said)
    suite = SubElement(root, "testsuite", said)
    _properties(suite, _of_all(comparison))
    for answer in answers:
        _case(suite, name, answer, comparison)
    for sentence in comparison.left_out:
        point, _, why = sentence.partition(": ")
        case = SubElement(suite, "testcase", classname=words.named(name), name=words.named(point))
        SubElement(case, "error", type="left out", message=words.named(why or sentence)).text = words.clean(sentence)
    lines = [words.headline(comparison)]
    for heading, sentences in notes.sections(comparison):
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
    said = f"B's {words.called(metric)} is {words.ratio(answer.ratio) or 'an unknown number of'} times A's"
    if answer.verdict == SLOWER:
        SubElement(case, "failure", type=SLOWER, message=f"slower: {said}").text = said
    elif answer.verdict == CANNOT_TELL:
        SubElement(case, "skipped", message=f"cannot tell: {said}; {words.clean(answer.why)}")


def _of_all(comparison: Comparison) -> dict[str, str]:
    answers = comparison.answers
    found = {"verdict": comparison.verdict, "a": comparison.a, "b": comparison.b}
    return {**found, "metric": answers.metric.name, "margin": f"{answers.margin:g}", "spread": answers.spread.source}


def _properties(parent: Element, named: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in named.items():
        SubElement(properties, "property", name=name, value=words.clean(value))
