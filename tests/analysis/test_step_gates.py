# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Lies about training steps in fabricated records: each is refused by name, and in no headline, fit or base."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases
import pytest

from jaxbench.analysis import gates, points, scaling, scaling_laws
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.point_records import Measured
from jaxbench.analysis.scaling import Row
from jaxbench.records.schema import PointRecord, RoundRecord
from jaxbench.records.store import RunFolder

# 400 GFLOP/s per core: the fabricated step reaches 260.
PEAK = fabricate_cases.peak("flop_per_s", 1, 4e11, op="matmul")
CARD = fabricate_cases.card(peaks=[PEAK], machine={**fabricate_cases.card()["machine"], "cores": 8})
LINEAR: Any = dict(law=lambda scaling, n: 0.9 * n if n > 1 else 1.0, noise=0.002, drift=0.0)
Change = Callable[[Any], Any]


def told(path: Path, lie: Change = lambda point: point, machine: Any = None, **facts: Any) -> dict[str, Row]:
    """The rows of a fabricated run; `lie` changes each point after it was read."""
    run = RunFolder(fabricate.run_folder(path, **{**LINEAR, **facts}))
    rows = scaling.analyse([lie(point) for point in points.load(run)], config=run.config(), machine=machine)
    return {row.point.point: row for row in rows}


def of_rounds(change: Change) -> Change:
    def lie(point: Measured[Any]) -> Any:
        return dataclasses.replace(point, rounds=tuple(change(each) for each in point.rounds))

    return lie


def of_passport(**changes: Any) -> Change:
    def lie(point: Any) -> Any:
        record: PointRecord = point.record
        passport = dataclasses.replace(record.passport, **changes)
        return dataclasses.replace(point, record=dataclasses.replace(record, passport=passport))

    return lie


def scaled(name: str, factor: float) -> Change:
    def change(each: RoundRecord) -> RoundRecord:
        return dataclasses.replace(each, **{name: tuple(factor * seconds for seconds in getattr(each, name))})

    return of_rounds(change)


def refusals(row: Row) -> list[str]:
    return [gate.name for gate in row.gates if gate.passed is False]


def no_claim(rows: dict[str, Row]) -> None:
    (sentence,) = headlines(list(rows.values()))
    assert sentence.startswith("No headline: a gate refused")
    assert all(fit.why_not for fit in scaling_laws.fit_all(list(rows.values())))
    assert not any(row.quotable for row in rows.values())


def test_the_truth_passes(tmp_path: Path) -> None:
    rows = told(tmp_path, machine=CARD)
    assert {row.gate for row in rows.values()} == {"passed"}
    assert headlines(list(rows.values()))[0].startswith("shard_map: strong efficiency 89.9 %")


@pytest.mark.parametrize("kind", ["cpu", "NVIDIA H200"])
def test_times_divided_by_a_thousand(tmp_path: Path, kind: str) -> None:
    lie = of_rounds(
        lambda each: dataclasses.replace(
            each, **{name: tuple(s / 1e6 for s in getattr(each, name)) for name in ("block_s", "double_block_s")}
        )
    )
    machine = CARD if kind == "cpu" else None
    rows = told(tmp_path, lie, machine=machine, device_kind=kind, platform="cpu" if kind == "cpu" else "gpu")
    assert {tuple(refusals(row)) for row in rows.values()} == {(gates.BELOW_PEAK,)}
    assert ("machine profile is wrong" if kind == "cpu" else "impossible") in rows["shard_map/strong/2"].gate_reason
    no_claim(rows)


@pytest.mark.parametrize("factor", [0.5, 0.05, 1.5])
def test_a_second_clock_that_runs_differently(tmp_path: Path, factor: float) -> None:
    """Blocks of 2 K steps as long as blocks of K (a slope of 0 %), shorter (-90 %), or three times as long (200 %)."""
    rows = told(tmp_path, scaled("double_block_s", factor))
    assert {tuple(refusals(row)) for row in rows.values()} == {(gates.TWO_CLOCKS,)}
    no_claim(rows)


def test_flops_a_million_times_too_large(tmp_path: Path) -> None:
    rows = told(tmp_path, of_passport(flops_per_step=3.2e15))
    assert {tuple(refusals(row)) for row in rows.values()} == {(gates.FLOPS_DONE,)}
    assert "3.2e+15 FLOPs by formula, but the compiled program has 3.1e+09" in rows["shard_map/weak/4"].gate_reason
    no_claim(rows)


@pytest.mark.parametrize(("least", "gate"), [(0.4, "refused"), (0.6, "passed")])
def test_work_that_a_branch_may_leave_out(tmp_path: Path, least: float, gate: str) -> None:
    def resting(point: Any) -> Any:
        return dataclasses.replace(point, record=dataclasses.replace(point.record, facts={"least_work": least}))

    rows = told(tmp_path, resting)
    assert {row.gate for row in rows.values()} == {gate}
    said = "a branch of the model may skip 60 % of its FLOPs in a step"
    assert all((said in row.gate_reason) == (gate == "refused") for row in rows.values())


def test_a_program_may_do_more_than_the_formula_and_may_be_uncounted(tmp_path: Path) -> None:
    more = told(tmp_path / "a", of_passport(product_flops_per_step=9e9))["shard_map/strong/2"]
    unknown = told(tmp_path / "b", of_passport(compiler_flops_per_step=None))["shard_map/strong/2"]
    assert more.gate == unknown.gate == "passed"
    assert "unknown" in next(gate.reason for gate in unknown.gates if gate.name == gates.FLOPS_DONE)


@pytest.mark.parametrize("factor", [4.36, 6.53])
def test_an_efficiency_far_above_ideal_is_kept_and_in_no_headline(tmp_path: Path, factor: float) -> None:
    rows = told(tmp_path, law=lambda scaling, n: factor * n if n > 1 else 1.0)
    row = rows["shard_map/strong/8"]
    assert row.efficiency.value == pytest.approx(factor, rel=0.01)
    assert refusals(row) == [gates.NOT_ABOVE_IDEAL]
    reason = next(gate.reason for gate in row.gates if gate.name == gates.NOT_ABOVE_IDEAL)
    assert reason.endswith("or one of the two times is wrong"), "why it is too large is not known"
    assert headlines(list(rows.values()))[0].startswith("No headline: a gate refused shard_map/strong/2")


def test_a_little_above_ideal_may_be_noise(tmp_path: Path) -> None:
    rows = told(tmp_path, law=lambda scaling, n: n**1.02)
    assert rows["shard_map/strong/8"].gate == "passed"


def test_a_refused_row_is_no_base(tmp_path: Path) -> None:
    lie = scaled("double_block_s", 0.5)
    rows = told(tmp_path, lambda point: lie(point) if point.devices == 1 else point)
    for count in (1, 2, 4, 8):  # not even on 2 devices, which would be at 100 % by definition
        row = rows[f"shard_map/strong/{count}"]
        assert row.timing.step_s.known and row.base is None and not row.speedup.known
        assert any("no speed-up: no base" in note for note in row.notes)


def test_a_machine_that_is_noisier_than_the_claim_has_no_headline(tmp_path: Path) -> None:
    """On one device the weak point is the same program as the strong point; here it is 20 % slower."""
    slower = of_rounds(lambda each: dataclasses.replace(each, block_s=tuple(1.2 * s for s in each.block_s)))
    rows = told(tmp_path, lambda point: slower(point) if point.point == "shard_map/weak/1" else point)
    (sentence,) = headlines(list(rows.values()), scaling.controls(list(rows.values())))
    assert "the A/A spread (same program measured twice) is up to 17 %" in sentence


def test_a_smoke_run_has_no_headline(tmp_path: Path) -> None:
    rows = told(tmp_path, rounds=2)
    assert "a confidence interval needs" in headlines(list(rows.values()))[0]
