# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report on a run of cases: complete, safe to open, explicit about refused cases, readable on a terminal."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest
from report import runs
from rich.console import Console
from thin import thin

from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.report import build, details, run_report, sentences, table
from jaxbench.statistics.bootstrap import Estimate


def shown(path: Path, width: int = 100) -> str:
    """The report on a terminal of this width."""
    with open(path / "out.txt", "w") as file:
        build.write(path, Console(width=width, file=file))
    return (path / "out.txt").read_text()


def html(path: Path) -> str:
    build.write(path)
    return (path / "report.html").read_text()


def both(path: Path, width: int = 100) -> tuple[str, str]:
    """The page and the terminal output of one report."""
    seen = shown(path, width)
    return (path / "report.html").read_text(), seen


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return both(runs.folder(tmp_path_factory.mktemp("collectives"), "collectives"))


def renamed(made: fab.Made, **changes: Any) -> fab.Made:
    return dataclasses.replace(made, record=dataclasses.replace(made.record, **changes))


@pytest.mark.parametrize("view", thin(list(runs.VIEWS), 2))
@runs.blank()
def test_a_whole_run_is_ok_and_everything_is_there(tmp_path: Path, view: str) -> None:
    made = [m for m in runs.VIEWS[view]() if not m.record.wrong]
    runs.folder(tmp_path, view, made)
    outcome = build.write(tmp_path)
    assert outcome.ok and outcome.sentences == []
    assert {store.MANIFEST, store.CONFIG, store.RECORDS, "summary.csv", "report.html"} <= {
        p.name for p in tmp_path.iterdir()
    }
    text = (tmp_path / "report.html").read_text()
    figures = {p.stem for p in (tmp_path / "figures").iterdir()}
    assert figures and all(f'aria-label="{name} figure"' in text for name in figures)
    with open(tmp_path / "summary.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(made)


@pytest.mark.full
@pytest.mark.usefixtures("every_format")
def test_a_figure_that_is_no_longer_drawn_is_removed(tmp_path: Path) -> None:
    runs.folder(tmp_path, "curves", machine=fab.card())
    build.write(tmp_path)
    assert (tmp_path / "figures/roofline.png").is_file()
    (tmp_path / "machine.json").unlink()
    build.write(tmp_path)
    assert not list((tmp_path / "figures").glob("roofline.*")) and (tmp_path / "figures/curves.png").is_file()


@runs.undrawn()
def test_refused_rows_are_shown_and_do_not_fail_the_run(tmp_path: Path) -> None:
    runs.folder(tmp_path, "matmul", [fab.matmul(512, call_s=0.01), runs.removed(fab.matmul(256, call_s=0.01))])
    outcome = build.write(tmp_path)
    assert outcome.ok
    (refused,) = sentences.refusals(run_report.find(RunFolder(tmp_path)).rows)
    assert refused.startswith(
        'matmul/float32/256x256x256/jit did not pass "two clocks agree": an iteration takes 0.099 % of the time'
    )
    text = shown(tmp_path)
    assert "Refused by the gates" in text and re.search(r"256x256x256 .* refused", text)


def test_refused_rows_of_one_reason_share_a_sentence(tmp_path: Path) -> None:
    zeros = [renamed(fab.matmul(n, call_s=0.01), zeros=1.0) for n in (64, 128, 256, 512, 1024)]
    found = runs.findings(tmp_path, "matmul", zeros)
    (said,) = sentences.refusals(found.rows)
    assert said.count("matmul/float32/") == 5 and said.endswith('"inputs not all zeros": every input value is zero.')


@runs.undrawn()
def test_missing_failed_partial_wrong_and_unchecked_are_shortfalls(tmp_path: Path) -> None:
    made = [fab.matmul(n, call_s=0.01) for n in (64, 128, 256, 512, 1024, 2048)]
    made[0] = dataclasses.replace(made[0], rounds=0, recorded=False)
    made[1] = dataclasses.replace(made[1], failure="out of memory")
    made[2] = dataclasses.replace(made[2], rounds=3)
    made[3] = runs.wrong(made[3])
    made[4] = renamed(made[4], checks=())
    outcome = build.write(runs.folder(tmp_path, "matmul", made))
    assert not outcome.ok and outcome.sentences == [
        "matmul/float32/64x64x64/jit is missing: no round was measured.",
        "matmul/float32/128x128x128/jit is recorded as failed: measure: out of memory.",
        "matmul/float32/256x256x256/jit is partial: 3 of 5 rounds were measured.",
        "matmul/float32/512x512x512/jit is wrong: result: 3 values are wrong.",
        "matmul/float32/1024x1024x1024/jit is unchecked.",
    ]
    assert sentences.refusals(run_report.find(RunFolder(tmp_path)).rows) == [], "said once, as wrong"
    text = shown(tmp_path)
    for word in ("missing", "failed", "partial", "wrong", "unchecked", "passed"):
        assert re.search(rf"x\d+ .* {word} *\n", text), word


@runs.undrawn()
def test_points_left_out_of_the_plan_are_named(tmp_path: Path) -> None:
    said = "4096x4096x4096 needs 192 MiB, more than there is."
    runs.folder(tmp_path, "matmul", left_out=[said])
    assert all(said in text for text in both(tmp_path))


def test_ids_of_one_figure_are_not_those_of_another(collectives: tuple[str, str]) -> None:
    text, _ = collectives
    figures = re.findall(r"<svg(?! class=.strip).*?</svg>", text, flags=re.DOTALL)  # block timelines have no ids
    ids = [set(re.findall(r'\bid="([^"]+)"', figure)) for figure in figures]
    # Three figures; two of them are drawn a second time for a phone.
    assert len(ids) == 5 and all(ids) and sum(map(len, ids)) == len(set().union(*ids))
    for figure, its in zip(figures, ids, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', figure)) <= its


@runs.undrawn()
def test_the_page_shows_both_clocks_the_gates_and_raw_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "RAW_ROUNDS", 8)
    text = html(runs.folder(tmp_path, "matmul", [fab.matmul(512, call_s=0.01), fab.matmul(256, call_s=0.01)]))
    clocks, raw = (
        ("per iteration of the loop", "two clocks agree", "loops of 2 L"),
        ("(first 4 rounds)", "1 more rounds are"),
    )
    assert all(said in text for said in (*clocks, *raw))
    assert '<td class="text ok">passed</td>' in text


def test_oversubscribed_rows_are_marked(collectives: tuple[str, str]) -> None:
    text, seen = collectives
    assert '<tr class=" soft">' in text and "proves correctness, not speed" in text
    assert "2° 2x4:x" in seen


@runs.undrawn()
def test_a_long_run_shows_its_telling_sizes(tmp_path: Path) -> None:
    sizes = [2**e for e in range(4, 20)]
    made = [fab.kernel(op, n, call_s=1e-5 + n * 1e-9) for op in ("a", "b", "c") for n in sizes]
    found = runs.findings(tmp_path, "curves", made)
    rows, said = run_report.shortened(found.rows, "curves")
    assert [row.point.elements for row in rows if row.point.op == "a"] == [16, 16384, 2**19], "smallest, half, largest"
    assert "all 48 points are on the page" in said
    text = shown(tmp_path)
    assert said.strip()[:30] in text and text.count("passed") == 9


@pytest.mark.parametrize(("series", "lines"), [(20, 20), (60, 40)])
def test_a_very_long_run_shows_largest_sizes_only(tmp_path: Path, series: int, lines: int) -> None:
    made = [fab.kernel(f"op{i}", n, call_s=1e-5 + n * 1e-9) for i in range(series) for n in (1, 10**4, 10**6)]
    found = runs.findings(tmp_path, "curves", made, rounds=3)
    rows, said = run_report.shortened(found.rows, "curves")
    assert len(rows) == lines and {row.point.elements for row in rows} == {10**6} and f"all {3 * series}" in said


def test_a_short_run_is_shown_whole(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "curves")
    assert run_report.shortened(found.rows, "curves") == (found.rows, "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.34e-6, "12.3 µs"), (0.9996, "1000 ms"), (3.2e-9, "3.20 ns"), (12.0, "12.0 s"), (float("nan"), "")],
)
def test_times_have_three_digits_and_a_unit(value: float, text: str) -> None:
    assert table.short_time(Estimate(value=value)) == text


@runs.undrawn()
def test_a_share_of_the_peak_is_shown_but_not_of_refused_rows(tmp_path: Path) -> None:
    made = [fab.matmul(1024, call_s=2 * 1024**3 / 5e10), fab.matmul(2048, call_s=2 * 2048**3 / 9e11)]
    runs.folder(tmp_path, "matmul", made, machine=fab.card(), noise=0, drift=0)
    text = shown(tmp_path)
    assert re.search(r"1024x1024x1024 .* 50 +passed", text)
    assert re.search(r"2048x2048x2048 .* ms +900 \[[\d., ]+\] +refused", text), "no share of the peak"


def test_an_unknown_view_or_kind_of_run_is_one_sentence(tmp_path: Path) -> None:
    runs.folder(tmp_path, "matmul")
    manifest = json.loads((tmp_path / store.MANIFEST).read_text())
    for change, said in (
        ({"view": "matmull"}, "did you mean 'matmul'"),
        ({"measures": "case"}, "did you mean 'cases'"),
    ):
        store.write_json(tmp_path / store.MANIFEST, {**manifest, "plan": {**manifest["plan"], **change}})
        with pytest.raises(UserError, match=said):
            build.write(tmp_path)
