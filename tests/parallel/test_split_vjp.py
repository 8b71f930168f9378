# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Separate forward and backward passes: the same gradients, and no stored values that follow from the parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.parallel.split_vjp import SplitVjp
from jaxbench.workloads.models import blocks

KEYS = jax.random.split(jax.random.PRNGKey(0), 4)
PARAMS = {"up": jax.random.normal(KEYS[0], (8, 2, 16)), "down": jax.random.normal(KEYS[1], (32, 8))}
X, DY = jax.random.normal(KEYS[2], (4, 8)), jax.random.normal(KEYS[3], (4, 8))
SHIFT = jnp.arange(8)


def block(params, x, shift=0):
    """A kernel that is reshaped before it multiplies, one that is not, and whole numbers that have no gradient."""
    return x + jnp.tanh((x + shift) @ params["up"].reshape(8, 32)) @ params["down"]


def test_the_gradients_of_the_whole_from_what_was_kept_as_arrays():
    passes = SplitVjp(block, PARAMS, X, SHIFT)
    y, kept = jax.jit(passes.forward)(PARAMS, X, SHIFT)
    actual = jax.jit(passes.backward)(PARAMS, kept, DY, SHIFT)
    expected_y, pulled = jax.vjp(lambda params, x: block(params, x, SHIFT), PARAMS, X)
    np.testing.assert_allclose(y, expected_y, rtol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), actual, pulled(DY))


def test_values_that_follow_from_the_parameters_are_not_kept():
    shapes = [aval.shape for aval in SplitVjp(block, PARAMS, X, SHIFT).kept]
    assert (4, 32) in shapes  # the output of tanh
    assert not {(8, 2, 16), (8, 32), (32, 8), (32, 4)} & set(shapes)
    _, kept = SplitVjp(block, PARAMS, X, SHIFT).forward(PARAMS, X, SHIFT)
    assert [x.shape for x in kept] == shapes


def test_a_recomputed_block_keeps_its_input_alone():
    again = SplitVjp(lambda params, x: blocks.apply(block, [params, params], x, "block"), PARAMS, X)
    assert [aval.shape for aval in again.kept] == [X.shape, X.shape]
    _, kept = again.forward(PARAMS, X)
    expected = jax.vjp(lambda params, x: block(params, block(params, x)), PARAMS, X)[1](DY)
    actual = again.backward(PARAMS, kept, DY)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3), actual, expected)
