# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A call with copies splits into transfer, start and work, from fabricated records with known parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from passed_rows import rows
from report import runs

from jaxbench.analysis import case_comparisons
from jaxbench.workloads.kernels import versus


def call(rows: int, whole: float, waited: float, start: float):
    return [
        runs.versus_call(rows, impl, s) for impl, s in (("jit+copies", whole), ("waited", waited), ("start", start))
    ]


def test_the_parts_are_differences_and_add_up(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-4, 6e-5, 1e-5)))
    assert (found.op, found.rows, found.where, found.largest) == ("mlp", 1, "1 core", True)
    assert [part.value for part in found.parts] == pytest.approx([4e-5, 1e-5, 5e-5], rel=0.1)
    assert sum(part.value for part in found.parts) == pytest.approx(found.whole.value)
    assert all(part.lo < right < part.hi for part, right in zip(found.parts, (4e-5, 1e-5, 5e-5), strict=True))
    assert found.resolved == (True, True, True)
    assert found.sentence.startswith("mlp, 1 row on 1 core: 10") and "= transfer 3" in found.sentence


def test_a_phase_with_an_interval_around_zero_is_inconclusive(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-3, 1e-3, 1e-5)))
    assert found.resolved == (False, True, True) and found.parts[0].lo < 0 < found.parts[0].hi
    assert "transfer cannot tell (-" in found.sentence and "work 9" in found.sentence


def test_without_an_interval_nothing_can_be_told(tmp_path: Path) -> None:
    (found,) = case_comparisons.find_splits(rows(tmp_path, call(1, 1e-4, 6e-5, 1e-5), rounds=2))
    assert found.resolved == (False, False, False) and "transfer cannot tell (no interval)" in found.sentence


def test_only_both_ends_and_only_with_all_three(tmp_path: Path) -> None:
    made = [*call(1, 1e-4, 6e-5, 1e-5), *call(64, 1e-4, 6e-5, 1e-5), *call(4096, 1e-2, 6e-3, 1e-5)]
    assert [(one.rows, one.largest) for one in case_comparisons.find_splits(rows(tmp_path / "a", made))] == [
        (1, False),
        (4096, True),
    ]
    made = [made[0], runs.wrong(made[1]), made[2], *made[6:8]]
    assert case_comparisons.find_splits(rows(tmp_path / "b", made)) == []


def test_the_names_are_those_of_the_kernels() -> None:
    assert {case_comparisons.WHOLE, case_comparisons.WAITED, case_comparisons.START} <= set(versus.IMPLS)
    shapes = {case.shape for size in (1, 4096) for case in versus.cases("product", "float32", size, versus.PARTS)}
    assert shapes == {case_comparisons._shape(1), case_comparisons._shape(4096)}
