# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The report of a sweep of levers is complete, separates decided from undecided, and survives incomplete runs."""

import csv
import dataclasses
import re
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms as fab
import pytest
from report import runs
from thin import thin

from jaxbench.core import store
from jaxbench.core.store import RunFolder
from jaxbench.report import build, run_report
from jaxbench.report.run_report import RunReport

UNKNOWN = re.compile(r"\b(nan|inf)\b", re.IGNORECASE)


def find(path: Path, kind: str, **facts: Any) -> RunReport:
    return run_report.find(RunFolder(fab.folder(path, kind, **facts)))


def said(path: Path, kind: str, **facts: Any) -> str:
    return "\n".join(find(path, kind, **facts).headlines)


@pytest.mark.usefixtures("every_format")
@pytest.mark.parametrize("kind", thin([*fab.RUNS], 1))
@runs.blank()
def test_a_whole_run_is_ok_and_everything_is_there(tmp_path: Path, kind: str) -> None:
    outcome = build.write(fab.folder(tmp_path, kind))
    assert outcome.ok and outcome.sentences == []
    made = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    shown = [kind, "blocks", *(["search"] if kind == "batch" else [])]
    figures = {f"figures/{name}.{suffix}" for name in shown for suffix in ("svg", "png", "pdf")}
    extra = {"batch": {"search.json"}, "remat": {"remat_law.json"}}.get(kind, set())
    inputs = {store.MANIFEST, store.CONFIG, store.RECORDS, *extra}
    assert made == {"summary.csv", "report.html", *figures, *inputs}
    html = runs.unscripted((tmp_path / "report.html").read_text())
    assert html.count("<figure>") == len(shown) and "No headline" not in html and not UNKNOWN.search(html)


@runs.undrawn()
def test_the_summary_has_arms_levers_and_ratios(tmp_path: Path) -> None:
    build.write(fab.folder(tmp_path, "precision", noise=0, drift=0))
    with open(tmp_path / "summary.csv", newline="") as file:
        rows = {row["precision"]: row for row in csv.DictReader(file)}
    row = rows["bfloat16"]
    expected = {"arm": "precision=bfloat16", "remat": "none", "input": "device", "verdict": "faster", "part": "step"}
    expected |= {"baseline": "jit_auto/strong/1/precision=default", "ratio": "0.6", "arm_speedup": "1.66666667"}
    expected |= {"final_accuracy": "0.972", "skipped_steps": "0", "peak_bytes": "57671680", "temp_bytes": "28835840"}
    assert {name: row[name] for name in expected} == expected
    assert rows["default"]["verdict"] == "baseline" and rows["default"]["ratio"] == "1"
    assert not {"nan", "inf"} & {cell.lower() for r in rows.values() for cell in r.values()}


@runs.undrawn()
def test_a_training_run_has_no_arms_in_its_summary(tmp_path: Path) -> None:
    build.write(fabricate.run_folder(tmp_path, devices=(1, 2)))
    with open(tmp_path / "summary.csv", newline="") as file:
        (row, *_) = csv.DictReader(file)
    assert [row[name] for name in ("arm", "precision", "baseline", "ratio", "verdict")] == [""] * 5


def test_precision_says_time_memory_and_accuracy(tmp_path: Path) -> None:
    text = said(tmp_path, "precision", rounds=10)
    assert re.search(r"bfloat16 takes 0\.6\d \[0\.\d\d, 0\.\d\d\] of default's time; its memory is 0\.55 of def", text)
    assert "final accuracy 0.972 vs 0.974 (one training each)" in text
    assert re.search(r"float32 vs default: inconclusive \(.*the interval contains 1\)", text)


def test_skipped_steps_are_said(tmp_path: Path) -> None:
    arms = fab.precision()
    arms[-1] = dataclasses.replace(arms[-1], outcome={**arms[-1].outcome, "skipped_steps": 3.0})
    assert "(one training each, 3 of 400 steps skipped)" in said(tmp_path, "precision", arms=arms)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("remat", r"sqrt holds 0\.24 of none's scratch memory at \+3\d % \[\d+, \d+\] time\."),
        (
            "batch",
            r"The knee is batch 512: 9\d % \[\d+, \d+\] of the best throughput, 4\d(\.\d)? k images/s at batch 1024",
        ),
        ("batch", r"The largest batch proven to fit into 2\.00 GB .* is 1781"),
        ("accumulate", r"accumulate=16 takes 1\.\d\d \[.*\] of accumulate=1's time; its memory is 0\.07 of accumul"),
        (
            "freeze",
            r"freeze=embed\|blocks takes 0\.51 .*; 95 % fewer trained parameters; 0\.49 of the compiled program's products",  # noqa: E501
        ),
        ("ladder", r"The whole ladder is 2\d\.\d\d \[.*\] x as fast as execution=eager; the rung that gains most is "),
        ("ladder", r"inconclusive: execution=donated"),
        ("phases", r"2 devices: .*communication 2\.\d+ ms \[.*\] \(1\d % \[\d+, \d+\]\)\. They add up"),
        ("inputs", r"input=host spends 3\d % \[\d+, \d+\] of the step on input"),
        ("inputs", r"input=pipeline:8 vs .*: inconclusive"),
        ("inference", r"batch 1: p50 4\d\d µs \[.*\], p99 .* images/s; batch 256: p50 "),
        ("arms", r"precision=bfloat16, remat=none takes 0\.6\d \[.*\] of precision=default, remat=none's time"),
    ],
)
def test_each_question_has_its_sentence(tmp_path: Path, kind: str, words: str) -> None:
    assert re.search(words, said(tmp_path, kind))


def test_with_too_few_calls_the_sentence_has_no_p99(tmp_path: Path) -> None:
    assert "no p99 (60 single calls, and a 99th percentile needs 100)" in said(
        tmp_path, "inference", arms=fab.inference(blocks=10)
    )


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"rounds": 0}, "nothing was measured"),
        ({"devices": (8,), "cores": 2}, "more devices than cores (jit_auto/strong/8/precision=default and 3 more)"),
        (
            {"arms": [dataclasses.replace(arm, ok=False) for arm in fab.precision()]},
            "did not pass its checks (jit_auto/strong/1/precision=default and 3 more)",
        ),
        (
            {"arms": [fab.arm(0.01, precision="default", failed="no"), *fab.precision()[1:]]},
            "the baseline jit_auto/strong/1/precision=default",
        ),
    ],
)
def test_why_there_is_no_headline(tmp_path: Path, facts: dict[str, Any], why: str) -> None:
    (sentence,) = find(tmp_path, "precision", **facts).headlines
    assert sentence.startswith("No headline: ") and why in sentence


def test_one_round_tells_nothing(tmp_path: Path) -> None:
    text = said(tmp_path, "precision", rounds=1)
    assert text.startswith(
        "4 of 4 points ran and match one device; a smoke run measures no speed: a confidence interval"
    )


ODD = ["one round", "oversubscribed", "first failed", "last failed", "nothing", "places"]


@pytest.mark.parametrize(("kind", "odd"), thin([(kind, odd) for kind in fab.RUNS for odd in ODD], 1))
@runs.blank()
def test_odd_runs_still_make_a_page(tmp_path: Path, kind: str, odd: str) -> None:
    arms = fab.RUNS[kind][0]()
    facts: dict[str, Any] = {
        "one round": {"rounds": 1},
        "oversubscribed": {"devices": (4,), "cores": 2},
        "first failed": {"arms": [dataclasses.replace(arms[0], failed="no"), *arms[1:]]},
        "last failed": {"arms": [*arms[:-1], dataclasses.replace(arms[-1], failed="no")]},
        "nothing": {"rounds": 0},
        "places": {"devices": (1, 2, 4, 8), "cores": 2},
    }[odd]
    outcome = build.write(fab.folder(tmp_path, kind, **facts))
    assert outcome.ok == (odd in ("one round", "oversubscribed", "places"))
    html = runs.unscripted((tmp_path / "report.html").read_text())
    assert not UNKNOWN.search(html)
    if odd == "first failed":
        assert "has no times (build: no)" in html


@runs.blank()
def test_a_search_is_shown_with_a_training_run_too(tmp_path: Path) -> None:
    fabricate.run_folder(tmp_path, devices=(1, 2))
    store.write_json(tmp_path / "search.json", fab.SEARCH)
    build.write(tmp_path)
    assert (tmp_path / "figures" / "search.svg").exists()
    assert "is 1781, as predicted" in runs.unscripted((tmp_path / "report.html").read_text())


@pytest.mark.parametrize(
    ("swept", "part", "view"),
    [
        (["precision"], "step", "precision"),
        (["execution"], "step", "arms"),
        (["precision", "batch"], "step", "arms"),
        (["batch"], "inference", "inference"),
        (["precision"], "inference", "arms"),
    ],
)
def test_which_view_shows_a_sweep(tmp_path: Path, swept: list[str], part: str, view: str) -> None:
    arms = [fab.arm(0.01, part=part, rung=f"a{i}", steps=1) for i in range(2)]
    run = RunFolder(fab.lever_folder(tmp_path, arms, swept))
    assert run_report.find(run).view == view


@runs.blank()
def test_parts_over_batches_show_their_phases_and_inference(tmp_path: Path) -> None:
    arms = [
        fab.arm(step_s * n / 64, part=part, batch=n, steps=1, blocks=5)
        for n in (64, 128)
        for part, step_s in (("forward", 3e-3), ("gradient", 9e-3), ("step", 12e-3), ("inference", 2e-3))
    ]
    run = RunFolder(fab.lever_folder(tmp_path, arms, ["part", "batch"]))
    findings = run_report.find(run)
    assert findings.view == "phases" and [one.name for one in findings.phases] == ["batch=64", "batch=128"]
    build.write(tmp_path)
    assert {p.stem for p in (tmp_path / "figures").glob("*.svg")} == {"phases", "inference", "blocks"}


@runs.undrawn()
def test_sets_of_compiler_options_are_ranked_and_said(tmp_path: Path) -> None:
    times = {"default": 10e-3, "onednn": 12e-3, "fast_math": 9e-3, "concurrent": 10e-3, "fast_runtime": 8e-3}
    arms = [fab.Made(levers={"compiler": name}, step_s=step_s) for name, step_s in times.items()]
    fab.lever_folder(tmp_path, arms, ["compiler"], rounds=10)
    manifest = RunFolder(tmp_path).manifest()
    manifest["plan"]["compiler_sets"] = {"onednn": ["xla_cpu_use_onednn=true", "somewhere"]}
    store.write_json(tmp_path / store.MANIFEST, manifest)
    build.write(tmp_path)
    ranking = (
        r"of default: faster: fast_runtime 0\.8.*, fast_math 0\.9.*; slower: onednn 1\.2.*; no .*: concurrent 1\.0"
    )
    run = run_report.find(RunFolder(tmp_path))
    (sentence,) = run.headlines
    assert re.search(ranking, sentence) and "selected" not in sentence
    assert "onednn: xla_cpu_use_onednn=true (source: somewhere)." in runs.unscripted(
        (tmp_path / "report.html").read_text()
    )
    names = runs.drawn(build.figures()["arms"], run).axes[0].get_yticklabels()
    assert [name.get_text() for name in names] == ["default", "fast_runtime", "fast_math", "concurrent", "onednn"]
