# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The bootstrap against plain definitions, and against the truth it should cover."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbench.analysis.intervals import Draws, Estimate, estimate, weighted_median, weighted_ratio


@given(rounds=st.integers(1, 12), samples=st.integers(1, 300), seed=st.integers(0, 2**16))
@settings(max_examples=40, deadline=None)
def test_weighted_median_is_the_median_of_repeated_samples(rounds: int, samples: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(random.normal(size=max(1, samples // 2)), size=samples)  # with ties
    owners = random.integers(0, rounds, samples)
    weights = Draws(range(rounds), draws=20, seed=seed).weights
    for weight, found in zip(weights, weighted_median(values, owners, weights), strict=True):
        repeated = np.repeat(values, weight[owners].astype(int))
        if len(repeated):
            assert found == np.median(repeated)
        else:
            assert math.isnan(found)


def test_weighted_ratio_is_the_ratio_of_totals() -> None:
    random = np.random.default_rng(0)
    top, bottom = random.uniform(1, 2, 7), random.uniform(1e-3, 2e-3, 7)
    weights = Draws(range(7), draws=50).weights
    assert weighted_ratio(top, bottom, weights) == pytest.approx((weights @ top) / (weights @ bottom), rel=1e-5)
    assert np.isnan(weighted_ratio(top, bottom, np.zeros((1, 7)))).all()


def test_draws_are_seeded_and_whole() -> None:
    one, two = Draws([5, 3, 9, 3]), Draws([9, 5, 3])
    assert one.units == [3, 5, 9]
    assert np.array_equal(one.weights, two.weights)
    assert (one.weights.sum(axis=1) == 3).all()
    assert np.array_equal(one.of([9]), one.weights[:, 2:])


def test_a_round_of_another_session_is_another_unit() -> None:
    draws = Draws([(0, 3), (1, 3), (0, 4)])
    assert draws.weights.shape[1] == 3
    assert not np.array_equal(draws.of([(0, 3)]), draws.of([(1, 3)]))


def test_no_interval_below_three_rounds() -> None:
    draws = np.linspace(0, 2, 100)
    assert not estimate(1.0, draws, rounds=2).has_interval
    assert estimate(1.0, draws, rounds=3).has_interval
    assert not estimate(1.0, np.full(10, np.nan), rounds=9).has_interval
    assert not estimate(math.nan, draws, rounds=9).has_interval
    assert not Estimate().known


def test_the_interval_holds_its_value_and_is_wider_for_few_rounds() -> None:
    draws = np.random.default_rng(0).normal(size=2000)
    few, many = estimate(0.0, draws, rounds=5), estimate(0.0, draws, rounds=500)
    assert few.lo < many.lo < 0 < many.hi < few.hi
    assert (many.lo, many.hi) == pytest.approx((-1.96, 1.96), abs=0.15)
    assert estimate(9.0, draws, rounds=5).hi == 9.0


def test_coverage_of_a_median_and_of_a_paired_ratio_under_drift() -> None:
    """Ten rounds whose drift is twice the noise of a block: 95 % intervals must cover the truth about 95 % of the time.

    Resampling blocks as if they were independent covers the median 86 times in 100.
    """
    random, covered = np.random.default_rng(1), np.zeros(2)
    owners = np.repeat(np.arange(10), 2)
    for seed in range(200):
        drift = 1 + 0.02 * random.standard_normal((10, 1))
        a, b = ((drift * (1 + 0.01 * random.standard_normal((10, 2)))).ravel() for _ in range(2))
        weights = Draws(range(10), draws=400, seed=seed).weights
        medians = [weighted_median(x, owners, weights) for x in (a, b)]
        step = estimate(float(np.median(a)), medians[0], rounds=10)
        ratio = estimate(float(np.median(a) / np.median(b)), medians[0] / medians[1], rounds=10)
        covered += [step.lo <= 1 <= step.hi, ratio.lo <= 1 <= ratio.hi]
        assert ratio.hi - ratio.lo < 0.06
    assert (covered / 200 >= 0.92).all()
