# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The gates of cases and of training steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases
import fabricate_cases as fab
import pytest

from jaxbench.analysis import alpha_beta, gates, headline, points, run_rows, scaling_laws
from jaxbench.analysis.gates import Gate
from jaxbench.analysis.headline import headlines
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row
from jaxbench.core import schema
from jaxbench.core.schema import PointRecord, RoundRecord
from jaxbench.core.store import RunFolder

H200 = {"platform": "gpu", "device_kind": "NVIDIA H200", "launch_s": 5e-6, "dtype": "bfloat16"}
BIG = 10**8  # float32 values: larger than any cache


def analyse(path: Path, *made: fab.Made, machine: dict[str, Any] | None = None, **facts: Any) -> list[Row]:
    run = RunFolder(fab.case_folder(path, made, **facts))
    return run_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=machine)


def gate(row: Row, name: str) -> Gate:
    (found,) = [g for g in row.gates if g.name == name]
    return found


def judged(path: Path, name: str, made: fab.Made, **facts: Any) -> bool | None:
    """The gate's message; a refusal must refuse the row, name its gate and keep the row out of headlines."""
    (row,) = analyse(path, made, **facts)
    passed = gate(row, name).passed
    refused = f"{name}: {gate(row, name).reason}" in row.gate_reason
    assert refused == (passed is False)
    assert row.gate == ("refused" if any(g.passed is False for g in row.gates) else "passed")
    assert row.quotable == (row.gate == "passed" and row.point.reportable)
    return passed


TANH = {"op": "tanh", "elements": 1000}
CLOCKS: dict[str, tuple[fab.Made, bool | None, str]] = {
    "they agree": (fab.matmul(1024, call_s=0.02, loop_s=0.0205), True, "20"),
    "calls that were not waited for": (fab.matmul(1024, call_s=9e-6, loop_s=0.02), False, "not waited for"),
    "a little slower loop": (fab.matmul(1024, call_s=0.02, loop_s=0.024), True, ""),
    "a loop slower by less than a launch": (fab.kernel(**TANH, call_s=4e-6, loop_s=9e-6), True, ""),
    "a loop slower by more": (fab.kernel(**TANH, call_s=4e-6, loop_s=15e-6), False, "not waited for"),
    "an accelerator's loop asks the host": (fab.kernel(**TANH, call_s=4e-6, loop_s=22e-6, **H200), True, ""),
    "a result that the loop lost": (fab.matmul(1024, call_s=0.02, loop_s=1e-7), False, "removed or hoisted"),
    "half of it hoisted": (fab.matmul(1024, call_s=0.02, loop_s=0.01), False, "takes 50 % of the time of a call"),
    "all launch": (fab.kernel(**TANH, call_s=7.6e-6, loop_s=6e-7), True, "launch-bound: 92 %"),
    "threads woken at each call": (fab.kernel(**TANH, call_s=50e-6, loop_s=24e-6), True, "launch-bound: 52 %"),
    "more than launch": (fab.kernel(**TANH, call_s=400e-6, loop_s=24e-6), False, "removed or hoisted"),
    "launch was not measured": (fab.kernel(**TANH, call_s=8e-6, loop_s=1e-6, launch_s=None), False, "removed"),
    "eight devices to start": (fab.collective("all_reduce", 1024, 8, call_s=5e-4, loop_s=1e-4), True, "launch-bound"),
    "one device to start": (fab.kernel(**TANH, call_s=5e-4, loop_s=1e-4), False, "removed or hoisted"),
    "crowded cores": (
        fab.collective("broadcast", 2**24, 8, call_s=0.030, loop_s=0.050, oversubscribed=True), True, ""
    ),
    "a device to each core": (fab.collective("broadcast", 2**24, 8, call_s=0.030, loop_s=0.050), False, "waited for"),
    "crowded cores are no excuse": (
        fab.collective("broadcast", 2**24, 8, call_s=0.001, loop_s=0.050, oversubscribed=True), False, "waited for"
    ),
    "nor for lost work": (
        fab.collective("broadcast", 2**24, 8, call_s=0.030, loop_s=0.001, oversubscribed=True), False, "removed"
    ),
    "no loop, equal blocks": (fab.matmul(1024, call_s=0.02, loop_s=None, impl="numpy"), True, "100 %"),
    "no loop, blocks of one long fence": (
        fab.transfer("host_to_device", 4096, "host", "cpu:0", call_s=1e-6, fixed_s=1e-3),
        False,
        "one more call costs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOCKS)
def test_two_clocks(tmp_path: Path, case: str) -> None:
    made, passed, reason = CLOCKS[case]
    assert judged(tmp_path, gates.TWO_CLOCKS, made, noise=0.001, drift=0.001) is passed
    (row,) = analyse(tmp_path, made, noise=0.001, drift=0.001)
    assert reason in gate(row, gates.TWO_CLOCKS).reason


def test_noise_is_no_disagreement_and_a_single_round_is_judged_by_its_values(tmp_path: Path) -> None:
    made = fab.matmul(1024, call_s=0.02, loop_s=0.028)
    assert judged(tmp_path / "a", gates.TWO_CLOCKS, made, noise=0.001) is False
    assert judged(tmp_path / "b", gates.TWO_CLOCKS, made, noise=0.25) is True
    assert judged(tmp_path / "a", gates.TWO_CLOCKS, fab.matmul(1024, call_s=0.02, loop_s=1e-4), rounds=1) is False
    assert judged(tmp_path / "b", gates.TWO_CLOCKS, fab.matmul(1024, call_s=0.02), rounds=1) is True


def timed(path: Path, made: fab.Made, **times: list[float]) -> Row:
    """The row of a case measured by one process, with other times in its rounds: one value per round."""
    run = RunFolder(fab.case_folder(path, [made]))
    (point,) = points.load_cases(run)
    changes = [{name: (values[i],) for name, values in times.items()} for i in range(5)]
    rounds = tuple(
        dataclasses.replace(r, worker="session0/cpu1", **change)
        for r, change in zip(point.rounds, changes, strict=True)
    )  # type: ignore[arg-type]
    (row,) = run_rows.analyse([dataclasses.replace(point, rounds=rounds)], manifest=run.manifest(), machine=None)
    return row


def test_a_loop_that_noise_hides_tells_nothing(tmp_path: Path) -> None:
    double = [1e-4 * (1 + slope) for slope in (-0.5, -0.2, 1.0, 1.2, 2.0)]
    row = timed(tmp_path, fab.kernel(**TANH, call_s=8e-6), loop_s=[1e-4] * 5, double_loop_s=double)
    assert row.loop_s.value == pytest.approx(1e-6) and row.loop_s.lo < 0
    found = gate(row, gates.TWO_CLOCKS)
    assert found.passed is None and "unknown" in found.reason and row.gate_reason == found.reason


def test_one_round_may_have_been_disturbed(tmp_path: Path) -> None:
    for loop_s, passed in ((0.06, True), (0.2, False), (0.005, True), (0.001, False)):
        made = fab.matmul(1024, call_s=0.02, loop_s=loop_s)
        assert judged(tmp_path / f"{loop_s}", gates.TWO_CLOCKS, made, rounds=2) is passed, loop_s
        assert judged(tmp_path / f"{loop_s}x", gates.TWO_CLOCKS, made, rounds=5) is False, loop_s
    fenced = fab.matmul(64, call_s=1e-4, loop_s=None, impl="numpy", fixed_s=4e-3)  # a third per further call
    assert judged(tmp_path / "a", gates.TWO_CLOCKS, fenced, rounds=2) is True
    assert judged(tmp_path / "b", gates.TWO_CLOCKS, fenced, rounds=5) is False


def _all_reduce(rate: float, op: str = "all_reduce", **changes: Any) -> fab.Made:
    """8 devices, 4 GiB, at a bus bandwidth of `rate`."""
    factor = {"all_reduce": 1.75, "all_gather": 0.875}[op]
    return fab.collective(op, 2**32, 8, call_s=2**32 * factor / rate, **{**H200, **changes})


A100 = {"device_kind": "NVIDIA A100-SXM4-80GB"}
PEAKS: dict[str, tuple[fab.Made, bool | None, str]] = {
    "matmul below the catalogue": (fab.matmul(8192, call_s=2 * 8192**3 / 800e12, **H200), True, ""),
    "matmul above it": (fab.matmul(8192, call_s=2 * 8192**3 / 1100e12, **H200), False, "impossible"),
    "matmul of another dtype": (fab.matmul(8192, call_s=1e-9, **(H200 | {"dtype": "int8"})), None, "no int8 peak"),
    "matmul below the card": (fab.matmul(2048, call_s=2 * 2048**3 / 0.95e11), True, ""),
    "matmul above the card": (fab.matmul(2048, call_s=2 * 2048**3 / 1.3e11), False, "profile is wrong"),
    "the same on 2 cores": (fab.matmul(2048, call_s=2 * 2048**3 / 1.3e11, cores=2), True, ""),
    "on as many as the card has not": (fab.matmul(2048, call_s=1e-9, cores=3), None, "no float32 matmul on 3 cores"),
    "stream below the card": (fab.stream("triad", BIG, bytes_per_s=9.9e9), True, ""),
    "stream above the card": (fab.stream("triad", BIG, bytes_per_s=13e9), False, "from memory"),
    "stream from a cache": (fab.stream("triad", 10**5, bytes_per_s=55e9), True, ""),
    "stream from a nearer cache": (fab.stream("triad", 10**5, bytes_per_s=100e9), True, ""),
    "little of much is read": (
        fab.stream("triad", 10**6, bytes_per_s=50e9, resident_bytes=10**9), True, ""
    ),
    "stream above any cache": (fab.stream("triad", 10**5, bytes_per_s=200e9), False, "from a cache"),
    "stream below the catalogue": (fab.stream("copy", 10**9, bytes_per_s=4.5e12, **H200), True, ""),
    "stream above the catalogue": (fab.stream("copy", 10**9, bytes_per_s=5.5e12, **H200), False, "impossible"),
    "an accelerator's cache": (fab.stream("copy", 10**6, bytes_per_s=5.5e12, **H200), None, "fit in a cache"),
    "a copy that only aliases": (fab.transfer("host_to_device", BIG, "host", "cpu:0", call_s=8e-6), False, "memory"),
    "a copy that copies": (fab.transfer("host_to_device", BIG, "host", "cpu:0", call_s=0.02), True, ""),
    "all_reduce that a ring can do": (_all_reduce(440e9), True, ""),
    "all_reduce reduced in the network, as published": (_all_reduce(473e9), True, ""),
    "all_reduce above even that": (_all_reduce(900e9), False, "with reduction in the network"),
    "all_gather has no such exception": (_all_reduce(490e9, "all_gather"), False, "one way"),
    "an A100 neither": (_all_reduce(330e9, **A100), False, "300 GB/s one way"),
    "an A100 as published": (_all_reduce(234.9e9, **A100), True, ""),
    "no link of its own": (_all_reduce(1e15, platform="cpu", device_kind="cpu"), None, "no link of their own"),
    "PCIe leads to the host": (
        _all_reduce(1e12, device_kind="Tesla T4"), None, "the only catalogued link of NVIDIA T4 is the one to the host"
    ),
    "and bounds copies from it": (
        fab.transfer("host_to_device", BIG, "host", "gpu:0", call_s=BIG / 30e9, **(H200 | {"device_kind": "Tesla T4"})),
        False,
        "15.8 GB/s one way (NVIDIA T4: PCIe",
    ),
    "NVLink does not": (
        fab.transfer("host_to_device", BIG, "host", "gpu:0", call_s=BIG / 30e9, **H200), None, "link of NVIDIA H200"
    ),
    "two devices of one chip": (
        _all_reduce(1e13, platform="tpu", device_kind="TPU v3"), None, "2 JAX devices are one Google TPU v3"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PEAKS)
@pytest.mark.parametrize("name", [gates.BELOW_PEAK, gates.ROOFLINE])
def test_not_above_a_peak_and_not_below_a_roofline(tmp_path: Path, case: str, name: str) -> None:
    made, passed, reason = PEAKS[case]
    facts: dict[str, Any] = {"machine": fab.card(), "noise": 0.001, "drift": 0.001}
    assert judged(tmp_path, name, made, **facts) is passed
    (row,) = analyse(tmp_path, made, **facts)
    assert reason in gate(row, gates.BELOW_PEAK).reason


@pytest.mark.parametrize(("upper", "passed"), [(1.01e11, False), (1.25e11, True)])
def test_a_peak_refuses_nothing_that_its_own_interval_allows(tmp_path: Path, upper: float, passed: bool) -> None:
    card = fab.card(peaks=[fab.peak("flop_per_s", 1, 1e11, op="matmul", hi=upper)])
    facts: dict[str, Any] = {"machine": card, "noise": 0.001, "drift": 0.001}
    assert judged(tmp_path, gates.BELOW_PEAK, fab.matmul(2048, call_s=2 * 2048**3 / 1.3e11), **facts) is passed


def test_a_clock_beyond_the_link_is_believed_at_no_size(tmp_path: Path) -> None:
    """Without fences at any size; small sizes stay below the link's rate and would enter headline, fit and profile."""
    sizes = [4**k for k in range(5, 17)]
    lie = fab.alpha_beta("all_reduce", 8, sizes, alpha_s=2e-5, beta=9e11, **H200)
    truth = fab.alpha_beta("all_gather", 8, sizes, alpha_s=2e-5, beta=4e11, **H200)
    found = analyse(tmp_path, *lie, *truth, noise=0.001, drift=0.001)
    refused = [row for row in found if row.gate == "refused"]
    assert [row.point.op for row in refused] == ["all_reduce"] * len(sizes)
    assert "exceeds its link at 64 MiB, 256 MiB, 1 GiB, 4 GiB" in refused[0].gate_reason
    assert "impossible" in refused[-1].gate_reason
    (lied, told) = alpha_beta.fit_all(found)
    assert "every size was refused" in lied.why_not and not told.why_not


def test_operations_of_integers_are_no_flops(tmp_path: Path) -> None:
    card = fab.card(peaks=[fab.peak("flop_per_s", 1, 1e11, op="matmul", dtype="int8")])
    (row,) = analyse(tmp_path, fab.matmul(2048, call_s=0.01, dtype="int8"), machine=card)
    assert "TOP/s is" in row.gate_reason and "its 1.72e+10 OPs need" in row.gate_reason
    assert "100 GOP/s, this machine's best int8 matmul on 1 core" in row.peak_note and "FLOP" not in row.gate_reason


def test_what_is_known_of_the_ceilings_decides_what_is_judged(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.matmul(2048, call_s=0.2))
    found = gate(row, gates.BELOW_PEAK)
    assert found.passed is None and "this machine has no profile" in found.reason
    assert row.gate == "passed" and row.gate_reason == found.reason
    (row,) = analyse(tmp_path, fab.kernel("empty", 1, call_s=8e-6, flops=None, bytes_moved=None), machine=fab.card())
    assert gate(row, gates.BELOW_PEAK).passed is None and "neither FLOPs nor bytes" in row.gate_reason
    (row,) = analyse(tmp_path, fab.stream("copy", BIG, bytes_per_s=2e10), machine=fab.card())
    assert "8e+08 bytes need 80.0 ms" in gate(row, gates.ROOFLINE).reason
    cards = fab.card()
    cards["peaks"] = [p for p in cards["peaks"] if p["quantity"] == "flop_per_s"]
    assert judged(tmp_path, gates.BELOW_PEAK, fab.matmul(8192, call_s=12.0), machine=cards) is True


def test_not_negative(tmp_path: Path) -> None:
    for name, made, passed in (
        ("truth", fab.kernel(**TANH, call_s=8e-6, loop_s=1e-6), True),
        ("a loop that runs backwards", fab.kernel(**TANH, call_s=8e-6, loop_s=-1e-6), False),
        ("a loop of nothing", fab.kernel(**TANH, call_s=8e-6, loop_s=-1e-11), True),
        ("negative work", fab.matmul(1024, call_s=0.02, flops=-2.0), False),
    ):
        assert judged(tmp_path / name, gates.POSITIVE, made, noise=0.001) is passed, name


def test_blocks_that_shrink_with_their_length_are_negative_and_in_some_rounds_noise(tmp_path: Path) -> None:
    """2 K calls are faster than K in every round: the time of K calls includes something else."""
    made = fab.matmul(64, call_s=1e-4, loop_s=None, impl="numpy")
    row = timed(tmp_path, made, block_s=[0.01] * 5, double_block_s=[0.005] * 5)
    assert "one more call takes -0.00025 s" in gate(row, gates.POSITIVE).reason and row.gate == "refused"
    row = timed(tmp_path, made, block_s=[0.01] * 5, double_block_s=[0.005, 0.006, 0.009, 0.02, 0.02])
    assert row.timing.clock_ratio.value < 0 and gate(row, gates.POSITIVE).passed is True


@pytest.mark.parametrize(
    ("zeros", "elements", "passed"), [(0.0, 1000, True), (0.5, 1000, True), (1.0, 1000, False), (1.0, 1, True)]
)
def test_inputs_not_all_zeros(tmp_path: Path, zeros: float, elements: int, passed: bool) -> None:
    made = fab.kernel("relu", elements, call_s=1e-5, zeros=zeros)
    assert judged(tmp_path, gates.INPUTS, made) is passed


@pytest.mark.parametrize(
    ("wrong", "ok", "passed"), [(0, True, True), (12, True, False), (0, False, False), (None, True, None)]
)
def test_right_result(tmp_path: Path, wrong: int | None, ok: bool, passed: bool | None) -> None:
    check = schema.Verdict(name="result", ok=ok, reason="as the check says")
    assert judged(tmp_path, gates.RIGHT, fab.matmul(64, call_s=1e-4, wrong=wrong, checks=(check,))) is passed


@pytest.mark.parametrize(
    ("held", "passed"),
    [(("reduce-scatter",), True), ((), True), (("all-reduce",), False), (("all-reduce", "reduce-scatter"), False)],
)
def test_the_collective_it_is_called(tmp_path: Path, held: tuple[str, ...], passed: bool) -> None:
    """A TPU's compiler emits a one-dimensional scatter as a sum, which sends twice as much."""
    made = fab.collective("reduce_scatter", 2**20, 8, call_s=0.01, impl="reduce-scatter", collectives=held)
    assert judged(tmp_path, gates.ITSELF, made) is passed
    if not passed:
        (row,) = analyse(tmp_path / "again", made)
        assert row.gate == "refused" and "used all-reduce" in row.gate_reason and not row.quotable


def test_a_row_without_a_record_of_its_run_is_not_believed_or_refused(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.matmul(64, call_s=1e-4, recorded=False))
    assert gate(row, gates.INPUTS).passed is None and gate(row, gates.RIGHT).passed is None
    assert row.gate == "passed" and not row.quotable


def test_all_reasons_of_a_refusal_are_given_and_launch_is_the_first_remark(tmp_path: Path) -> None:
    (row,) = analyse(tmp_path, fab.matmul(1024, call_s=0.02, loop_s=1e-7, wrong=3, zeros=1.0))
    refused = [g.name for g in row.gates if g.passed is False]
    assert refused == [gates.TWO_CLOCKS, gates.INPUTS, gates.RIGHT]
    assert all(f"{name}: " in row.gate_reason for name in refused)
    (row,) = analyse(tmp_path, fab.kernel(**TANH, call_s=8e-6, loop_s=1e-6, wrong=None))
    assert row.gate == "passed" and row.gate_reason.startswith("launch-bound")


# 400 GFLOP/s per core: the fabricated step reaches 260.
PEAK = fabricate_cases.peak("flop_per_s", 1, 4e11, op="matmul")
CARD = fabricate_cases.card(peaks=[PEAK], machine={**fabricate_cases.card()["machine"], "cores": 8})
LINEAR: Any = dict(law=lambda scaling, n: 0.9 * n if n > 1 else 1.0, noise=0.002, drift=0.0)
Change = Callable[[Any], Any]


def told(path: Path, lie: Change = lambda point: point, machine: Any = None, **facts: Any) -> dict[str, Row]:
    """The rows of a fabricated run; `lie` changes each point after it was read."""
    run = RunFolder(fabricate.run_folder(path, **{**LINEAR, **facts}))
    rows = run_rows.analyse([lie(point) for point in points.load(run)], config=run.config(), machine=machine)
    return {row.point_id: row for row in rows}


def of_rounds(change: Change) -> Change:
    def lie(point: MeasuredPoint) -> Any:
        return dataclasses.replace(point, rounds=tuple(change(each) for each in point.rounds))

    return lie


def of_compile_report(**changes: Any) -> Change:
    def lie(point: Any) -> Any:
        record: PointRecord = point.record
        compile_report = dataclasses.replace(record.compile_report, **changes)
        return dataclasses.replace(point, record=dataclasses.replace(record, compile_report=compile_report))

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


@pytest.mark.parametrize(("platform", "refused"), [("cpu", True), ("gpu", False)])
def test_flops_in_a_library_without_a_count_are_unknown_on_a_gpu(tmp_path: Path, platform: str, refused: bool) -> None:
    """There most products are library calls, which XLA's own count leaves out."""

    def lie(point: Any) -> Any:
        small = of_compile_report(product_flops_per_step=None, compiler_flops_per_step=1.0)(point)
        return dataclasses.replace(small, record=dataclasses.replace(small.record, platform=platform))

    gate = next(gate for gate in next(iter(told(tmp_path, lie).values())).gates if gate.name == gates.FLOPS_DONE)
    assert gate.passed is (False if refused else None)


@pytest.mark.parametrize("kind", ["cpu", "NVIDIA H200"])
def test_times_divided_by_a_thousand(tmp_path: Path, kind: str) -> None:
    single, double = scaled("block_s", 1e-6), scaled("double_block_s", 1e-6)
    machine = CARD if kind == "cpu" else None
    rows = told(
        tmp_path,
        lambda point: single(double(point)),
        machine=machine,
        device_kind=kind,
        platform="cpu" if kind == "cpu" else "gpu",
    )
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
    rows = told(tmp_path, of_compile_report(flops_per_step=3.2e15))
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
    more = told(tmp_path / "a", of_compile_report(product_flops_per_step=9e9))["shard_map/strong/2"]
    unknown = told(tmp_path / "b", of_compile_report(compiler_flops_per_step=None))["shard_map/strong/2"]
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
    (sentence,) = headlines(list(rows.values()), headline.controls(list(rows.values())))
    assert "the A/A spread (same program measured twice) is up to 17 %" in sentence
