# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The rule of acceptance: pass, fail or cannot tell, at a family-wise error rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.features.accept import probes, reference_rates, rule
from jaxbench.features.accept.rule import Interval


@pytest.mark.parametrize(
    ("lo", "hi", "band", "expected"),
    [
        (0.96, 1.01, False, rule.PASS),
        (0.80, 0.94, False, rule.FAIL),
        (0.94, 1.01, False, rule.CANNOT_TELL),
        (0.96, 1.01, True, rule.PLAUSIBLE),
        (0.80, 0.94, True, rule.FAIL),
    ],
)
def test_the_whole_interval_decides(lo: float, hi: float, band: bool, expected: str) -> None:
    assert rule.verdict(Interval(value=(lo + hi) / 2, lo=lo, hi=hi, rounds=9), 0.05, band=band) == expected


def test_few_rounds_decide_nothing_and_more_rounds_narrow_an_interval() -> None:
    random, process = np.random.default_rng(0), np.zeros(64, dtype=int)
    logs = math.log(0.9) + 0.02 * random.standard_normal((1, 64))
    few, some, many = (rule.intervals(logs[:, :n], process[:n], 0.001)[0] for n in (5, 16, 64))
    assert rule.verdict(few, 0.05) == rule.CANNOT_TELL and math.isinf(few.hi)
    assert few.hi - few.lo > some.hi - some.lo > many.hi - many.lo
    assert many.lo < 0.9 < many.hi and rule.verdict(many, 0.05) == rule.FAIL


def test_the_rounds_that_it_would_need_grow_as_the_share_nears_the_margin() -> None:
    far, near = (Interval(value=v, lo=v - 0.06, hi=v + 0.06, rounds=10) for v in (0.99, 0.96))
    assert 10 < rule.needed(far, 0.05) < rule.needed(near, 0.05)
    assert rule.needed(Interval(value=1.0, lo=0.99, hi=1.01, rounds=10), 0.05) == 0


def test_the_error_rate_is_shared_by_all_units_and_by_all_looks() -> None:
    assert sum(512 * rule.level(512, look) for look in range(1, 100_000)) == pytest.approx(rule.ALPHA, rel=1e-4)


def test_a_fleet_is_compared_with_its_median_and_two_with_each_other() -> None:
    three = rule.of_fleet(np.log([[1.0, 2.0], [1.0, 2.0], [0.8, 1.6]]))
    assert np.exp(three) == pytest.approx(np.array([[1, 1], [1, 1], [0.8, 0.8]]))
    assert np.exp(rule.of_fleet(np.log([[1.0], [0.8]]))) == pytest.approx(np.array([[1.25], [0.8]]))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ({("a", "b"), ("b", "c"), ("d", "b"), ("b", "a")}, {"b"}),
        ({("a", "b")}, {"a", "b"}),
        (set(), set()),
    ],
)
def test_the_end_that_most_links_fail_of_is_guilty(bad: set[tuple[str, str]], expected: set[str]) -> None:
    links = [(a, b) for a in "abcd" for b in "abcd" if a != b]
    links = [link for link in links if "b" not in link or link in bad or len(bad) < 2]
    assert rule.guilty(links, [link in bad for link in links]) == expected


def test_probes_are_chosen_by_name_and_by_group() -> None:
    assert probes.chosen("triad,copy") == ("triad", "copy_in", "copy_out")
    assert probes.chosen("heat") == ("gpt", "heat")
    assert "input" not in probes.chosen("") and "doctor" in probes.chosen("")
    with pytest.raises(UserError, match="--probes=traid names 'traid': did you mean 'triad'"):
        probes.chosen("traid")


@pytest.mark.parametrize("text", ["card", "card:", "fleet:x", "flete"])
def test_a_reference_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="use card:FILE, forecast or fleet"):
        reference_rates.asked(text)


def test_the_forecast_of_a_known_accelerator_is_a_band_below_its_peak() -> None:
    known = reference_rates.forecast("product_bf16", "NVIDIA H100 80GB HBM3", 8)
    assert known is not None and known.band and 300e12 < known.rate < 745e12
    series = reference_rates.forecast("allreduce_256", "NVIDIA H200", 8)
    assert series is not None and series.rate == pytest.approx(0.8 * 436.15e9)
    assert reference_rates.forecast("product_bf16", "cpu", 2) is None
