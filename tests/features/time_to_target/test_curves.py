# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The knee and the noise scale of problems with known values, and trainings that never reach a target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from jaxbench.features.time_to_target import analysis as targets
from jaxbench.features.training.trainings import GRID, Trained
from jaxbench.statistics import bootstrap

DIMENSIONS, TRACE = 200, 50.0  # of a quadratic; tr(Sigma) of one example's gradient
FROM, TO = 1.0, 0.05  # the squared distance from the optimum, at the start and at the target
# Steps are ln(FROM / TO) + TRACE (1/TO - 1/FROM) / batch, in units of 1 / (2 rate - rate^2): see `steps_to`.
KNEE = TRACE * (1 / TO - 1 / FROM) / math.log(FROM / TO)


def trained(batch: int, steps: float = 100, **changes: Any) -> Trained:
    known: dict[str, Any] = dict(
        model="mlp", batch=batch, devices=1, seed=0, learning_rate=0.1, rule="linear", target=0.9, steps=round(steps),
        reached=True, diverged=None, accuracy=0.95, step_s=0.001, noise=(), folder="x",
    )  # fmt: skip
    return Trained(**{**known, **changes})


def steps_to(batch: int, seed: int, rate: float = 0.1) -> int:
    """Steps of SGD on |x|^2 / 2 with noisy gradients, from |x|^2 = FROM to TO.

    Each step is `rate` times the best step (McCandlish et al. 2018, section 2.2), so on average the squared distance u
    falls by (2 rate - rate^2) u^2 / (u + TRACE / batch). Its integral is the number of steps above.
    """
    random = np.random.default_rng((seed, batch))
    x = np.full(DIMENSIONS, math.sqrt(FROM / DIMENSIONS))
    for step in range(1, 100_000):
        noise = random.normal(size=DIMENSIONS) * math.sqrt(TRACE / DIMENSIONS / batch)
        u = float(x @ x)
        x = x - rate * u / (u + TRACE / batch) * (x + noise)
        if x @ x <= TO:
            return step
    raise AssertionError("it never arrived")


def test_the_knee_of_a_quadratic_is_where_its_noise_scale_says():
    made = [
        trained(batch, steps_to(batch, seed), seed=seed) for batch in (20, 80, 320, 1280, 5120) for seed in (0, 1, 2)
    ]
    (curve,) = targets.curves(made)
    assert curve.knee.value == pytest.approx(KNEE, rel=0.15) and curve.knee.has_interval
    assert curve.least.value == pytest.approx(math.log(FROM / TO) / (2 * 0.1 - 0.1**2), rel=0.15)


def test_the_fit_is_exact_where_the_law_is():
    batches = [8, 32, 128, 512]
    assert targets.fit_knee(batches, [7 * (1 + 90 / b) for b in batches]) == pytest.approx((7, 90), rel=1e-3)


@pytest.mark.parametrize(
    ("steps", "straight", "flat"), [(lambda b: 4096 / b, True, False), (lambda b: 50, False, True)]
)
def test_no_knee_where_the_batches_show_none(steps, straight, flat):
    (curve,) = targets.curves([trained(batch, steps(batch)) for batch in (8, 32, 128, 512)])
    assert not curve.knee.known and (curve.straight, curve.flat) == (straight, flat)


def test_a_training_that_does_not_arrive_is_a_lower_limit_and_in_no_fit():
    made = [trained(b, 10 * (1 + 64 / b), seed=seed) for b in (8, 32, 128) for seed in (0, 1)]
    lost = trained(512, 400, seed=1, reached=False)
    (curve,) = targets.curves([*made, trained(512, 100, seed=0), lost])
    place = curve.on(1)[-1]
    assert place.censored == 1 and place.steps.value == pytest.approx(200) and not place.steps.has_interval
    assert curve.knee.value == pytest.approx(64, rel=0.02)
    assert curve.fastest(1).batch == 128  # of the batches that all seeds completed
    assert not targets.curves([lost])[0].knee.known


def test_trainings_that_only_chose_a_rate_are_in_no_mean():
    (curve,) = targets.curves([trained(8, rule="tuned"), trained(8, 9999, rule=GRID)])
    assert curve.rule == "tuned" and curve.on(1)[0].steps.value == pytest.approx(100)


def test_the_noise_scale_divides_averages_over_steps():
    """The first measurement has a weight of 10 steps, the second of 30: (10 x 4 + 30 x 8) / (10 x -1 + 30 x 1)."""
    one = trained(8, noise=((10, -1.0, 4.0), (40, 1.0, 8.0)))
    assert one.noise_scale == pytest.approx(280 / 20)
    assert trained(8, noise=((10, -1.0, 4.0),)).noise_scale is None


def test_the_interval_over_seeds_is_students():
    found = bootstrap.over_seeds([1.0, math.e, math.e**2])
    assert found.value == pytest.approx(math.e)
    assert math.log(found.hi) - 1 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert not bootstrap.over_seeds([3.0]).has_interval and not bootstrap.over_seeds([None]).known
