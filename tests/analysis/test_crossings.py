# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Crossings lie between sizes at which each side is clearly faster; knees are where throughput is half of its best."""

from pathlib import Path
from typing import Any

import fabricate_cases as fab
import numpy as np
import pytest
from passed_rows import rows, sweep

from jaxbench.analysis import case_comparisons
from jaxbench.statistics import paired_ratio

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


def test_sizes_that_do_not_tell_widen_the_bracket(tmp_path: Path) -> None:
    one, other = [1e-6, 2e-6, 4e-6, 1e-5, 1e-5], [4e-6, 4e-6, 4e-6, 1e-5, 5e-6]
    made = [fab.kernel("relu", n, impl="numpy", call_s=t) for n, t in zip(SIZES, one, strict=False)]
    made += [fab.kernel("relu", n, impl="jit", call_s=t) for n, t in zip(SIZES, other, strict=False)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made))
    assert (found.below, found.from_) == (SIZES[1], SIZES[4])


def test_the_faster_must_stay_faster(tmp_path: Path) -> None:
    """Faster at 4 and 64 elements, but not at 16: the range in which it stays faster begins at 64."""
    jitted = zip(SIZES, [1e-6, 4e-6, 1e-6], strict=False)
    made = [fab.kernel("relu", n, impl="numpy", call_s=2e-6) for n in SIZES[:3]]
    made += [fab.kernel("relu", n, impl="jit", call_s=t) for n, t in jitted]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made))
    assert (found.faster, found.below, found.from_) == ("jit", 16, 64)


def test_equal_times_cannot_be_told_apart(tmp_path: Path) -> None:
    made = [*numpy_(), *sweep("relu", "jit", SIZES, start_s=1e-6, per_s=1e8)]
    (found,) = case_comparisons.find_crossings(rows(tmp_path, made, noise=0.05, seed=1))
    assert found.from_ is None and found.below is None
    assert "numpy vs jit at 262,144 elements: inconclusive (ratio " in found.sentence


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


def test_without_intervals_one_cannot_tell(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_crossings(rows(tmp_path, [*numpy_(), *jit()], rounds=2))
    assert "inconclusive" in found.sentence and found.from_ is None


def test_refused_and_oversubscribed_rows_and_other_operations_are_not_compared(tmp_path: Path) -> None:
    made = [*numpy_(), *jit(oversubscribed=True), *sweep("tanh", "jit", SIZES, start_s=1e-6, per_s=1e8)]
    assert case_comparisons.find_crossings(rows(tmp_path / "a", made)) == []
    made = [*numpy_(), *jit()]
    refused = [m.record.point for m in made if m.record.impl == "jit" and m.record.elements < 4**8]
    (found,) = case_comparisons.find_crossings(rows(tmp_path / "b", made, refused=refused))
    assert found.from_ == 4**8


def test_platforms_and_cores_are_in_the_labels(tmp_path: Path) -> None:
    gpu = jit(platform="gpu", device_kind="NVIDIA H200")
    cpus = [m for c in (1, 2) for m in jit(cores=c)]
    named = [
        fab.made(
            call_s=m.call_s, **{**vars(m.record), "point": f"{m.record.point}/{m.record.platform}{m.record.cores}"}
        )
        for m in [*gpu, *cpus]
    ]
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


def test_a_curve_that_still_rises_says_so(tmp_path: Path) -> None:
    (knee,) = case_comparisons.knees(rows(tmp_path, sweep("relu", "jit", SIZES[:5], start_s=1e-3, per_s=1e9)))
    assert knee.rising and "still rises" in knee.sentence


def test_a_knee_below_the_smallest_size(tmp_path: Path) -> None:
    (knee,) = case_comparisons.knees(rows(tmp_path, sweep("relu", "python", SIZES, start_s=1e-9, per_s=1e6)))
    assert knee.below is None and knee.elements.value == 4 and "at the smallest size already" in knee.sentence


def test_half_of_the_best_is_interpolated_in_logarithms() -> None:
    at, value = case_comparisons._half(np.array([1.0, 100.0, 10_000.0]), np.array([[0.1, 1.0, 20.0], [9.0, 9.0, 9.0]]))
    assert at.tolist() == [2, 0]
    assert value == pytest.approx([100 ** (1 + np.log(10) / np.log(20)), 1.0])


def test_sentences_name_crossings_first(tmp_path: Path) -> None:
    found = rows(tmp_path, [*numpy_(), *jit()])
    said = [one.sentence for one in (*case_comparisons.find_crossings(found), *case_comparisons.knees(found))]
    assert "overtakes" in said[0] and len(said) == 3
