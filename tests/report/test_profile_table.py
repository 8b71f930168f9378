# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A profile as tables: numbers computed by hand; a run folder with a profile is read like any other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from fabricate import run_folder

from jaxbench.analysis import point_records, points
from jaxbench.records import schema
from jaxbench.records.schema import ProfileRecord
from jaxbench.records.store import RunFolder
from jaxbench.report import folds


def profile(**changes) -> ProfileRecord:
    facts = dict(
        point="shard_map/strong/2", steps=4, wall_s=0.2, worker="session0/cpu2",
        kinds={"matmul": 0.05, "element-wise": 0.1, "collective": 0.0, "idle": 0.05},
        top=(("add_fusion", "element-wise", 0.1), ("dot.1", "matmul", 0.05)), trace="profiles/x/perfetto_trace.json.gz",
    )  # fmt: skip
    return ProfileRecord(**{**facts, **changes})


def test_kinds_by_length_with_idle_last_and_the_whole_below() -> None:
    sheet = folds.profile_kinds(profile())
    assert [line.cells for line in sheet.lines] == [
        ("element-wise", "25", "50.0"),
        ("matmul", "12.5", "25.0"),
        ("idle", "12.5", "25.0"),
        ("all", "50", "100.0"),
    ]
    assert "4 traced steps" in sheet.note and "profiles/x/perfetto_trace.json.gz" in sheet.note
    assert all(len(line.cells) == len(sheet.columns) for line in sheet.lines)


def test_operations() -> None:
    sheet = folds.profile_operations(profile())
    assert [line.cells for line in sheet.lines] == [
        ("add_fusion", "element-wise", "25", "50.0"),
        ("dot.1", "matmul", "12.5", "25.0"),
    ]
    assert all(len(line.cells) == len(sheet.columns) for line in sheet.lines)
    assert folds.profile_operations(profile(top=())).note


def test_it_comes_back_from_json_as_it_went() -> None:
    assert schema.from_json(json.loads(json.dumps(schema.to_json(profile())))) == profile()


@pytest.mark.parametrize(
    "changes", [{"wall_s": 0.0}, {"steps": 0}, {"kinds": {"idle": -1.0}}, {"top": (("a", "b", -1.0),)}]
)
def test_impossible_numbers_are_damage(changes) -> None:
    with pytest.raises(ValueError, match="a profile has"):
        schema.from_json(json.loads(json.dumps(schema.to_json(profile(**changes)))))


def test_a_run_with_a_profile_has_the_same_points_as_one_without(tmp_path: Path) -> None:
    without = points.load(RunFolder(run_folder(tmp_path / "run", devices=(1, 2))))
    with open(tmp_path / "run" / "records.jsonl", "a") as file:
        for record in (profile(), profile(steps=8), profile(point="nowhere")):
            file.write(json.dumps(schema.to_json(record)) + "\n")
    run = RunFolder(tmp_path / "run")
    found = points.load(run)
    assert [dataclasses.replace(point, profile=None) for point in found] == without
    assert {point.point: point.profile for point in found if point.profile} == {"shard_map/strong/2": profile(steps=8)}
    assert point_records.collect(run.records())["shard_map/strong/2"].profile == profile(steps=8)


def test_a_profile_does_not_heal_a_failure() -> None:
    failure = schema.FailureRecord(point=profile().point, experiment="cnn", devices=2, stage="measure", reason="broken")
    (about,) = point_records.collect([failure, profile()]).values()
    assert about.failed and about.profile == profile()
