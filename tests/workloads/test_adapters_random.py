# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Random draws of a model come from the given key, in training, and are not state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapter_models import DROPOUT, EXAMPLE, RATE, workload
from flax import linen as nn
from flax import nnx
from thin import thin
from workload_cases import KEY

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check, reference
from jaxbench.workloads import from_linen, from_nnx

OTHER = jax.random.PRNGKey(1)
X = jnp.ones((64, 6))


@pytest.mark.parametrize("style", DROPOUT)
def test_training_draws_by_its_key_and_inference_does_not_draw(style):
    model = DROPOUT[style]()
    params, model_state = model.init(KEY)
    assert model_state == {}
    y, after = model.apply(params, {}, X, KEY)
    assert after == {}
    np.testing.assert_array_equal(model.apply(params, {}, X, KEY)[0], y)
    assert not np.allclose(model.apply(params, {}, X, OTHER)[0], y)
    assert len(np.unique(y, axis=0)) > 32  # each example has its own mask
    inferred = model.predict(params, {}, X)
    np.testing.assert_allclose(inferred, jnp.broadcast_to(inferred[:1], inferred.shape), rtol=1e-6)


@pytest.mark.parametrize("style", DROPOUT)
def test_a_loss_hands_its_key_on(style):
    mine = workload(DROPOUT[style]())
    params, batch = mine.init(KEY)[0], mine.synthetic(KEY, 8)
    losses = [mine.loss(params, {}, batch, key)[0] for key in (KEY, KEY, OTHER)]
    assert losses[0] == losses[1] != losses[2]
    assert mine.evaluate(params, {}, batch)["loss"] not in losses


@pytest.mark.parametrize("style", ["nnx", "linen", "functions"])
def test_a_model_that_draws_says_that_it_needs_a_key(style):
    model = DROPOUT[style]()
    with pytest.raises(UserError, match=r"the loss's key, model.apply\(params, model_state, x, key\)"):
        model.apply(model.init(KEY)[0], {}, X)
    assert model.predict(model.init(KEY)[0], {}, X).shape == (64, 4)


# Linen's dropout does not specify the sharding of its mask, which explicit sharding requires.
TAKES = [
    (way, style) for way in parallel.of_any_model() for style in DROPOUT if (way, style) != ("jit_explicit", "linen")
]


@pytest.mark.parametrize(("strategy", "style"), thin(TAKES, TAKES[::16]))
def test_every_strategy_trains_what_draws(strategy, style):
    mine = workload(DROPOUT[style]())
    program = parallel.build(strategy, mine, jax.devices()[:2])
    batch = mine.synthetic(KEY, 8)
    one, other = (check.train(program, program.step, key, batch).params for key in (KEY, OTHER))
    assert reference.relative_l2(one, other) > 1e-3  # not so if anything is not finite


def test_devices_draw_by_keys_of_their_own():
    """The same example twice on each of two devices: four masks."""
    seen = []

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layer, self.dropout = nnx.Linear(6, 4, rngs=rngs), nnx.Dropout(RATE, rngs=rngs)

        def __call__(self, x):
            mask = self.dropout(jnp.ones((len(x), 64)))
            jax.debug.callback(lambda mask: seen.extend(map(bytes, np.asarray(mask))), mask)
            return self.layer(x)

    mine = workload(from_nnx(Net))
    program = parallel.build("shard_map", mine, jax.devices()[:2])
    batch = {"x": np.ones((4, 6), np.float32), "y": np.zeros(4, np.int32)}
    with jax.set_mesh(program.mesh):
        jax.block_until_ready(program.step(program.init(KEY), program.put(batch)))
    jax.effects_barrier()
    assert len(seen) == len(set(seen)) == 4


class LinenStreams(nn.Module):
    """Returns the numbers that it draws."""

    @nn.compact
    def __call__(self, x):
        kinds = [nn.Dropout(0.5, deterministic=False)(jnp.ones(32))]
        kinds += [jax.random.normal(self.make_rng(name), (32,)) for name in ("noise", "mixup")]
        return jnp.stack(kinds)


class NnxStreams(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = nnx.Dropout(0.5, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        noise = [jax.random.normal(draw(), (32,)) for draw in (self.rngs.noise, self.rngs.mixup)]
        return jnp.stack([self.first(jnp.ones(32)), self.second(jnp.ones(32)), *noise])


class NnxGiven(nnx.Module):
    def __call__(self, x, rngs):
        return jax.random.normal(rngs.noise(), (1, 32))


def streams():
    return {
        "linen": from_linen(LinenStreams(), EXAMPLE),
        "nnx": from_nnx(lambda rngs: NnxStreams(nnx.Rngs(noise=0, mixup=1, dropout=2))),
        "given": from_nnx(lambda rngs: NnxGiven()),
    }


@pytest.mark.parametrize("style", ["linen", "nnx", "given"])
def test_each_stream_has_a_key_of_its_own(style):
    model = streams()[style]
    params, model_state = model.init(KEY)
    assert params == model_state == {}
    y, _ = model.apply({}, {}, X, KEY)
    other, _ = model.apply({}, {}, X, OTHER)
    assert len(np.unique(y, axis=0)) == len(y) and (y != other).any(axis=1).all()
    np.testing.assert_array_equal(model.apply({}, {}, X, KEY)[0], y)
    np.testing.assert_array_equal(model.predict({}, {}, X), model.predict({}, {}, X))


def test_a_linen_module_that_looks_for_its_stream_finds_it():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dropout(RATE, deterministic=not self.has_rng("dropout"))(x)

    y, _ = from_linen(Net(), EXAMPLE).apply({}, {}, X, KEY)
    assert (y == 0).any()


def test_layers_that_are_mapped_over_draw_apart():
    class Row(nnx.Module):
        def __init__(self, rngs):
            @nnx.split_rngs(splits=3)
            @nnx.vmap(in_axes=0, out_axes=0)
            def made(rngs):
                return nnx.Dropout(0.5, rngs=rngs)

            self.layers = made(rngs)

        def __call__(self, x):
            return nnx.vmap(lambda layer, x: layer(x), in_axes=(0, None), out_axes=0)(self.layers, jnp.ones(32))

    y, _ = from_nnx(Row).apply({}, {}, X, KEY)
    assert y.shape == (3, 32) and len(np.unique(y, axis=0)) == 3
