# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Crossings of implementations, parts of a call, ways to a target, and comparisons with published results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate_cases as fab
import numpy as np
import pandas as pd
import pytest
from passed_rows import rows, sweep
from report import runs

from jaxbench.analysis import case_comparisons, points, run_rows
from jaxbench.catalog import published
from jaxbench.core.store import RunFolder
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import Estimate
from jaxbench.workloads.kernels import versus

SIZES = tuple(4**k for k in range(1, 10))  # 4 .. 262,144


def numpy_(**facts: Any) -> list[fab.Made]:
    return sweep("relu", "numpy", SIZES, start_s=1e-6, per_s=1e8, **facts)


def jit(**facts: Any) -> list[fab.Made]:
    return sweep("relu", "jit", SIZES, start_s=1.1e-5, per_s=1e9, **facts)


def test_a_crossing_is_bracketed(tmp_path: Path) -> None:
    """1 us + n / 0.1 per ns meets 11 us + n / 1 per ns at n = 1,111."""
    (found,) = case_comparisons.find_crossings(rows(tmp_path, [*numpy_(), *jit()]))
    assert (found.slower, found.faster, found.below, found.from_) == ("numpy", "jit", 1024, 4096)
    assert found.advantage.value == pytest.approx(9.6, rel=0.05) and found.advantage.lo < 9.6 < found.advantage.hi
    assert "relu float32: jit overtakes numpy between 1,024 and 4,096 elements (" in found.sentence
    assert found.sentence.endswith("at 262,144 elements).")


def test_sizes_that_do_not_tell_widen_the_bracket_and_the_faster_must_stay_faster(tmp_path: Path) -> None:
    """Faster at 4 and 64 elements, but not at 16: the range in which it stays faster begins at 64."""
    one, other = [1e-6, 2e-6, 4e-6, 1e-5, 1e-5], [4e-6, 4e-6, 4e-6, 1e-5, 5e-6]
    made = [fab.kernel("relu", n, impl="numpy", call_s=t) for n, t in zip(SIZES, one, strict=False)]
    made += [fab.kernel("relu", n, impl="jit", call_s=t) for n, t in zip(SIZES, other, strict=False)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made))
    assert (found.below, found.from_) == (SIZES[1], SIZES[4])
    jitted = zip(SIZES, [1e-6, 4e-6, 1e-6], strict=False)
    made = [fab.kernel("relu", n, impl="numpy", call_s=2e-6) for n in SIZES[:3]]
    made += [fab.kernel("relu", n, impl="jit", call_s=t) for n, t in jitted]
    (found,) = case_comparisons.find_crossings(rows(tmp_path / "b", made))
    assert (found.faster, found.below, found.from_) == ("jit", 16, 64)


def test_equal_times_and_times_without_intervals_cannot_be_told_apart(tmp_path: Path) -> None:
    made = [*numpy_(), *sweep("relu", "jit", SIZES, start_s=1e-6, per_s=1e8)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made, noise=0.05, seed=1))
    assert found.from_ is None and found.below is None
    assert "numpy vs jit at 262,144 elements: inconclusive (ratio " in found.sentence
    (found,) = case_comparisons.find_crossings(rows(tmp_path, [*numpy_(), *jit()], rounds=2))
    assert "inconclusive" in found.sentence and found.from_ is None


def test_a_difference_smaller_than_the_drift_is_seen_because_rounds_are_paired(tmp_path: Path) -> None:
    made = [*numpy_(), *sweep("relu", "jit", SIZES, start_s=0.95e-6, per_s=1e8 / 0.95)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made, drift=0.3, noise=0.002, rounds=8))
    assert (found.faster, found.from_) == ("jit", 4)


def test_never_faster_names_the_largest_size(tmp_path: Path) -> None:
    made = [*numpy_(), *sweep("relu", "python", SIZES[:4], start_s=1e-6, per_s=1e6)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made))
    assert (found.slower, found.faster, found.from_, found.below) == ("python", "numpy", 4, None)
    assert found.advantage.lo < 72.2 < found.advantage.hi, "how many times as fast numpy is: 257 us over 3.56 us"
    assert "python is never faster than numpy up to 256 elements" in found.sentence


def test_refused_and_oversubscribed_rows_and_other_operations_are_not_compared(tmp_path: Path) -> None:
    made = [*numpy_(), *jit(oversubscribed=True), *sweep("tanh", "jit", SIZES, start_s=1e-6, per_s=1e8)]
    assert case_comparisons.find_crossings(rows(tmp_path / "a", made)) == []
    made = [*numpy_(), *jit()]
    refused = [m.record.point for m in made if m.record.impl == "jit" and m.record.elements < 4**8]
    (found,) = case_comparisons.find_crossings(rows(tmp_path / "b", made, refused=refused))
    assert found.from_ == 4**8


def test_platforms_and_cores_are_in_the_labels(tmp_path: Path) -> None:
    made = [*jit(platform="gpu", device_kind="NVIDIA H200"), *jit(cores=1), *jit(cores=2)]
    points = [f"{m.record.point}/{m.record.platform}{m.record.cores}" for m in made]
    named = [fab.made(call_s=m.call_s, **{**vars(m.record), "point": p}) for m, p in zip(made, points, strict=True)]
    ((_, family),) = case_comparisons.series(rows(tmp_path, named)).items()
    assert list(family) == ["jit on gpu", "jit on cpu on 1 core", "jit on cpu on 2 cores"]


def test_only_rounds_that_both_have_are_compared(tmp_path: Path) -> None:
    """Their last rounds were measured in other sessions, with a different drift of the machine."""
    parted = [numpy_()[3], jit()[3]]
    facts: dict[str, Any] = {"rounds": 9, "drift": 0.2, "noise": 0.001}
    one, two = rows(tmp_path / "a", parted, session=lambda p, r: int("jit" in p and r > 5), **facts)
    shared = paired_ratio.ratio(one, two)
    assert shared.has_interval and shared.value == pytest.approx(3.56e-6 / 1.1256e-5, rel=0.005)
    one, two = rows(tmp_path / "b", parted, session=lambda p, r: int("jit" in p and r > 1), **facts)
    assert paired_ratio.ratio(one, two).known and not paired_ratio.ratio(one, two).has_interval


def test_the_knee_is_where_half_of_the_best_throughput_is_reached(tmp_path: Path) -> None:
    """t = t0 + n / r: half of the best is at n = t0 x r = 11,000 once the largest size is far beyond it."""
    sizes = tuple(4**k for k in range(1, 14))
    (knee,) = case_comparisons.knees(rows(tmp_path, sweep("relu", "jit", sizes, start_s=1.1e-5, per_s=1e9)))
    assert knee.elements.value == pytest.approx(11_000, rel=0.1)
    assert knee.elements.lo < knee.elements.value < knee.elements.hi < 13_000
    assert (knee.below, knee.from_, knee.rising) == (4096, 16_384, False)
    assert "is reached at about 12,000 elements, between 4,096 and 16,384" in knee.sentence


def test_a_curve_that_still_rises_says_so_and_so_does_a_knee_below_the_smallest_size(tmp_path: Path) -> None:
    (knee,) = case_comparisons.knees(rows(tmp_path, sweep("relu", "jit", SIZES[:5], start_s=1e-3, per_s=1e9)))
    assert knee.rising and "still rises" in knee.sentence
    (knee,) = case_comparisons.knees(rows(tmp_path, sweep("relu", "python", SIZES, start_s=1e-9, per_s=1e6)))
    assert knee.below is None and knee.elements.value == 4 and "at the smallest size already" in knee.sentence


def test_half_of_the_best_is_interpolated_in_logarithms() -> None:
    at, value = case_comparisons._half(np.array([1.0, 100.0, 10_000.0]), np.array([[0.1, 1.0, 20.0], [9.0, 9.0, 9.0]]))
    assert at.tolist() == [2, 0]
    assert value == pytest.approx([100 ** (1 + np.log(10) / np.log(20)), 1.0])


def call(rows: int, whole: float, waited: float, start: float):
    times = {"jit+copies": whole, "waited": waited, "start": start}
    return [runs.versus_call(rows, impl, seconds) for impl, seconds in times.items()]


def test_the_parts_are_differences_and_add_up(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-4, 6e-5, 1e-5)))
    assert (found.op, found.rows, found.where, found.largest) == ("mlp", 1, "1 core", True)
    assert [part.value for part in found.parts] == pytest.approx([4e-5, 1e-5, 5e-5], rel=0.1)
    assert sum(part.value for part in found.parts) == pytest.approx(found.whole.value)
    assert all(part.lo < right < part.hi for part, right in zip(found.parts, (4e-5, 1e-5, 5e-5), strict=True))
    assert found.resolved == (True, True, True)
    assert found.sentence.startswith("mlp, 1 row on 1 core: 10") and "= transfer 3" in found.sentence


def test_a_phase_with_no_interval_or_one_around_zero_is_inconclusive(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-3, 1e-3, 1e-5)))
    assert found.resolved == (False, True, True) and found.parts[0].lo < 0 < found.parts[0].hi
    assert "transfer cannot tell (-" in found.sentence and "work 9" in found.sentence
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-4, 6e-5, 1e-5), rounds=2))
    assert found.resolved == (False, False, False) and "transfer cannot tell (no interval)" in found.sentence


def test_only_both_ends_and_only_with_all_three(tmp_path: Path) -> None:
    made = [*call(1, 1e-4, 6e-5, 1e-5), *call(64, 1e-4, 6e-5, 1e-5), *call(4096, 1e-2, 6e-3, 1e-5)]
    found = case_comparisons.find_splits(rows(tmp_path / "a", made))
    assert [(one.rows, one.largest) for one in found] == [(1, False), (4096, True)]
    made = [made[0], runs.wrong(made[1]), made[2], *made[6:8]]
    assert case_comparisons.find_splits(rows(tmp_path / "b", made)) == []


def test_the_names_are_those_of_the_kernels() -> None:
    assert {case_comparisons.WHOLE, case_comparisons.WAITED, case_comparisons.START} <= set(versus.IMPLS)
    shapes = {case.shape for size in (1, 4096) for case in versus.cases("product", "float32", size, versus.PARTS)}
    assert shapes == {case_comparisons._shape_of_rows(1), case_comparisons._shape_of_rows(4096)}


TIMES = {"numpy": 1.0, "jit": 0.5}


def trainings(missed: str = ""):
    made = {impl: [runs.training(seed, impl, s * 2**seed) for seed in range(3)] for impl, s in TIMES.items()}
    if missed:
        made[missed][1] = runs.wrong(made[missed][1])
    return [*made["numpy"], *made["jit"]]


def test_means_over_seeds_and_a_ratio_seed_by_seed(tmp_path: Path) -> None:
    base, way = case_comparisons.find_ways(rows(tmp_path, trainings()))
    assert (base.time.value, way.time.value) == pytest.approx((2.0, 1.0), rel=0.05)
    assert base.time.lo < 1 and base.time.hi > 4, "three seeds that differ so much leave a wide interval"
    assert way.steps.value == pytest.approx(80) and (way.seeds, way.reached) == (3, 3)
    assert way.speedup.value == pytest.approx(2, rel=0.05) and way.speedup.hi < 2.3, "the seeds' difference cancels"
    assert not base.speedup.known
    assert way.sentence.startswith("train_mlp, jit on 1 core: ") and "over 3 seeds; 2" in way.sentence


@pytest.mark.parametrize("missed", ["numpy", "jit"])
def test_a_seed_that_did_not_reach_the_target_counts_and_leaves_no_ratio(tmp_path: Path, missed: str) -> None:
    base, way = case_comparisons.find_ways(rows(tmp_path, trainings(missed)))
    lost = {"numpy": base, "jit": way}[missed]
    assert (lost.seeds, lost.reached) == (3, 2) and not lost.time.has_interval and lost.time.known
    assert not way.speedup.known
    assert ": at least " in lost.sentence and "1 of them did not reach it" in lost.sentence


def test_other_cases_are_no_trainings(tmp_path: Path) -> None:
    assert case_comparisons.find_ways(rows(tmp_path, runs.curves())) == []


H200 = {"platform": "gpu", "device_kind": "NVIDIA H200"}
PUBLISHED_SIZES = (2**10, 2**16, 2**22, 3 * 2**25, 2**30)


def reduced(
    share: float, *, devices: int = 8, sizes: tuple[int, ...] = PUBLISHED_SIZES, **changes: Any
) -> list[fab.Made]:
    """all_reduce at `share` of the published 8 x H200; outside the range of the series at 1 GB/s."""
    table = published.allreduce()["h200x8"]
    made = []
    for size in sizes:
        inside = table.index[0] <= size <= table.index[-1]
        busbw = share * case_comparisons.interpolate(table, size) if inside else 1e9
        call_s = size * 2 * (devices - 1) / devices / busbw
        made.append(fab.collective("all_reduce", size, devices, call_s=call_s, **(H200 | changes)))
    return made


def verdict(
    path: Path, made: list[fab.Made], *, manifest: Any = H200, **facts: Any
) -> case_comparisons.PublishedVerdict:
    measured = rows(path, made, view="collectives", **facts)
    (found,) = case_comparisons.published_verdicts("collectives", measured, manifest=manifest)
    return found


@pytest.mark.parametrize(
    ("share", "word"), [(1.0, "normal"), (0.5, "low"), (1.5, "high"), (0.8, "cannot tell"), (1.2, "cannot tell")]
)
def test_the_word(tmp_path: Path, share: float, word: str) -> None:
    found = verdict(tmp_path, reduced(share))
    assert (found.series, found.word) == ("h200x8", word)
    assert found.shares[-1].ratio.value == pytest.approx(share, rel=0.03) and found.shares[-1].ratio.has_interval


@pytest.mark.parametrize(
    ("lo", "hi", "word"),
    [(0.8, 1.2, "normal"), (0.79, 1.0, "cannot tell"), (1.0, 1.21, "cannot tell"), (0.5, 0.79, "low"),
     (1.21, 1.3, "high"), (0.7, 1.3, "cannot tell")],
)  # fmt: skip
def test_an_interval_that_straddles_a_limit_cannot_tell(lo: float, hi: float, word: str) -> None:
    assert case_comparisons.published_word(Estimate(value=(lo + hi) / 2, lo=lo, hi=hi)) == word


def test_only_accepted_payloads_of_the_published_range_are_compared(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0))
    assert [s.payload_bytes for s in found.shares] == list(PUBLISHED_SIZES[1:])
    assert 0.95 < found.lowest <= found.highest < 1.05
    found = verdict(tmp_path, reduced(1.0, sizes=(2**16,)))
    assert np.isnan(found.lowest) and "from 1 MiB on" not in found.sentence and found.word == "normal"
    found = verdict(tmp_path, reduced(1.0), rounds=2)
    assert found.word == "cannot tell" and "fewer than 5 rounds" in found.sentence
    made = reduced(1.0)
    found = verdict(tmp_path, made, refused=[made[-1].record.point])
    assert found.shares[-1].payload_bytes == PUBLISHED_SIZES[-2]


def test_between_two_payloads_the_series_is_linear_in_logarithms() -> None:
    series = pd.Series([1.0, 100.0], index=[10, 1000])
    assert case_comparisons.interpolate(series, 100) == pytest.approx(10)
    assert case_comparisons.interpolate(series, 1000) == pytest.approx(100)


def test_the_sentence_has_the_share_the_range_the_rank_and_the_warning(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0, sizes=(2**20, 2**30), dtype="bfloat16"))
    assert found.sentence.startswith("This is normal: at 1 GiB all_reduce bfloat16 on 8 devices has ")
    for part in ("of the 464 GB/s published for h200x8", "from 1 MiB on it is", "single measurements by others"):
        assert part in found.sentence
    busbw = found.shares[-1].busbw.value
    slower = sum(busbw > column for column in published.allreduce().loc[2**30])
    assert (found.slower_series, found.all_series, found.percentile) == (slower, 4, 25 * slower)
    said = f"{slower} of the 4 published series of all devices are slower there (percentile {25 * slower})"
    assert said in found.sentence


def test_a_clock_beyond_the_link_makes_no_verdict_of_its_small_payloads(tmp_path: Path) -> None:
    """From 64 MiB on it exceeds the link, at 16 MiB it does not: no size is "higher than normal"."""
    sizes = [4**k for k in range(8, 17)]
    made = fab.alpha_beta("all_reduce", 8, sizes, alpha_s=2e-5, beta=9e11, platform="gpu", device_kind="NVIDIA H200")
    run = RunFolder(fab.case_folder(tmp_path, made, view="collectives", manifest=H200))
    found = run_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=None)
    (said,) = case_comparisons.published_verdicts("collectives", found, manifest=run.manifest())
    assert said.word == "" and "no all_reduce over one whole node passed every gate" in said.sentence


@pytest.mark.parametrize(
    ("made", "manifest", "why"),
    [
        (reduced(1.0, platform="cpu", device_kind="cpu"), {"device_kind": "cpu"}, "this ran on a CPU"),
        (reduced(1.0), {"device_kind": "NVIDIA H300"}, "'NVIDIA H300' is not in the hardware catalogue"),
        (reduced(1.0), {"device_kind": "NVIDIA H100 80GB HBM3"}, "no series was published for NVIDIA H100 SXM"),
        (reduced(1.0, devices=4), H200, "the series published for NVIDIA H200 SXM is for 8 devices, and 4 devices"),
        (reduced(1.0, oversubscribed=True), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, mesh="2x8", axis="y"), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, processes=4), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, sizes=(2**10,)), H200, "no payload of float32 is in the published range, 32 KiB to 16 GiB"),
        ([fab.collective("all_gather", 2**20, 8, call_s=1e-3)], H200, "no all_reduce was measured"),
    ],
)  # fmt: skip
def test_no_verdict_is_a_sentence(tmp_path: Path, made: list[fab.Made], manifest: dict[str, Any], why: str) -> None:
    found = verdict(tmp_path, made, manifest=manifest)
    assert found.sentence.startswith("No verdict on whether this is normal: ") and why in found.sentence
    assert not found.series and not found.shares


def test_every_dtype_has_its_verdict_and_other_views_have_none(tmp_path: Path) -> None:
    made = [*reduced(1.0), *reduced(0.5, dtype="bfloat16")]
    found = case_comparisons.published_verdicts("collectives", rows(tmp_path, made, view="collectives"), manifest=H200)
    assert [(v.dtype, v.word) for v in found] == [("float32", "normal"), ("bfloat16", "low")]
    assert case_comparisons.published_verdicts("matmul", [], manifest=H200) == []
