# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The correctness verdict: what passes, what fails, and what proves nothing."""

import jax
import numpy as np
import pytest
from workload_cases import KEY, linear_workload

from jaxbench.measure import check

START = {"w": np.zeros(4, np.float32)}
ONE_DEVICE = {"w": np.ones(4, np.float32)}


def judge(value, start=START, **options):
    actual = check.Trained({"w": np.full(4, value, np.float32)}, ())
    return check.judge(actual, check.Reference(start, check.Trained(ONE_DEVICE, ())), linear_workload(), **options)


def test_equal_passes_and_says_by_how_much():
    verdict = judge(1.0)
    assert verdict.ok
    assert verdict.value == 0.0
    assert "within 1e-05" in verdict.reason


@pytest.mark.parametrize("value", [1.0001, 0.0, np.nan, np.inf])
def test_different_or_not_finite_fails(value):
    assert not judge(value).ok


def test_parameters_that_never_moved_prove_nothing():
    verdict = judge(1.0, start=ONE_DEVICE)
    assert not verdict.ok
    assert "nothing is proven" in verdict.reason


def test_a_batch_in_parts_has_the_same_gradient():
    workload = linear_workload()
    device = jax.devices()[0]
    state, batch = check.initial_state(workload, KEY, device=device), workload.synthetic(KEY, 24)
    whole = check.reference(workload, state, batch, device=device)
    parts = check.reference(workload, state, batch, device=device, passes=8)
    assert 0 < check.relative_l2(parts.end.params, whole.start)
    assert check.relative_l2(parts.end.params, whole.end.params) < 1e-6


def test_an_accelerator_is_allowed_its_default_precision_and_says_so():
    assert not judge(1.0003).ok
    verdict = judge(1.0003, platform="gpu")
    assert verdict.ok
    assert "TF32" in verdict.reason
    assert not judge(1.003, platform="gpu").ok
