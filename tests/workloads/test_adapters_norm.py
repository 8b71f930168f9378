# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The libraries' own batch normalisation uses the whole global batch, for any placement on devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapter_models import EXAMPLE, NORMED, workload
from flax import linen as nn
from flax import nnx
from thin import thin
from workload_cases import KEY, one_device

from jaxbench import parallel
from jaxbench.measure import check, reference
from jaxbench.parallel.program import jit_once
from jaxbench.workloads import from_linen, from_nnx
from jaxbench.workloads.levers import accumulate

BATCH = 16


class Block(nn.Module):
    """A layer created in `setup`, inside a block that is recomputed."""

    def setup(self):
        self.dense, self.norm = nn.Dense(6), nn.BatchNorm(momentum=0.9)

    def __call__(self, x, train):
        return nn.relu(self.norm(self.dense(x), use_running_average=not train))


class Blocks(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for _ in range(2):
            x = nn.remat(Block, static_argnums=2)()(x, train)
        return nn.Dense(4)(x)


class Repeated(nnx.Module):
    """Three layers in one loop."""

    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(in_axes=0, out_axes=0)
        def made(rngs):
            return nnx.Sequential(nnx.Linear(6, 6, rngs=rngs), nnx.BatchNorm(6, momentum=0.9, rngs=rngs))

        self.layers, self.logits = made(rngs), nnx.Linear(6, 4, rngs=rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def forward(x, layer):
            return nnx.relu(layer(x))

        return self.logits(forward(x, self.layers))


MODELS = {**NORMED, "remat": lambda: from_linen(Blocks(), EXAMPLE), "scan": lambda: from_nnx(Repeated)}


@pytest.fixture(scope="module", params=thin([*MODELS], 2))
def case(request):
    mine = workload(MODELS[request.param]())
    batch = mine.synthetic(KEY, BATCH)
    batch["x"] = batch["x"] + jnp.linspace(-3, 3, BATCH)[:, None]  # devices have different examples
    state = reference.initial_state(mine, KEY, device=jax.devices()[0])
    _, (moved, _) = jit_once(mine.loss)(state.params, state.model_state, batch, KEY)
    return mine, batch, one_device(mine, batch), moved


PLACES = [("jit_auto", 8), ("fsdp", 2), ("pmap", 2), ("shard_map", 8), ("zero2", 2)]


@pytest.mark.parametrize(("strategy", "devices"), thin(PLACES, 1))
def test_every_strategy_gives_one_devices_parameters_and_statistics(case, strategy, devices):
    mine, batch, expected, moved = case
    program = parallel.build(strategy, mine, jax.devices()[:devices])
    verdict = check.judge(check.train(program, program.step, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    with jax.set_mesh(program.mesh):
        after, _ = program.step(program.init(KEY), program.put(batch))
        found = program.export(after).model_state
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, moved)


@pytest.mark.full
@pytest.mark.parametrize("style", NORMED)
@pytest.mark.parametrize("strategy", ["jit_auto", "shard_map"])
def test_micro_batches_are_normalised_each_over_all_devices(style, strategy):
    mine = accumulate.apply(workload(NORMED[style]()), 2)
    batch = mine.synthetic(KEY, BATCH)
    program = parallel.build(strategy, mine, jax.devices()[:2])
    verdict = check.judge(check.train(program, program.step, KEY, batch), one_device(mine, batch), mine)
    assert verdict.ok, verdict.reason


def test_the_model_that_was_given_is_left_as_it_was():
    module = nn.BatchNorm(use_running_average=False)
    mine = workload(from_linen(module, jax.ShapeDtypeStruct((1, 6), jnp.float32)))
    program = parallel.build("shard_map", mine, jax.devices()[:2])
    with jax.set_mesh(program.mesh):
        program.step(program.init(KEY), program.put({"x": np.ones((4, 6), "f"), "y": np.zeros(4, "i")}))
    assert module.axis_name is None
