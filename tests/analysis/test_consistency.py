# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Records edited in one place contradict another place, which is reported. docs/LIES.md lists these lies."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import fabricate
import pytest

from jaxbench.analysis import points
from jaxbench.errors import UserError
from jaxbench.records import schema, store
from jaxbench.records.store import RunFolder

MACHINE = {"platform": "cpu", "device_kind": "cpu", "cores": 2}
TWO = "shard_map/strong/2"


def folder(path: Path, *, passports: dict[str, Any] | None = None, manifest: dict[str, Any] | None = None) -> Path:
    """A run of 1 and 2 devices. passports: changes of the compile report of TWO. manifest: changes of the manifest."""
    fabricate.run_folder(path, devices=(1, 2), scalings=("strong",), rounds=5)
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "point" and line["point"] == TWO:
            line["passport"] |= passports or {}
    store.write_json(path / store.MANIFEST, {**RunFolder(path).manifest(), **MACHINE, **(manifest or {})})
    (path / store.RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def load(path: Path) -> dict[str, points.MeasuredPoint]:
    return {point.point: point for point in points.load(RunFolder(path))}


def test_the_truth_agrees(tmp_path: Path) -> None:
    assert all(point.check_ok and point.status == "ok" for point in load(folder(tmp_path)).values())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"manifest": {"device_kind": "NVIDIA H100"}}, "recorded on 'cpu', and its manifest is of 'NVIDIA H100'"),
        ({"manifest": {"cores": 1}}, "with a core for each of its 2 devices, and its manifest has 1 cores"),
        ({"passports": {"flops_per_step": 5.9e9}}, "of one model .flops: .* there, 5,900,000,000 here"),
        ({"passports": {"parameters": 3_466}}, "of one model .parameters: 61,706 there, 3,466 here"),
    ],
)
def test_a_change_in_one_place_is_damage(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(folder(tmp_path, **changes))


def test_a_machine_of_several_kinds_and_gathered_jobs_have_several(tmp_path: Path) -> None:
    kinds = {"device_kind": "TPU v5e", "device_kinds": ["TPU v5e", "cpu"]}
    assert load(folder(tmp_path / "kinds", manifest=kinds))
    assert load(folder(tmp_path / "jobs", manifest={"device_kind": "another", "apart": ["1 and 2: processor ..."]}))


def test_a_model_that_grows_with_its_devices_may_have_other_parameters(tmp_path: Path) -> None:
    path = folder(tmp_path, passports={"parameters": 3_466})
    store.write_json(path / store.CONFIG, {**RunFolder(path).config(), "weak": "model"})
    with pytest.raises(UserError, match="of one model"):  # strong scaling has one model
        load(path)


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
