# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A core that is slow for a while disturbs rounds; cores that are always unequal do not."""

from __future__ import annotations

import dataclasses
import math

import pytest

from jaxbench.core.schema import RoundRecord
from jaxbench.statistics import core_speeds, timing

QUIET = RoundRecord(
    point="p", round=0, steps=4, block_s=(1.0,), double_block_s=(), warmup_block_s=(), settled=True, compilations=0,
    worker="session0/w0", cores=(0, 1), core_product_s=((1e-4, 1e-4),),
)  # fmt: skip


def rounds(*of_each: tuple[float, ...], workers: int = 3) -> list[RoundRecord]:
    """One round for each (seconds of CPU 0, seconds of CPU 1)."""
    return [
        dataclasses.replace(QUIET, round=i, core_product_s=(each,), worker=f"session0/w{i % workers}")
        for i, each in enumerate(of_each)
    ]


def test_a_core_at_half_its_speed_is_slow_and_named():
    given = rounds(*[(1e-4, 1e-4)] * 12, *[(1e-4, 2e-4)] * 8)
    best = core_speeds.best(given)
    assert core_speeds.slow_cores(given[0], best) == {}
    assert core_speeds.slow_cores(given[-1], best) == {1: pytest.approx(2.0)}


def test_a_core_that_is_always_slower_disturbs_nothing_and_unbalances_the_devices():
    given = rounds(*[(1e-4, 2e-4)] * 20)
    best = core_speeds.best(given)
    assert not any(core_speeds.slow_cores(each, best) for each in given)
    assert core_speeds.balance(given) == pytest.approx(0.75)
    assert core_speeds.slowest(given) == ("CPU 1", pytest.approx(2.0))


def test_readings_that_differ_by_one_percent_are_no_disturbance():
    given = rounds(*[(1e-4 * (1 + 0.01 * (i % 3)), 1e-4 * (1 + 0.01 * (i % 2))) for i in range(30)])
    best = core_speeds.best(given)
    assert not any(core_speeds.slow_cores(each, best) for each in given)
    assert core_speeds.balance(given) == 1.0


def test_too_few_readings_and_older_records_say_nothing():
    few = rounds(*[(1e-4, 1e-4)] * 3, (1e-4, 3e-4))
    assert core_speeds.best(few) == {}
    old = [dataclasses.replace(QUIET, cores=(), core_product_s=())]
    assert core_speeds.best(old) == {} and core_speeds.slow_cores(old[0], {}) == {}
    assert math.isnan(core_speeds.balance(old))


def test_rounds_with_a_slow_core_do_not_count_if_enough_are_left():
    given = rounds(*[(1e-4, 1e-4)] * 12, *[(1e-4, 2e-4)] * 8)
    left = timing.counted({"p": given}, ["p"])["p"]
    assert [each.round for each in left] == list(range(12))
    mostly = rounds(*[(1e-4, 1e-4)] * 8, *[(1e-4, 2e-4)] * 12)
    assert len(timing.counted({"p": mostly}, ["p"])["p"]) == 20  # 8 are too few for an interval
