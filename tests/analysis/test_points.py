# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a run folder, and which of their rounds count."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import pytest

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError

NAME = "shard_map/strong/1"
PLACE = {"strategy": "shard_map", "scaling": "strong", "devices": 1, "global_batch": 256}
PLAN = [{"point": NAME, **PLACE, "oversubscribed": False}]


def _round(number: int, **changes: object) -> schema.RoundRecord:
    record = schema.RoundRecord(
        point=NAME, round=number, steps=5, block_s=(0.1,), double_block_s=(0.2,), warmup_block_s=(), settled=True,
        compilations=0, worker="session0/w",
    )  # fmt: skip
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


FAILURE = schema.FailureRecord(point=NAME, experiment="cnn", **PLACE, stage="measure", reason="out of memory")


def _load(path: Path, *records: schema.Record, rounds: int = 2, plan: list | None = None) -> list[points.MeasuredPoint]:
    fabricate.write(path, plan=PLAN if plan is None else plan, records=records, rounds=rounds)
    return points.load(store.RunFolder(path))


POINT, WRONG = fabricate.point_record(), fabricate.point_record(ok=False)
AGAIN, WRONG_AGAIN = (dataclasses.replace(record, worker="session1/w") for record in (POINT, WRONG))


def _late(number: int) -> schema.RoundRecord:
    return _round(number, worker="session1/w")


LATE = schema.Verdict(name="steps", ok=False, reason="NOT counted")
NO_ANSWER = schema.Verdict(name="timed update", ok=False, unchecked=True, reason="who knows")
CASES = {
    "ok": ((POINT, _round(0), _round(1)), "ok", True, ""),
    "partial": ((POINT, _round(1)), "partial", True, "1 of 2 rounds"),
    "missing": ((), "missing", None, "no round"),
    "only compiled": ((POINT,), "missing", True, "no round"),
    "no compile report": ((_round(0), _round(1)), "partial", None, "no compile report"),
    "failed": ((POINT, _round(0), FAILURE), "failed", True, "measure: out of memory"),
    "recovered": ((POINT, FAILURE, _round(0), _round(1)), "ok", True, ""),
    "wrong": ((WRONG, _round(0), _round(1)), "ok", False, "differ from those of one"),
    "mended": ((WRONG, AGAIN, _late(0), _late(1)), "ok", True, ""),
    "mended too late": ((WRONG, _round(0), AGAIN, _late(1)), "ok", False, "in an earlier compile report"),
    "mended in place": ((WRONG, POINT, _round(0), _round(1)), "ok", False, "in an earlier compile report"),
    "wrong at last": ((POINT, _round(0), WRONG_AGAIN), "partial", False, "1 of 2"),
    "retraced": ((POINT, _round(0), _round(1, compilations=2)), "ok", False, "retrace: 2 programs"),
    "wrong in a round": ((POINT, _round(0, checks=(LATE,)), _round(1)), "ok", False, "steps: NOT counted, in round 0"),
    "unchecked in a round": ((POINT, _round(0, checks=(NO_ANSWER,)), _round(1)), "ok", None, "timed update: who knows"),
    "unchecked": ((dataclasses.replace(POINT, checks=()), _round(0), _round(1)), "ok", None, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_status(tmp_path: Path, case: str) -> None:
    records, status, check_ok, reason = CASES[case]
    (point,) = _load(tmp_path, *records)
    assert (point.status, point.check_ok) == (status, check_ok)
    assert reason in point.reason and bool(reason) == bool(point.reason)
    assert point.reportable == (status == "ok" and check_ok is True)


def test_thirty_faster_lines_of_a_round_do_not_win(tmp_path: Path) -> None:
    """In one session or a later one, the first line of each round counts, and the row mentions the others."""
    faster = [_round(0, block_s=(0.01,), worker=f"session{i % 2}/w") for i in range(30)]
    (point,) = _load(tmp_path, POINT, _round(0), *faster, _round(1))
    assert [each.block_s for each in point.rounds] == [(0.1,), (0.1,)]
    assert point.repetition == "30 more lines of round 0: only the first line of each round counts"
    (row,) = run_rows.analyse([point], config={})
    assert point.repetition in row.notes


def test_two_models_in_one_point_are_wrong(tmp_path: Path) -> None:
    other = dataclasses.replace(AGAIN, compile_report=fabricate.compile_report(parameters=3_466, collectives=()))
    (point,) = _load(tmp_path, other, _round(0, worker="session1/w"), POINT, _round(1))
    assert point.check_ok is False and "parameters: 3,466 first, 61,706 later" in point.reason


def test_a_round_without_a_block_is_damage(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="damaged"):
        _load(tmp_path, POINT, _round(0, block_s=()), _round(1))


def test_units_tell_sessions_apart(tmp_path: Path) -> None:
    (point,) = _load(tmp_path, POINT, _round(0, worker="w"), _round(1, worker="session12/cpu8"))
    assert point.units == ((0, 0), (12, 1))


def test_a_point_the_plan_does_not_know_is_shown(tmp_path: Path) -> None:
    (point,) = _load(tmp_path, POINT, _round(0), rounds=1, plan=[])
    assert point.point == NAME and point.status == "ok"
    failure = schema.FailureRecord(point="pmap/strong/2", experiment="cnn", devices=2, stage="build", reason="no")
    fabricate.write(tmp_path, plan=[], records=[failure], rounds=1)
    (point,) = points.load(RunFolder(tmp_path))
    assert (point.status, point.devices, point.strategy, point.global_batch) == ("failed", 2, "", 0)


@pytest.mark.parametrize("plan", [None, {"points": 3}, {"points": [{}], "rounds": 1}, {"points": [7], "rounds": 1}])
def test_a_folder_without_a_plan_is_no_run(tmp_path: Path, plan: object) -> None:
    _load(tmp_path)
    store.write_json(tmp_path / store.MANIFEST, {"plan": plan} if plan is not None else {})
    with pytest.raises(UserError, match="plan"):
        points.load(store.RunFolder(tmp_path))


UNCHECKED = schema.Verdict(name="result", ok=True, reason="not compared: no formula")
FAILED = schema.Verdict(name="result", ok=False, reason="12 of 4,096 values are wrong", value=12.0, limit=0.0)


def load(path: Path, *made: fab.Made, **facts: Any) -> list[MeasuredPoint]:
    return points.load_cases(RunFolder(fab.case_folder(path, made, **facts)))


CASE_STATUSES = {
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


@pytest.mark.parametrize("case", CASE_STATUSES)
def test_status_of_a_case(tmp_path: Path, case: str) -> None:
    changes, status, check_ok, reason = CASE_STATUSES[case]
    (point,) = load(tmp_path, fab.matmul(64, call_s=1e-4, **changes))
    assert (point.status, point.check_ok) == (status, check_ok)
    assert reason in point.reason and bool(reason) == bool(point.reason)
    assert point.reportable == (status == "ok" and check_ok is True)
    assert (point.op, point.elements, point.cores, point.rounds_asked) == ("matmul", 64, 1, 5)
    assert (point.failure is not None) == (status == "failed")


def test_an_oversubscribed_case_is_not_reportable_and_cases_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    (point,) = load(tmp_path, fab.collective("all_reduce", 1024, 8, call_s=1e-3, oversubscribed=True))
    assert point.status == "ok" and point.check_ok and not point.reportable
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
    measured, failed = points.load_cases(RunFolder(path))
    assert (measured.op, measured.status, measured.devices) == ("matmul", "ok", 1)
    assert (failed.op, failed.status, failed.elements) == ("tanh", "failed", None)


def test_an_earlier_wrong_result_is_not_excused_by_a_later_right_one(tmp_path: Path) -> None:
    wrong = fab.matmul(64, call_s=1e-4, wrong=3)
    path = fab.case_folder(tmp_path, [wrong], rounds=2)
    later = dataclasses.replace(wrong.record, wrong=0, worker="session1/cpu1")
    with open(path / store.RECORDS, "a", encoding="utf-8") as file:
        file.write(json.dumps(schema.to_json(later)) + "\n")
    (point,) = points.load_cases(RunFolder(path))
    assert point.check_ok is False and "in an earlier compile report" in point.reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"points": 3}, "plan: points: 3 is not a list"), ({"points": [{}]}, "plan of cases"),
        ({"rounds": None}, "plan: rounds: None is not a whole number"), ({"measures": "training"}, "plan of cases"),
    ],
)  # fmt: skip
def test_a_folder_without_a_plan_of_cases_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = fab.case_folder(tmp_path, [fab.matmul(64, call_s=1e-4)])
    manifest = json.loads((path / store.MANIFEST).read_text())
    manifest["plan"] |= change
    store.write_json(path / store.MANIFEST, manifest)
    with pytest.raises(UserError, match=said):
        points.load_cases(RunFolder(path))


def test_records_of_another_kind_are_refused(tmp_path: Path) -> None:
    training = fabricate.run_folder(tmp_path / "a", devices=(1,), rounds=1)
    path = fab.case_folder(tmp_path / "b", [fab.matmul(64, call_s=1e-4)])
    (path / store.RECORDS).write_text((training / store.RECORDS).read_text())
    with pytest.raises(UserError, match="not of the kind"):
        points.load_cases(RunFolder(path))
    with pytest.raises(UserError, match="plan of cases"):
        points.load_cases(RunFolder(training))


ROUND = _round(0, block_s=(0.1, 0.1), warmup_block_s=(0.1,), worker="session0/w", counted=25)


def at(second: float) -> str:
    return datetime.datetime.fromtimestamp(1e9 + second, datetime.UTC).isoformat(timespec="milliseconds")


def checked(path: Path, *records: schema.Record) -> tuple[bool | None, str]:
    (point,) = _load(path, *records, rounds=1)
    return point.check_ok, point.reason


@pytest.mark.parametrize(
    ("passed_s", "session", "ok"), [(0.52, 0, True), (0.2, 0, False), (-9.0, 0, False), (0.2, 1, True)]
)
def test_blocks_take_no_longer_than_the_time_between_two_lines(
    tmp_path: Path, passed_s: float, session: int, ok: bool
) -> None:
    """A slower base would make every efficiency higher. Two sessions have no time in common."""
    first = dataclasses.replace(POINT, time=at(0), worker="session0/w")
    timed = dataclasses.replace(ROUND, time=at(passed_s), worker=f"session{session}/w")
    found, reason = checked(tmp_path, first, timed)
    assert found is ok
    if not ok:
        assert f"time: its blocks took 0.5 s, and {passed_s:.3g} s passed since the line before: edited, or" in reason


def test_a_time_that_is_none_is_damage(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="damaged"):
        checked(tmp_path, POINT, dataclasses.replace(ROUND, time="yesterday"))


@pytest.mark.parametrize(("counted", "ok"), [(25, True), (0, True), (24, False), (50, False)])
def test_twice_the_steps_in_the_same_blocks_are_not_counted(tmp_path: Path, counted: int, ok: bool) -> None:
    found, reason = checked(tmp_path, POINT, dataclasses.replace(ROUND, counted=counted))
    assert found is ok
    assert ok or f"the state counted {counted} updates, and the blocks of round 0 have 25 steps" in reason


@pytest.mark.parametrize(("rows", "ok"), [(0, True), (2, True), (1, False), (3, False)])
def test_the_times_of_a_process_are_not_left_out(tmp_path: Path, rows: int, ok: bool) -> None:
    two, timed = (
        dataclasses.replace(POINT, processes=2),
        dataclasses.replace(ROUND, process_block_s=(ROUND.block_s,) * rows),
    )
    found, reason = checked(tmp_path, two, timed)
    assert found is ok
    assert ok or f"processes: round 0 has {rows} of 2 processes" in reason
