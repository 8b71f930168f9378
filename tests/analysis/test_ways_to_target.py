# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Time to a target for each way, from fabricated records with times that double from seed to seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from passed_rows import rows
from report import runs

from jaxbench.analysis import case_comparisons

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
