# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lines become cases: ok, partial, failed, missing, wrong, of unknown answer, unplanned."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import pytest

from jaxbench.analysis import cases, points
from jaxbench.analysis.cases import CasePoint
from jaxbench.errors import UserError
from jaxbench.records import schema, store
from jaxbench.records.store import RunFolder

UNCHECKED = schema.Verdict(name="result", ok=True, reason="not compared: no closed form")
FAILED = schema.Verdict(name="result", ok=False, reason="12 of 4,096 values are wrong", value=12.0, limit=0.0)


def load(path: Path, *made: fab.Made, **facts: Any) -> list[CasePoint]:
    return cases.load(RunFolder(fab.case_folder(path, made, **facts)))


CASES = {
    "ok": ({}, "ok", True, ""),
    "partial": ({"rounds": 2}, "partial", True, "2 of 5 rounds"),
    "missing": ({"rounds": 0, "recorded": False}, "missing", None, "no round"),
    "failed": ({"rounds": 1, "failure": "out of memory"}, "failed", True, "measure: out of memory"),
    "no compile report": ({"recorded": False}, "partial", None, "no compile report"),
    "wrong, and it says how": ({"wrong": 12, "checks": (FAILED,)}, "ok", False, "12 of 4,096 values are wrong"),
    "wrong, whatever the checks say": ({"wrong": 12}, "ok", False, "12 of its values are wrong"),
    "answer unknown, and it says why": ({"wrong": None, "checks": (UNCHECKED,)}, "ok", True, ""),
    "never checked": ({"wrong": None, "checks": ()}, "ok", None, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_status(tmp_path: Path, case: str) -> None:
    changes, status, check_ok, reason = CASES[case]
    (point,) = load(tmp_path, fab.matmul(64, call_s=1e-4, **changes))
    assert (point.status, point.check_ok) == (status, check_ok)
    assert reason in point.reason and bool(reason) == bool(point.reason)
    assert point.honest == (status == "ok" and check_ok is True)
    assert (point.op, point.elements, point.cores, point.rounds_asked) == ("matmul", 64, 1, 5)
    assert (point.failure is not None) == (status == "failed")


def test_an_oversubscribed_case_is_not_reportable(tmp_path: Path) -> None:
    (point,) = load(tmp_path, fab.collective("all_reduce", 1024, 8, call_s=1e-3, oversubscribed=True))
    assert point.status == "ok" and point.check_ok and not point.honest


def test_cases_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    made = [fab.matmul(n, call_s=1e-4) for n in (512, 64, 128)]
    assert [p.elements for p in load(tmp_path, *made)] == [512, 64, 128]


def test_cases_that_the_plan_does_not_know_are_shown(tmp_path: Path) -> None:
    made = [
        fab.matmul(64, call_s=1e-4),
        fab.kernel("tanh", 10, call_s=1e-5, failure="out of memory", recorded=False, rounds=0),
    ]
    path = fab.case_folder(tmp_path, made)
    manifest = json.loads((path / store.MANIFEST).read_text())
    manifest["plan"]["points"] = []
    store.write_json(path / store.MANIFEST, manifest)
    measured, failed = cases.load(RunFolder(path))
    assert (measured.op, measured.status, measured.devices) == ("matmul", "ok", 1)
    assert (failed.op, failed.status, failed.elements) == ("tanh", "failed", None)


def test_sessions_are_told_apart(tmp_path: Path) -> None:
    (point,) = load(tmp_path, fab.matmul(64, call_s=1e-4), session=lambda point, r: r // 3, rounds=4)
    assert point.units == ((0, 0), (0, 1), (0, 2), (1, 3))


def test_an_earlier_wrong_result_is_not_excused_by_a_later_right_one(tmp_path: Path) -> None:
    wrong = fab.matmul(64, call_s=1e-4, wrong=3)
    path = fab.case_folder(tmp_path, [wrong], rounds=2)
    later = dataclasses.replace(wrong.record, wrong=0, worker="session1/cpu1")
    with open(path / store.RECORDS, "a", encoding="utf-8") as file:
        file.write(json.dumps(schema.to_json(later)) + "\n")
    (point,) = cases.load(RunFolder(path))
    assert point.check_ok is False and "in an earlier compile report" in point.reason


@pytest.mark.parametrize("change", [{"points": 3}, {"points": [{}]}, {"rounds": None}, {"measures": "training"}])
def test_a_folder_without_a_plan_of_cases_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = fab.case_folder(tmp_path, [fab.matmul(64, call_s=1e-4)])
    manifest = json.loads((path / store.MANIFEST).read_text())
    manifest["plan"] |= change
    store.write_json(path / store.MANIFEST, manifest)
    with pytest.raises(UserError, match="plan of cases"):
        cases.load(RunFolder(path))


def test_records_of_another_kind_are_refused(tmp_path: Path) -> None:
    training = fabricate.run_folder(tmp_path / "a", devices=(1,), rounds=1)
    path = fab.case_folder(tmp_path / "b", [fab.matmul(64, call_s=1e-4)])
    (path / store.RECORDS).write_text((training / store.RECORDS).read_text())
    with pytest.raises(UserError, match="not of the kind"):
        cases.load(RunFolder(path))
    with pytest.raises(UserError, match="plan of cases"):
        cases.load(RunFolder(training))


def test_a_failed_training_point_that_the_plan_does_not_know_is_shown(tmp_path: Path) -> None:
    failure = schema.FailureRecord(point="pmap/strong/2", experiment="cnn", devices=2, stage="build", reason="no")
    fabricate.write(tmp_path, plan=[], records=[failure], rounds=1)
    (point,) = points.load(RunFolder(tmp_path))
    assert (point.status, point.devices, point.strategy, point.global_batch) == ("failed", 2, "", 0)
