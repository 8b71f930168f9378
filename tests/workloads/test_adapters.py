# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model written in NNX, in Linen or as plain functions becomes the same pure pair."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx
from workload_cases import KEY, one_device

from jaxbench import parallel
from jaxbench.measure import check
from jaxbench.measure.passport import compile_step
from jaxbench.workloads import Field, TrainWorkload, classification, from_functions, from_linen, from_nnx


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(6, 4, rngs=rngs)
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, x):
        self.calls[...] += 1.0
        return self.layer(x)


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        calls = self.variable("batch_stats", "calls", lambda: jnp.zeros(()))
        if not self.is_initializing():
            calls.value += 1.0
        return nn.Dense(4)(x)


def plain():
    return from_functions(
        lambda key: {"kernel": jax.random.normal(key, (6, 4))}, lambda params, x: x @ params["kernel"]
    )


MODELS = {
    "nnx": lambda: from_nnx(NnxNet),
    "linen": lambda: from_linen(LinenNet(), jax.ShapeDtypeStruct((1, 6), jnp.float32)),
    "plain": plain,
}


def workload(model):
    return TrainWorkload(
        name="mine",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.5),
        example={"x": Field((6,)), "y": Field((), jnp.int32, classes=4)},
    )


@pytest.mark.parametrize("style", MODELS)
def test_state_is_plain_dictionaries_and_apply_is_pure(style):
    model = MODELS[style]()
    params, model_state = model.init(KEY)
    assert jax.tree.structure((params, model_state)) == jax.tree.structure(jax.eval_shape(model.init, KEY))
    assert type(params) is dict
    x = jnp.ones((3, 6))
    y, new_state = jax.jit(model.apply)(params, model_state, x)
    assert y.shape == (3, 4)
    if style != "plain":
        assert jax.tree.leaves(model_state) == [0.0]
        assert jax.tree.leaves(new_state) == [1.0]


@pytest.mark.parametrize("style", MODELS)
@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_every_style_under_every_strategy(style, strategy):
    mine = workload(MODELS[style]())
    program = parallel.build(strategy, mine, jax.devices()[:2])
    compiled = compile_step(mine, program, 8)
    batch = mine.synthetic(KEY, 8)
    expected = one_device(mine, batch)
    verdict = check.judge(check.train(program, compiled.call, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    assert compiled.passport.flops_per_step == 2 * 6 * 4 * 2 * 8  # forward and the weights' gradient, 8 examples


def test_synthetic_batches_repeat_and_respect_their_fields():
    mine = workload(plain())
    a, b = mine.synthetic(KEY, 64), mine.synthetic(KEY, 64)
    np.testing.assert_array_equal(a["x"], b["x"])
    assert set(np.unique(a["y"])) == {0, 1, 2, 3}
    assert abs(float(a["x"].mean())) < 0.2


class Dropping(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(6, 4, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.dropout(self.layer(x))


@pytest.mark.parametrize("strategy", parallel.of_any_model())
def test_random_keys_in_the_model_state_are_plain_numbers(strategy):
    model = from_nnx(Dropping)
    params, model_state = model.init(KEY)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(model_state)} == {"uint32"}
    x = jnp.ones((3, 6))
    first, moved = model.apply(params, model_state, x)
    again, _ = model.apply(params, model_state, x)
    other, _ = model.apply(params, moved, x)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    mine = workload(model)
    program = parallel.build(strategy, mine, jax.devices()[:2])
    check.train(program, compile_step(mine, program, 8).call, KEY, mine.synthetic(KEY, 8))
