# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a first run, from a document with one of each kind of entry."""

from __future__ import annotations

import re
from typing import Any

import fabricate_cases
import pytest

from jaxbench.report.table import Cell
from jaxbench.suites import first_run_page as first_run

MACHINE = {"platform": "gpu", "device_kind": "NVIDIA H100", "devices": 8, "cores": 64, "cpu_model": "CPU & Co"}


def item(agrees: str, *, run: str = "smoke-cnn", expected: str = "It works.", **changes: Any) -> dict[str, Any]:
    stage, about = run.split("-")
    facts = {
        "expected": expected,
        "found": "1 of 1",
        "agrees": agrees,
        "judged": 2,
        "right": 2,
        "detail": "",
        "why": [],
    }
    return {"stage": stage, "about": about, "run": run, **facts, **changes}


def document(*items: dict[str, Any], outcome: str = "done") -> dict[str, Any]:
    runs = dict.fromkeys(item["run"] for item in items)
    about = {"outcome": outcome, "seconds": 12.4, "said": "<because>", "words": ["run", "cnn"]}
    return {
        "machine": MACHINE,
        "card": fabricate_cases.card(),
        "parts": {run: {**about, "stage": run.split("-")[0], "about": run.split("-")[1]} for run in runs},
        "found": {
            run: {"items": [i for i in items if i["run"] == run], "grid": {"pmap": "yes"} if "smoke" in run else {}}
            for run in runs
        },
    }


def test_the_answer_comes_first_and_is_counted() -> None:
    against = item("NO", why=["pmap: <wrong>"])
    unknown = item("cannot tell", run="scaling-cnn", why=["no interval."])
    assert first_run.headlines(document(item("yes"), against, unknown)) == [
        "Not everything is as expected: 1 of 3 expectations are NOT met. 1 cannot be judged, for the reasons below."
    ]
    assert first_run.headlines(document(item("yes"))) == [
        "Everything that can be judged is as expected: 1 of 1 expectations are met."
    ]
    answer, left = first_run.headlines(document(item("yes"), outcome="skipped"))
    assert answer.startswith("Nothing contradicts expectations so far") and left.startswith("1 of 1 parts")


def test_an_unexpected_result_stands_alone_with_its_sentence() -> None:
    text = first_run.render(document(item("yes"), item("NO", why=["pmap: <wrong>"])), [])
    section = text[text.index("Not as expected") : text.index('<h2 id="expected">')]
    assert "pmap: &lt;wrong&gt;" in section and "smoke-cnn" in section
    assert "Not as expected" not in first_run.render(document(item("yes")), [])
    assert "first-run.json" in text and "Home folders" in text and "CPU &amp; Co" in text


def test_agreement_in_several_runs_is_one_line_with_numbers_of_few_and_many_sentences_counted() -> None:
    sheet = first_run.expectations([item("yes"), item("yes", run="smoke-gpt"), item("NO", run="smoke-mlp")])
    (together, alone) = sheet.lines
    assert together.cells[:2] == ("Is every strategy right with every model?", "It works.")
    assert together.cells[2:] == ("4 of 4 programs", Cell("yes", "ok"), "smoke-cnn, smoke-gpt")
    assert alone.cells[3:] == (Cell("NO", "no"), "smoke-mlp")
    few = [item("yes", detail="59 %"), item("yes", run="smoke-gpt", detail="41 %")]
    assert first_run.expectations(few).lines[0].cells[2] == "4 of 4 programs. cnn: 59 %. gpt: 41 %"
    assert first_run.expectations(few * 2).lines[0].cells[2] == "8 of 8 programs"
    assert first_run.why(item("NO", why=[str(n) for n in range(9)])) == "0; 1; 2; 3; 4; and 4 more"


def test_the_grid_has_an_empty_cell_where_a_model_has_no_such_strategy() -> None:
    made = document(item("yes"), item("yes", run="smoke-gpt"), item("yes", run="scaling-gpt"))
    made["found"]["smoke-gpt"]["grid"] = {"pipeline": "NO"}
    sheet = first_run.grid(made)
    assert [column.name for column in sheet.columns] == ["model", "pipeline", "pmap"]
    cnn, gpt = ("cnn", Cell(""), Cell("yes", "ok")), ("gpt", Cell("NO", "no"), Cell(""))
    assert [line.cells for line in sheet.lines] == [cnn, gpt]


@pytest.mark.parametrize("outcome", ["done", "broken", "skipped"])
def test_the_commands_say_what_they_came_to(outcome: str) -> None:
    text = first_run.render(document(item("yes"), outcome=outcome), [])
    assert "jaxbench run cnn" in text and f">{outcome}</td>" in text
    assert ("&lt;because&gt;" in text) == ("<details open>" in text) == (outcome != "done")
    assert f"1 commands in 0 minutes: 1 {outcome}" in text
    assert re.search(r"8 x NVIDIA H100", text) and "Matrix products" in text
