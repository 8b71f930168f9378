# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Weighted losses: weights of one change nothing, weights of zero exclude examples."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbench.core.weighted import WeightedMean
from jaxbench.errors import UserError
from jaxbench.workloads import classification, evaluation, from_functions

MODEL = from_functions(lambda key: jax.random.normal(key, (3, 4)), lambda params, x: x @ params)
PARAMS, KEY = jax.random.normal(jax.random.PRNGKey(1), (3, 4)), jax.random.PRNGKey(0)


def batch(weights: list[float]) -> dict[str, jax.Array]:
    x = jax.random.normal(jax.random.PRNGKey(2), (5, 3))
    return {"image": x, "label": jnp.array([0, 1, 2, 3, 0]), "weight": jnp.array(weights)}


def weighed(weights: list[float]) -> list[WeightedMean]:
    """Loss and accuracy from the loss and from the evaluation, which must be equal."""
    loss, (_, metrics) = classification(MODEL, weights="weight")(PARAMS, {}, batch(weights), KEY)
    evaluated = evaluation(MODEL, weights="weight")(PARAMS, {}, batch(weights))
    np.testing.assert_allclose(evaluated["loss"].total, loss.total, rtol=1e-6)
    np.testing.assert_allclose(evaluated["accuracy"].total, metrics["accuracy"].total)
    return [loss, metrics["accuracy"]]


def test_weights_of_one_are_the_plain_loss() -> None:
    loss, accuracy = weighed([1.0] * 5)
    plain, (_, metrics) = classification(MODEL)(PARAMS, {}, batch([1.0] * 5), KEY)
    assert float(loss.mean) == pytest.approx(float(plain), rel=1e-6) and float(loss.weight) == 5
    assert float(accuracy.mean) == pytest.approx(float(metrics["accuracy"]))


def test_weights_of_nought_leave_out_and_others_count_as_often() -> None:
    loss, accuracy = weighed([1.0, 0.0, 3.0, 0.0, 0.0])
    twice = {name: x[jnp.array([0, 2, 2, 2])] for name, x in batch([1.0] * 5).items()}
    plain, (_, metrics) = classification(MODEL)(PARAMS, {}, twice, KEY)
    assert float(loss.mean) == pytest.approx(float(plain), rel=1e-6)
    assert float(accuracy.mean) == pytest.approx(float(metrics["accuracy"]))


def test_weights_of_another_shape_are_one_sentence() -> None:
    with pytest.raises(UserError, match=r"weights .* \(5, 1\) .* \(5,\)"):
        classification(MODEL, weights="weight")(PARAMS, {}, batch([[1.0]] * 5), KEY)  # type: ignore[list-item]
