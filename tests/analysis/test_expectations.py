# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The expectations of a run, from records with exactly one error."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as cases_of
import pytest

from jaxbench.analysis import expectations, points, run_rows
from jaxbench.analysis.expectations import CANNOT_TELL, NO, YES, Item
from jaxbench.analysis.run_rows import Row
from jaxbench.core import schema
from jaxbench.core.store import RunFolder

GOOD = tuple(
    schema.Verdict(name=name, ok=True, reason="as it should be", value=1e-6, limit=1e-5)
    for name in ("parameters", "optimizer", "collectives")
)
ROUND = schema.RoundRecord(
    point="", round=0, steps=10, block_s=(0.1,), double_block_s=(0.2,), warmup_block_s=(0.1,), settled=True,
    compilations=0, worker="session0/w0",
)  # fmt: skip
TRACE = schema.ProfileRecord(
    point="", steps=10, wall_s=1.0, kinds={"convolution": 0.7, "collective": 0.1, "idle": 0.2}, top=(), trace="t",
    worker="session0/w0",
)  # fmt: skip


def rows(folder: Path, *records: schema.Record, asked: Sequence[str] = ("pmap", "zero1"), rounds: int = 1) -> list[Row]:
    plan = [
        {"point": f"{s}/strong/2", "strategy": s, "scaling": "strong", "devices": 2, "global_batch": 256,
         "oversubscribed": False}
        for s in asked
    ]  # fmt: skip
    fabricate.write(folder, plan=plan, records=records, rounds=rounds)
    run = RunFolder(folder)
    return run_rows.analyse(points.load(run), config=run.config())


def right(strategy: str, **changes: Any) -> list[schema.Record]:
    """A point that passed its checks and has its one round. compilations: of the round; the rest is the point's."""
    record = fabricate.point_record(strategy=strategy, devices=2, checks=changes.pop("checks", GOOD), **changes)
    return [record, dataclasses.replace(ROUND, point=record.point)]


def failure(strategy: str, reason: str) -> schema.FailureRecord:
    return schema.FailureRecord(
        point=f"{strategy}/strong/2", experiment="cnn", devices=2, stage="compile", reason=reason, strategy=strategy,
        scaling="strong", global_batch=256,
    )  # fmt: skip


def the(items: Sequence[Item], word: str) -> Item:
    (found,) = [item for item in items if word in item.expected]
    return found


def wrong(name: str, reason: str) -> tuple[schema.Verdict, ...]:
    return tuple(dataclasses.replace(v, ok=False, reason=reason) if v.name == name else v for v in GOOD)


def test_all_that_is_right_agrees(tmp_path: Path) -> None:
    found = rows(tmp_path, *right("pmap"), *right("zero1"))
    items = expectations.of_training(found)
    assert [item.agrees for item in items] == [YES] * 5
    assert all(item.right == item.judged == 2 and not item.why for item in items)
    assert the(items, "parameters").found == "2 of 2 programs"
    assert the(items, "parameters").detail == "at most 10 % of the tolerance"
    assert expectations.grid(found) == {"pmap": YES, "zero1": YES}


@pytest.mark.parametrize("name", ["parameters", "optimizer", "collectives"])
def test_a_failed_check_is_no_with_its_sentence(name: str, tmp_path: Path) -> None:
    found = rows(tmp_path, *right("pmap"), *right("zero1", checks=wrong(name, "it is NOT")))
    items = expectations.of_training(found)
    assert [item.why for item in items if item.agrees == NO] == [("zero1/strong/2: it is NOT",)]
    assert the(items, {"collectives": "formula gives"}.get(name, name)).right == 1
    assert expectations.grid(found) == {"pmap": YES, "zero1": NO}


def test_a_check_that_could_not_run_is_no_violation(tmp_path: Path) -> None:
    unchecked = tuple(dataclasses.replace(v, unchecked=v.name == "optimizer") for v in wrong("optimizer", "no room"))
    items = expectations.of_training(rows(tmp_path, *right("pmap"), *right("zero1", checks=unchecked)))
    assert [item.agrees for item in items] == [YES, YES, CANNOT_TELL, YES, YES]
    about = the(items, "optimizer")
    assert (about.right, about.judged, about.why) == (1, 2, ("zero1/strong/2: no room",))


def test_a_check_of_another_name_is_an_item_too(tmp_path: Path) -> None:
    extra = schema.Verdict(name="products", ok=False, reason="12 % are")
    found = rows(tmp_path, *right("pmap", checks=(*GOOD, extra)), asked=["pmap"])
    assert the(expectations.of_training(found), "16 bits").why == ("pmap/strong/2: 12 % are",)


def test_a_failure_is_no_and_a_missing_value_cannot_be_told(tmp_path: Path) -> None:
    found = rows(tmp_path / "a", *right("pmap"), failure("zero1", "out of memory"))
    assert the(expectations.of_training(found), "compiles").agrees == NO
    assert the(expectations.of_training(found), "compiles").why == ("zero1/strong/2: compile: out of memory",)
    assert expectations.grid(found)["zero1"] == NO
    found = rows(tmp_path / "b", *right("pmap"))
    assert the(expectations.of_training(found), "compiles").agrees == CANNOT_TELL
    assert expectations.grid(found)["zero1"] == CANNOT_TELL


def test_nothing_measured_agrees_with_nothing(tmp_path: Path) -> None:
    found = rows(tmp_path)
    items = [*expectations.of_training(found), *expectations.of_scaling(found), expectations.of_profile([])]
    assert not [item for item in items if item.agrees == YES]


def test_a_recompilation_is_no(tmp_path: Path) -> None:
    point, measured = right("pmap")
    found = rows(tmp_path, point, dataclasses.replace(measured, compilations=2), asked=["pmap"])
    assert the(expectations.of_training(found), "compiled while").why == ("pmap/strong/2: 2 programs were compiled",)


def test_one_device_proves_nothing_of_collectives(tmp_path: Path) -> None:
    folder = fabricate.run_folder(tmp_path, devices=[1])
    run = RunFolder(folder)
    items = expectations.of_training(run_rows.analyse(points.load(run), config=run.config()))
    assert the(items, "formula gives").agrees == CANNOT_TELL


@pytest.mark.parametrize(
    ("law", "devices", "agrees"),
    [
        (fabricate.amdahl(0.05), (1, 2, 4), YES),
        (lambda scaling, n: n**1.3, (1, 2, 4), NO),
        (lambda scaling, n: 1.04 * n if n > 1 else 1.0, (1, 2, 4), YES),
        (fabricate.amdahl(0.05), (1,), CANNOT_TELL),
        (lambda scaling, n: n**1.3, (8, 16), CANNOT_TELL),  # more devices than cores prove nothing
    ],
)
def test_efficiency(law: Any, devices: tuple[int, ...], agrees: str, tmp_path: Path) -> None:
    folder = fabricate.run_folder(tmp_path, law=law, devices=devices, cores=4, noise=0.001, drift=0.001)
    run = RunFolder(folder)
    item = the(expectations.of_scaling(run_rows.analyse(points.load(run), config=run.config())), "ideal")
    assert item.agrees == agrees, item
    if agrees == NO:
        assert "strong/2: efficiency 123 % [" in item.why[0]


@pytest.mark.parametrize(("fixed_s", "agrees"), [(0.0, YES), (1.0, NO)])
def test_clocks(fixed_s: float, agrees: str, tmp_path: Path) -> None:
    run = RunFolder(fabricate.run_folder(tmp_path, fixed_s=fixed_s, devices=[1]))
    item = the(expectations.of_scaling(run_rows.analyse(points.load(run), config=run.config())), "clocks")
    assert item.agrees == agrees and all("clocks disagree" in why for why in item.why)


@pytest.mark.parametrize(
    ("kinds", "agrees"),
    [
        ({}, YES),
        ({"convolution": 0.9}, NO),  # 1.2 of the wall time
        ({"convolution": 0.0}, NO),
        ({"convolution": 0.0, "collective": 0.0, "idle": 1.0}, NO),
    ],
)
def test_a_profile_adds_up(kinds: dict[str, float], agrees: str, tmp_path: Path) -> None:
    trace = dataclasses.replace(TRACE, point="pmap/strong/2", kinds={**TRACE.kinds, **kinds})
    item = expectations.of_profile(rows(tmp_path, *right("pmap"), trace, asked=["pmap"]))
    assert item.agrees == agrees
    assert (item.detail == "100.0 % of 100 ms a step, devices busy 80 %") == (agrees == YES)


def test_a_run_without_the_trace_that_was_asked_for_cannot_tell(tmp_path: Path) -> None:
    item = expectations.of_profile(rows(tmp_path, *right("pmap"), asked=["pmap"]))
    assert item.agrees == CANNOT_TELL


def judged(folder: Path, made: Sequence[cases_of.Made], **facts: Any) -> tuple[list[run_rows.Row], dict[str, Any]]:
    run = RunFolder(
        cases_of.case_folder(folder, made, view="matmul", rounds=4, noise=0, drift=0, machine=None, **facts)
    )
    manifest = run.manifest()
    return run_rows.analyse(points.load_cases(run), manifest=manifest, machine=None), manifest


def test_cases_that_are_right_agree(tmp_path: Path) -> None:
    found, manifest = judged(tmp_path, [cases_of.matmul(n, call_s=0.1) for n in (512, 1024)])
    assert [item.agrees for item in expectations.of_cases(found)] == [YES] * 3
    peak = expectations.of_peak(found, manifest)
    assert peak.agrees == CANNOT_TELL and "catalogue has no peak" in peak.why[0]


def test_wrong_refused_and_failed_cases_are_no(tmp_path: Path) -> None:
    bad = schema.Verdict(name="result", ok=False, reason="3 values are wrong")
    good = cases_of.matmul(512, call_s=0.1)
    made = [
        good,
        dataclasses.replace(cases_of.matmul(256, call_s=0.1), loop_s=1e-4),  # its loop lost the work
        dataclasses.replace(good, record=cases_of.record(point="a", checks=(bad,), wrong=3)),
        dataclasses.replace(good, record=cases_of.record(point="b"), failure="out of memory", rounds=0),
    ]
    runs, right, gates = expectations.of_cases(judged(tmp_path, made)[0])
    assert [item.agrees for item in (runs, right, gates)] == [NO] * 3
    assert "b: measure: out of memory" in runs.why and "a: result: 3 values are wrong" in right.why
    assert len(gates.why) == 1 and gates.why[0].startswith("matmul/float32/256x256x256/jit: two clocks")


@pytest.mark.parametrize(("share", "agrees"), [(0.7, YES), (1.04, YES), (1.2, NO)])
def test_the_peak(share: float, agrees: str, tmp_path: Path) -> None:
    facts = dict(platform="gpu", device_kind="NVIDIA H100 80GB HBM3")
    made = cases_of.matmul(8192, call_s=2 * 8192**3 / (share * 989.4e12), dtype="bfloat16", **facts)
    found, manifest = judged(tmp_path, [made], manifest=facts)
    item = expectations.of_peak(found, manifest)
    assert item.agrees == agrees, item
    assert "bfloat16" in item.found and f"{100 * share:.0f} % of" in item.found
