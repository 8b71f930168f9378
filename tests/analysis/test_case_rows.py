# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rates, bus bandwidth, shares of a peak and the clocks of cases, from fabricated records with a known answer."""

import math
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest

from jaxbench.analysis import points, run_rows
from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import RunFolder
from jaxbench.statistics.bootstrap import Estimate

EXACT: dict[str, Any] = {"noise": 0.0, "drift": 0.0}
H200: dict[str, Any] = {"platform": "gpu", "device_kind": "NVIDIA H200"}


def analyse(path: Path, *made: fab.Made, machine: dict[str, Any] | None = None, **facts: Any) -> list[Row]:
    run = RunFolder(fab.case_folder(path, made, **facts))
    return run_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=machine)


def test_exact_times_give_exact_rates(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.matmul(1000, call_s=0.02, loop_s=0.019), **EXACT)
    assert row.timing.step_s.value == pytest.approx(0.02)
    assert row.timing.examples_per_s.value == pytest.approx(50)  # calls
    assert row.loop_s.value == pytest.approx(0.019)
    assert row.flop_per_s.value == pytest.approx(1e11)
    assert row.bytes_per_s.value == pytest.approx(6e8)
    assert not (row.algbw.known or row.busbw.known)
    assert row.quotable and row.notes == ()


def test_rates_are_of_calls_never_of_the_loop(tmp_path: Path) -> None:
    slow, fast = (analyse(tmp_path / str(t), fab.matmul(512, call_s=1e-3, loop_s=t))[0] for t in (1e-3, 0.9e-3))
    assert slow.flop_per_s.value == pytest.approx(fast.flop_per_s.value, rel=0.02)
    assert slow.loop_s.value > 1.05 * fast.loop_s.value


def test_intervals_of_rates_are_those_of_the_times_turned_over(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.matmul(1000, call_s=0.02), rounds=10)
    step, rate = row.timing.step_s, row.flop_per_s
    assert (rate.lo, rate.value, rate.hi) == pytest.approx((2e9 / step.hi, 2e9 / step.value, 2e9 / step.lo), rel=1e-3)
    assert rate.lo < rate.value < rate.hi
    (short,) = analyse(tmp_path / "b", fab.matmul(1000, call_s=0.02), rounds=2)
    assert short.flop_per_s.known and not short.flop_per_s.has_interval and not short.loop_s.has_interval
    assert "needs 5 rounds instead of 2" in short.notes[0]


FACTORS = {
    "all_reduce": 2 * 7 / 8, "all_gather": 7 / 8, "reduce_scatter": 7 / 8, "all_to_all": 7 / 8, "ppermute": 1.0,
    "broadcast": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("op", FACTORS)
def test_bus_bandwidth_as_nccl_tests_defines_it(tmp_path: Path, op: str) -> None:
    (row,) = analyse(tmp_path, fab.collective(op, 8 * 10**6, 8, call_s=1e-3), **EXACT)
    assert row.algbw.value == pytest.approx(8e9)
    assert row.busbw.value == pytest.approx(8e9 * FACTORS[op])
    assert not (row.flop_per_s.known or row.bytes_per_s.known)


@pytest.mark.parametrize("op", FACTORS)
def test_one_device_has_no_bus(tmp_path: Path, op: str) -> None:
    (row,) = analyse(tmp_path, fab.collective(op, 10**6, 1, call_s=1e-3), **EXACT)
    assert row.algbw.value == pytest.approx(1e9)
    assert not row.busbw.known and row.gate == "passed"


def test_bus_bandwidth_is_of_the_group_and_an_unknown_collective_or_a_transfer_has_none(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.collective("all_reduce", 10**6, 4, call_s=1e-3, mesh="2x4", axis="y"), **EXACT)
    assert row.busbw.value == pytest.approx(1e9 * 2 * 3 / 4)
    (row,) = analyse(tmp_path, fab.collective("gossip", 10**6, 4, call_s=1e-3))
    assert row.algbw.known and not row.busbw.known
    (row,) = analyse(tmp_path, fab.transfer("host_to_device", 10**6, "host", "cpu:0", call_s=1e-3), **EXACT)
    assert row.algbw.value == row.bytes_per_s.value == pytest.approx(1e9)
    assert not (row.busbw.known or row.loop_s.known)


def test_the_loop_is_paired_with_the_calls_of_its_round(tmp_path: Path) -> None:
    """Common drift of calls and loop widens both intervals, but not that of their ratio: the gate sees a clear 0.7."""
    (row,) = analyse(tmp_path, fab.matmul(512, call_s=1e-2, loop_s=7e-3), drift=0.2, noise=0.001, rounds=10)
    assert row.loop_s.hi / row.loop_s.lo > 1.1
    assert row.gates[0].passed is False


def test_a_round_without_a_loop_leaves_the_others_theirs(tmp_path: Path) -> None:
    run = RunFolder(fab.case_folder(tmp_path, [fab.matmul(512, call_s=1e-2)], **EXACT))
    (point,) = points.load_cases(run)
    first, *others = point.rounds
    bare = type(first)(**{**vars(first), "loop_steps": 0, "loop_s": (), "double_loop_s": ()})
    point = points.MeasuredPoint(**{**vars(point), "rounds": (bare, *others)})
    (row,) = run_rows.analyse([point], manifest=run.manifest(), machine=None)
    assert row.loop_s.value == pytest.approx(1e-2) and row.timing.rounds == 5


SHARES: dict[str, tuple[fab.Made, float, str]] = {
    "matmul, catalogued": (
        fab.matmul(8192, call_s=2 * 8192**3 / 494.5e12, dtype="bfloat16", **H200),
        0.5,
        "percent of catalogued peak: 989 TFLOP/s (NVIDIA H200 SXM, bf16_tflops)",
    ),
    "matmul, measured": (fab.matmul(2000, call_s=0.2), 0.8, "percent of measured peak: 100 GFLOP/s"),
    "matmul on 2 cores": (fab.matmul(2000, call_s=0.2, cores=2), 0.8 / 1.9, "float32 matmul on up to 2 cores"),
    "matmul in a dtype that is not on the card": (
        fab.matmul(2000, call_s=0.2, dtype="float64"), math.nan, "no percentage of peak: XLA calls every processor"
    ),
    "stream, measured": (fab.stream("triad", 10**8, bytes_per_s=5e9), 0.5, "percent of measured peak: 10.0 GB/s"),
    "stream, catalogued": (
        fab.stream("triad", 10**9, bytes_per_s=2.4e12, **H200), 0.5, "percent of catalogued peak: 4.80 TB/s"
    ),
    "stream from a cache": (fab.stream("triad", 10**5, bytes_per_s=5e10), math.nan, "arrays fit in a cache"),
    "eight passes over an array that a cache may keep": (
        fab.kernel("chain", 10**7, call_s=0.01, flops=None, bytes_moved=6.4e8, resident_bytes=16 * 10**7),
        math.nan, "arrays fit in a cache",
    ),
    "eight passes over an array that no cache keeps": (
        fab.kernel("chain", 10**8, call_s=1.28, flops=None, bytes_moved=6.4e9, resident_bytes=16 * 10**8),
        0.5, "percent of measured peak: 10.0 GB/s",
    ),
    "a transfer": (
        fab.transfer("host_to_device", 10**8, "host", "cpu:0", call_s=0.02), math.nan, "CPU devices have no link"
    ),
    "a collective over a catalogued link": (
        fab.collective("all_gather", 8 * 10**8, 8, call_s=7e8 / 225e9, **H200), 0.5, "450 GB/s one way"
    ),
    "an empty program": (fab.kernel("empty", 1, call_s=8e-6, flops=0.0, bytes_moved=0.0), math.nan, "none of its work"),
}  # fmt: skip


@pytest.mark.parametrize("case", SHARES)
def test_the_share_of_the_peak_says_which_peak(tmp_path: Path, case: str) -> None:
    made, share, note = SHARES[case]
    (row,) = analyse(tmp_path, made, machine=fab.card(), **EXACT)
    assert row.peak_share.value == pytest.approx(share, nan_ok=True)
    assert note in row.peak_note


def test_the_ceiling_that_binds_counts(tmp_path: Path) -> None:
    """Memory limits a kernel with 1 FLOP/byte, and arithmetic limits one with 100: the ridge is at 10 FLOP/byte."""
    thin = fab.kernel("thin", 10**8, call_s=0.16, flops=8e8)
    thick = fab.kernel("thick", 10**8, call_s=1.6, flops=8e10)
    rows = analyse(tmp_path, thin, thick, machine=fab.card(), **EXACT)
    assert [row.peak_share.value for row in rows] == pytest.approx([0.5, 0.5])
    assert ["from memory" in row.peak_note for row in rows] == [True, False]


def test_a_device_that_is_not_in_the_catalogue_has_no_percentage_of_peak(tmp_path: Path) -> None:
    unknown = fab.matmul(8192, call_s=1e-3, platform="gpu", device_kind="Fancy 9000")
    (row,) = analyse(tmp_path, unknown, **EXACT)
    assert not row.peak_share.known and row.flop_per_s.known
    assert "'Fancy 9000' is not in the hardware catalogue" in row.peak_note
    peak = fab.peak("flop_per_s", 16, 2e15, op="matmul", platform="gpu")
    (row,) = analyse(tmp_path, unknown, machine=fab.card(peaks=[peak]), **EXACT)
    assert row.peak_share.value == pytest.approx(2 * 8192**3 / 1e-3 / 2e15)
    assert row.peak_note.startswith("percent of measured peak") and "on this device" in row.peak_note


def test_an_unverified_peak_is_called_that(tmp_path: Path) -> None:
    made = fab.matmul(8192, call_s=1.0, platform="gpu", device_kind="NVIDIA A10G", dtype="bfloat16")
    (row,) = analyse(tmp_path, made)
    assert "unverified" in row.peak_note


def test_an_unmeasured_value_has_no_gate(tmp_path: Path) -> None:
    failed = fab.matmul(128, call_s=1.0, rounds=0, recorded=False, failure="out of memory")
    for row in analyse(tmp_path, fab.matmul(64, call_s=1.0, rounds=0), failed):
        assert (row.gate, row.gates, row.gate_reason, row.quotable) == ("", (), "", False)
        assert row.flop_per_s == Estimate() or not row.flop_per_s.known


def test_only_passed_and_reportable_rows_are_for_headlines(tmp_path: Path) -> None:
    good, partial = fab.matmul(64, call_s=1e-4), fab.matmul(128, call_s=1e-4, rounds=3)
    crowded = fab.collective("all_reduce", 1024, 8, call_s=1e-3, oversubscribed=True)
    rows = analyse(tmp_path, good, partial, crowded, fab.matmul(256, call_s=1e-4, zeros=1.0))
    assert [row.quotable for row in rows] == [True, False, False, False]
    assert [row.gate for row in rows] == ["passed", "passed", "passed", "refused"]
    assert "more devices than cores" in rows[2].notes[0]


def test_a_run_is_not_judged_by_the_card_that_was_made_of_it_and_says_so(tmp_path: Path) -> None:
    """A peak measured in the same run is a typical value of its best rows: half of their noise lies above it."""
    fast = fab.matmul(1024, call_s=2 * 1024**3 / 2e11)  # twice the card's peak of one core
    facts = {"manifest": {"started": "2026-01-01T00:00:00"}, **EXACT}
    (judged,) = analyse(tmp_path / "a", fast, machine=fab.card(made_of=["2026-02-02T00:00:00"]), **facts)
    (own,) = analyse(tmp_path / "b", fast, machine=fab.card(made_of=["2026-01-01T00:00:00"]), **facts)
    assert judged.gate == "refused" and own.gate == "passed"
    assert own.peak_share.value == pytest.approx(2.0)
    assert "made from this run" in own.gate_reason
    made, started = fab.matmul(2000, call_s=2 * 2000**3 / 0.9e11), {"started": "2026-01-01T00:00:00+00:00"}
    card = fab.card(made_of=[started["started"]])
    (own,) = analyse(tmp_path / "a", made, machine=card, manifest=started)
    assert own.peak_note.endswith("(machine.json), made from this run") and own.gate == "passed"
    (later,) = analyse(tmp_path / "b", made, machine=card, manifest={"started": "2026-01-02T00:00:00+00:00"})
    assert later.peak_note.endswith("(machine.json)")
    (undated,) = analyse(tmp_path / "c", fab.matmul(2000, call_s=0.01), machine=fab.card(made_of=[""]))
    assert undated.gate == "refused", "no date is not the same date"
