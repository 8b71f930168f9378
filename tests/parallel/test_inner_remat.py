# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Values that a model recomputes are not stored, even if the strategy stores all but gathered parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from workload_cases import experiment_workload

from jaxbench import parallel
from jaxbench.measure.passport import compile_step
from jaxbench.parallel import inner_remat
from jaxbench.parallel.program import keep_barriers, without

WIDTH, DEPTH = 32, 4


def layers(policy):
    """(parameters, x, number) -> layers in sequence, each recomputed under `policy`. number: an integer."""

    def layer(w, x, number):
        return x + jnp.tanh(jnp.tanh(x @ w) * number)

    def run(params, x, number):
        for w in params:
            x = jax.checkpoint(layer, policy=policy)(w, x, number)
        return jnp.sum(x**2)

    return run


# arrays: of the size of x that the gradient has at once for each layer: its input and a temporary, and its product.
@pytest.mark.parametrize(("policy", "arrays"), [(None, 2), (jax.checkpoint_policies.dots_saveable, 3)])
def test_the_inner_policy_decides_and_the_gradient_stays(policy, arrays):
    params = list(jax.random.normal(jax.random.PRNGKey(0), (DEPTH, WIDTH, WIDTH)) / WIDTH)
    x, outer, row = jnp.ones((512, WIDTH)), jax.checkpoint_policies.everything_saveable, layers(policy)
    barriers = {"xla_disable_hlo_passes": "cse_barrier_expander"}

    def compiled(function):
        gradient = jax.jit(jax.grad(jax.checkpoint(function, policy=outer), argnums=(0, 1)))
        return gradient.lower(params, x, 2).compile(barriers)

    ignored, kept = compiled(row), compiled(inner_remat.kept(row))
    stored, all_of_it = (one.memory_analysis().temp_size_in_bytes / x.nbytes for one in (kept, ignored))
    assert stored < arrays * DEPTH - 1.9  # 6 and 10 with every jax; newer ones ignore less
    assert stored < all_of_it - 1.9
    for left, right in zip(jax.tree.leaves(ignored(params, x, 2)), jax.tree.leaves(kept(params, x, 2)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5)


def test_fsdp_stores_less_of_blocks_that_are_recomputed():
    def temp_bytes(remat: str) -> int:
        changes = {"model.layers": 4, "model.width": 32, "model.context": 32, "lever.remat": remat}
        workload = experiment_workload("gpt", **changes)
        program = parallel.load("fsdp").build(workload, jax.devices()[:2], sizes={"fsdp": 2})
        return compile_step(workload, program, 16, options=without(keep_barriers(program.mesh))).passport.temp_bytes

    assert temp_bytes("block") < 0.5 * temp_bytes("none")
