# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Records that contradict the clock, the counted updates or the number of processes. docs/LIES.md lists these lies."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import fabricate
import pytest

from jaxbench.analysis import points
from jaxbench.errors import UserError
from jaxbench.records import schema
from jaxbench.records.store import RunFolder

PASSPORT = fabricate.point_record()
ROUND = schema.RoundRecord(
    point=PASSPORT.point, round=0, steps=5, block_s=(0.1, 0.1), double_block_s=(0.2,), warmup_block_s=(0.1,),
    settled=True, compilations=0, worker="session0/w", counted=25,
)  # fmt: skip


def at(second: float) -> str:
    return datetime.datetime.fromtimestamp(1e9 + second, datetime.UTC).isoformat(timespec="milliseconds")


def checked(path: Path, *records: schema.Record) -> tuple[bool | None, str]:
    place = {name: getattr(PASSPORT, name) for name in ("strategy", "scaling", "devices", "global_batch")}
    plan = [{"point": PASSPORT.point, **place, "oversubscribed": False}]
    fabricate.write(path, plan=plan, records=records, rounds=1)
    (point,) = points.load(RunFolder(path))
    return point.check_ok, point.reason


@pytest.mark.parametrize(
    ("passed_s", "session", "ok"), [(0.52, 0, True), (0.2, 0, False), (-9.0, 0, False), (0.2, 1, True)]
)
def test_blocks_take_no_longer_than_the_time_between_two_lines(
    tmp_path: Path, passed_s: float, session: int, ok: bool
) -> None:
    """A slower base would make every efficiency higher. Two sessions have no time in common."""
    first = dataclasses.replace(PASSPORT, time=at(0), worker="session0/w")
    timed = dataclasses.replace(ROUND, time=at(passed_s), worker=f"session{session}/w")
    found, reason = checked(tmp_path, first, timed)
    assert found is ok
    if not ok:
        assert f"time: its blocks took 0.5 s, and {passed_s:.3g} s passed since the line before: edited, or" in reason


def test_a_time_that_is_none_is_damage(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="damaged"):
        checked(tmp_path, PASSPORT, dataclasses.replace(ROUND, time="yesterday"))


@pytest.mark.parametrize(("counted", "ok"), [(25, True), (0, True), (24, False), (50, False)])
def test_twice_the_steps_in_the_same_blocks_are_not_counted(tmp_path: Path, counted: int, ok: bool) -> None:
    found, reason = checked(tmp_path, PASSPORT, dataclasses.replace(ROUND, counted=counted))
    assert found is ok
    assert ok or f"the state counted {counted} updates, and the blocks of round 0 have 25 steps" in reason


@pytest.mark.parametrize(("rows", "ok"), [(0, True), (2, True), (1, False), (3, False)])
def test_the_times_of_a_process_are_not_left_out(tmp_path: Path, rows: int, ok: bool) -> None:
    found, reason = checked(
        tmp_path,
        dataclasses.replace(PASSPORT, processes=2),
        dataclasses.replace(ROUND, process_block_s=(ROUND.block_s,) * rows),
    )
    assert found is ok
    assert ok or f"processes: round 0 has {rows} of 2 processes" in reason
