# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every output of a comparison: right, valid, and safe against special characters in names."""

from __future__ import annotations

import html
import io
import json
import math
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from features.comparison.comparisons import CASES, HOSTILE, MIXED, compared, renamed
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from jaxbench.features.comparison import judge, page
from jaxbench.features.comparison import ratio as ratios
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.figures import _VERDICTS_STYLES, LIMIT, draw_verdicts, selected, ticks
from jaxbench.features.comparison.judge import CANNOT_TELL, FASTER, SAME, SLOWER
from jaxbench.features.comparison.page import as_json, junit, markdown, show
from jaxbench.report.drawing import canvas

every = pytest.mark.parametrize("case", CASES)
_XSD = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def terminal(comparison: Comparison, width: int = 100) -> str:
    out = io.StringIO()
    show(comparison, Console(file=out, width=width, force_terminal=False))
    return out.getvalue()


@every
def test_json_has_the_same_fields_and_no_number_that_json_cannot_hold(case: str) -> None:
    made = json.loads(json.dumps(as_json(CASES[case]), allow_nan=False))
    assert [*made] == (
        "schema kind a b verdict exit_code metric margin alpha paired confidence spread autocorrelation overall points "
        "factors across software left_out phases"
    ).split()
    answers = CASES[case].answers
    for answer, told in zip((*answers.points, answers.overall), (*made["points"], made["overall"]), strict=True):
        assert told["verdict"] == answer.verdict and told["processes"] == answer.processes._asdict()
        assert told["ratio"]["lo"] == (answer.ratio.lo if answer.ratio.has_interval else None)
    assert (made["schema"], made["kind"], made["exit_code"]) == (1, "comparison", CASES[case].exit_code)


@every
def test_junit_is_valid_and_counts_right(case: str) -> None:
    comparison = CASES[case]
    written = junit(comparison, HOSTILE)
    _XSD.validate(io.BytesIO(written))
    suite = ElementTree.fromstring(written)[0]
    cases = suite.findall("testcase")
    assert len(cases) == len(comparison.answers.points) + 1 + len(comparison.left_out) == int(suite.get("tests", ""))
    for kind, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{kind}")) == int(suite.get(count, ""))
    for answer, told in zip((*comparison.answers.points, comparison.answers.overall), cases, strict=False):
        assert (told.find("failure") is not None) == (answer.verdict == SLOWER)
        assert (told.find("skipped") is not None) == (answer.verdict == CANNOT_TELL)
        values = {p.get("name"): p.get("value") for p in told.iter("property")}
        assert values["verdict"] == answer.verdict
        assert ("ratio_lo" in values) == answer.ratio.has_interval and "nan" not in values.values()
    assert len(suite.findall("testcase/error")) == len(comparison.left_out)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.add(tag)


@every
def test_markdown_is_a_table_and_no_name_breaks_out(case: str) -> None:
    text = markdown(CASES[case], HOSTILE)
    text.encode()
    assert Tags(text).found == {"details", "summary"}
    assert text.count("<details>") == text.count("</details>")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    points = len(CASES[case].answers.points)
    assert len(rows) == 2 + points + (points > 1) and {row.count("|") for row in rows} == {6}
    assert text.splitlines()[0].startswith("## ") and CASES[case].verdict in text.splitlines()[0]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)


@every
def test_terminal_says_all_within_its_width(case: str) -> None:
    comparison = CASES[case]
    text = terminal(comparison)
    flat = re.sub(r"\s+", " ", text)
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text and "\u202e" not in text and "nan" not in text.replace("nance", "")
    assert page.headline(comparison) in flat and text.strip().startswith(comparison.verdict.capitalize())
    for answer in comparison.answers.points:
        assert page.shown_ratio(answer.ratio) in flat and answer.why in flat
    for sentence in (*map(str, comparison.left_out), *comparison.software):
        assert page.clean(sentence) in flat


def cells(text: str) -> list[str]:
    """The first column of the table of a Markdown text, as a reader sees it."""
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    rows = re.findall(r"<tr>\s*<td[^>]*>(.*?)</td>", rendered)
    assert not re.search(r"<(?!/?(h2|p|table|thead|tbody|tr|th|td|details|summary|ul|li|strong)\b)", rendered), rendered
    return [html.unescape(row) for row in rows]


@given(st.text())
@example(HOSTILE)
@example("")
@example("0)")
@example("12. x")
@example("- x")
@example("[a](javascript:b) ![c](d) <!-- | \\| &lt; https://e.f ~~g~~ 1. - # _h_ *i*")
@settings(deadline=None, max_examples=60)
def test_any_name_arrives_and_nothing_in_it_is_obeyed(name: str) -> None:
    comparison = renamed(CASES["one point"], name)
    assert cells(markdown(comparison, name)) == [page.named(name)]
    written = junit(comparison, name)
    _XSD.validate(io.BytesIO(written))
    assert ElementTree.fromstring(written).find(".//testcase").get("name") == page.named(name)  # type: ignore[union-attr]
    assert json.loads(json.dumps(as_json(comparison)))["points"][0]["name"] == name
    assert not any(unicodedata.category(letter) == "Cc" for letter in terminal(comparison) if letter != "\n")


def test_narrow_terminal_keeps_the_numbers_and_same_times_give_the_same_bytes() -> None:
    text = terminal(CASES["normal"], width=72)
    assert all(page.shown_ratio(answer.ratio) in text for answer in CASES["normal"].answers.points)
    assert junit(compared(MIXED), "x") == junit(compared(MIXED), "x")
    assert markdown(compared(MIXED), "x") == markdown(compared(MIXED), "x")


def test_cases_are_what_they_are_called() -> None:
    assert {answer.verdict for answer in CASES["normal"].answers.points} == {SAME, SLOWER, FASTER, CANNOT_TELL}
    assert CASES["nothing told"].verdict == CANNOT_TELL and CASES["nothing told"].exit_code == 2
    assert CASES["slow in one"].verdict == SLOWER and CASES["slow in one"].answers.overall.verdict != SLOWER


def test_throughput_turns_the_ratio_and_not_the_verdict() -> None:
    time, rate = CASES["normal"].answers, CASES["throughput"].answers
    for slow, fast in zip(time.points, rate.points, strict=True):
        assert slow.verdict == fast.verdict and math.isclose(slow.ratio.value, 1 / fast.ratio.value)
        assert fast.ratio.lo < fast.ratio.value < fast.ratio.hi
    assert "above 1, B is faster" in terminal(CASES["throughput"])
    assert "above 1, B is slower" in terminal(CASES["normal"])
    assert "k/s" in terminal(CASES["throughput"]) and " ms" in terminal(CASES["normal"])


def test_headline_names_the_point_that_decided() -> None:
    said = page.headline(CASES["slow in one"])
    assert said.startswith("Slower at 1 of 3 points (data_parallel/strong/1). Overall B's time per step is 0.")
    assert page.headline(CASES["nothing told"]).startswith("Cannot tell: ")
    assert "assumed, not measured" in terminal(CASES["few processes"])
    assert "assumed, not measured" not in terminal(CASES["normal"])
    assert "the spread was calibrated here" in terminal(CASES["normal"])
    assert "the spread was" not in terminal(CASES["few processes"])
    assert "5 processes, 20 rounds per point" in terminal(CASES["normal"])
    assert "1 process, 4 rounds per point" in terminal(CASES["few processes"])


@pytest.mark.parametrize("case", ["normal", "one point", "hundred"])
def test_levels_add_up_to_alpha(case: str) -> None:
    answers = CASES[case].answers
    point, overall = (level.decides for level in page.levels(answers))
    assert point and overall
    assert math.isclose(len(answers.points) * (1 - point) + (1 - overall), judge.ALPHA)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("factors", [(1.05,), MIXED])
def test_levels_are_those_that_decide(
    paired: bool, factors: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    alphas: list[float] = []

    def spy(times: ratios.Ratio, alpha: float, margin: float, *, same: bool) -> str:
        alphas.append(alpha)
        return SAME

    monkeypatch.setattr(judge, "decide", spy)
    answers = compared(factors, paired=paired, processes=8).answers
    point, overall = (level.decides for level in page.levels(answers))
    assert point and overall
    assert all(math.isclose(alpha, 1 - point) for alpha in alphas[: len(factors)])
    assert math.isclose(alphas[-1], 1 - overall)


def test_pairs_say_how_often_one_looked_and_never_95_percent() -> None:
    text = re.sub(r"\s+", " ", terminal(CASES["pairs"]))
    assert "11 pairs of processes" in text and "3 looks for a verdict" in text
    assert "autocorrelation of neighbouring pairs: " in text
    assert "95 %" not in text and "B / A [interval]" in text
    answers = CASES["pairs"].answers
    point, overall = page.levels(answers)
    assert point.decides == point.shown == 1 - 0.05 * 6 / (3 * math.pi) ** 2 / 2 / 6
    assert as_json(CASES["pairs"])["paired"] and as_json(CASES["pairs"])["spread"]["sd"] is None
    assert "after 6 pairs" in terminal(CASES["few pairs"])


@pytest.mark.parametrize(
    ("value", "lo", "hi", "said"),
    [
        (1.0234, 1.0123, 1.0345, "1.023 [1.012, 1.034]"),
        (1.00021, 1.00001, 1.00041, "1.0002 [1.0000, 1.0004]"),
        (0.012345, 0.012, 0.0126, "0.0123 [0.0120, 0.0126]"),
        (123.4, 110.0, 140.0, "123.4 [110.0, 140.0]"),
        (1.5, math.nan, math.nan, "1.500"),
        (math.nan, math.nan, math.nan, ""),
    ],
)
def test_ratios_are_written_to_their_precision(value: float, lo: float, hi: float, said: str) -> None:
    assert page.shown_ratio(page.Estimate(value=value, lo=lo, hi=hi)) == said


@every
def test_figure_is_drawn(case: str) -> None:
    made = draw_verdicts(CASES[case])
    assert made is not None
    rows = min(len(CASES[case].answers.points), LIMIT)
    assert len(made.axes[0].get_yticks()) == rows + (rows > 1)


def test_figure_renders_any_name_and_each_verdict_has_its_own_mark() -> None:
    for case in ("hostile", "normal"):
        assert set(canvas.render(lambda case=case: draw_verdicts(CASES[case]))) == set(canvas.FORMATS)
    looks = {(marker, inside == "white") for _, marker, inside in _VERDICTS_STYLES.values()}
    assert len(looks) == 4


def test_many_points_are_chosen_and_said() -> None:
    answers = CASES["hundred"].answers
    shown = selected(answers.points)
    assert len(shown) == LIMIT and shown == [p for p in answers.points if p in shown]
    assert all(p in shown for p in answers.points if p.verdict == SLOWER)
    made = draw_verdicts(CASES["hundred"])
    assert made is not None and "40 of 100 points" in str(made._supxlabel.get_text())


@pytest.mark.parametrize(("low", "high"), [(0.97, 1.03), (0.999, 1.001), (0.5, 1.9), (0.1, 30.0), (1.0, 1.06)])
def test_ticks_are_few_and_round(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 2 <= len(found) <= 9 and all(low <= tick <= high * 1.0000001 for tick in found)
    if low < 1 < high:
        assert any(math.isclose(tick, 1) for tick in found)
