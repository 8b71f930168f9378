# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lines become points: ok, partial, failed, missing, wrong, unchecked."""

import dataclasses
from pathlib import Path

import fabricate
import pytest

from jaxbench.analysis import points, scaling
from jaxbench.errors import UserError
from jaxbench.records import schema, store

NAME = "shard_map/strong/1"
PLAN = [
    {
        "point": NAME,
        "strategy": "shard_map",
        "scaling": "strong",
        "devices": 1,
        "global_batch": 256,
        "oversubscribed": False,
    }
]


def _round(number: int, **changes: object) -> schema.RoundRecord:
    record = schema.RoundRecord(
        point=NAME, round=number, steps=5, block_s=(0.1,), double_block_s=(0.2,), warmup_block_s=(), settled=True,
        compilations=0, worker="session0/w",
    )  # fmt: skip
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


FAILURE = schema.FailureRecord(
    point=NAME, experiment="cnn", strategy="shard_map", scaling="strong", devices=1, global_batch=256, stage="measure",
    reason="out of memory",
)  # fmt: skip


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
    "mended too late": (
        (WRONG, _round(0), AGAIN, _late(1)),
        "ok",
        False,
        "in an earlier compile report",
    ),
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
    assert point.honest == (status == "ok" and check_ok is True)


def test_thirty_faster_lines_of_a_round_do_not_win(tmp_path: Path) -> None:
    """In one session or a later one, the first line of each round counts, and the row mentions the others."""
    faster = [_round(0, block_s=(0.01,), worker=f"session{i % 2}/w") for i in range(30)]
    (point,) = _load(tmp_path, POINT, _round(0), *faster, _round(1))
    assert [each.block_s for each in point.rounds] == [(0.1,), (0.1,)]
    assert point.repetition == "30 more lines of round 0: only the first line of each round counts"
    (row,) = scaling.analyse([point], config={})
    assert point.repetition in row.notes


def test_two_models_in_one_point_are_wrong(tmp_path: Path) -> None:
    other = dataclasses.replace(AGAIN, passport=fabricate.passport(parameters=3_466, collectives=()))
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


@pytest.mark.parametrize("plan", [None, {"points": 3}, {"points": [{}], "rounds": 1}, {"points": [7], "rounds": 1}])
def test_a_folder_without_a_plan_is_no_run(tmp_path: Path, plan: object) -> None:
    _load(tmp_path)
    store.write_json(tmp_path / store.MANIFEST, {"plan": plan} if plan is not None else {})
    with pytest.raises(UserError, match="plan"):
        points.load(store.RunFolder(tmp_path))
