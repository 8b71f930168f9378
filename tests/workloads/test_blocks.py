# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Recomputation changes the stored values and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxbench.errors import UserError
from jaxbench.workloads import from_nnx
from jaxbench.workloads.models import blocks

DEPTH, WIDTH, BATCH = 9, 16, 1024
# Otherwise XLA's CPU compiler drops the barriers, and merges recomputed values with the first computation.
KEEP_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
HERE = ("none", "sqrt", "block", "dots_saveable")  # a CPU has no second memory for offloading


class Block(nnx.Module):
    """x + t(W t(x)) with t(x) = tanh(tanh(x)), and a count of the calls, as a stand-in for batch statistics."""

    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls.set_value(self.calls[...] + 1)
        return x + jnp.tanh(jnp.tanh(self.linear(jnp.tanh(jnp.tanh(x)))))


class Row(nnx.Module):
    def __init__(self, remat: str, depth: int, rngs: nnx.Rngs):
        self.blocks = nnx.List(Block(rngs) for _ in range(depth))
        self.remat = remat

    def __call__(self, x):
        return blocks.run(self.blocks, x, self.remat)


def gradient(remat: str, depth: int = DEPTH):
    """(jitted gradient and state after one call, its arguments)."""
    model = from_nnx(lambda rngs: Row(remat, depth, rngs))

    def loss(params, model_state, x):
        y, model_state = model.apply(params, model_state, x)
        return jnp.mean(y**2), model_state

    arguments = *model.init(jax.random.PRNGKey(0)), jax.random.normal(jax.random.PRNGKey(1), (BATCH, WIDTH))
    return jax.jit(jax.grad(loss, has_aux=True)), arguments


@pytest.fixture(scope="module")
def compiled():
    made = {}
    for remat in HERE:
        function, arguments = gradient(remat)
        made[remat] = function.lower(*arguments).compile(KEEP_BARRIERS), arguments
    return made


@pytest.mark.parametrize("remat", HERE[1:])
def test_gradients_and_state_are_the_same(compiled, remat):
    def called(name):
        function, arguments = compiled[name]
        return function(*arguments)

    (grads, state), (expected, expected_state) = called(remat), called("none")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), grads, expected)
    jax.tree.map(np.testing.assert_array_equal, state, expected_state)
    assert all(leaf == 1 for leaf in jax.tree.leaves(state))  # recomputation does not count twice


def test_memory_falls(compiled):
    held = {name: step.memory_analysis().temp_size_in_bytes for name, (step, _) in compiled.items()}
    assert held["sqrt"] < held["none"] / 2
    assert held["block"] < held["none"] / 1.5
    assert held["dots_saveable"] < held["none"]


def test_recomputed_values_are_really_computed_again(compiled):
    flops = {name: step.cost_analysis()["flops"] for name, (step, _) in compiled.items()}
    product = 2.0 * BATCH * WIDTH**2
    again = {name: (found - flops["none"]) / (DEPTH * product) for name, found in flops.items()}
    assert again["block"] == pytest.approx(1, abs=0.2)  # a second forward pass
    assert again["dots_saveable"] == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (4, 2), (16, 4), (17, 5)])
def test_groups_are_of_about_the_root_of_their_count(count, size):
    assert blocks.group_size(count, "sqrt") == size
    assert blocks.group_size(count, "block") == 1


def test_a_last_group_may_be_smaller():
    function, arguments = gradient("sqrt", depth=3)
    expected, _ = gradient("none", depth=3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7), function(*arguments), expected(*arguments)
    )


def test_an_unknown_word_names_a_near_one():
    function, arguments = gradient("blok")
    with pytest.raises(UserError, match="did you mean 'block'"):
        function.lower(*arguments)
