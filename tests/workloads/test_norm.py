# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Batch normalisation: PyTorch's definition, accurate in float32, over the examples that the config chooses."""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from thin import KINDS, thin

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.measure import check, loss_kind
from jaxbench.measure import reference as references
from jaxbench.parallel.program import gradients, jit_once
from jaxbench.runner.proof import Proof
from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, sharding_context
from jaxbench.workloads.losses import evaluation
from jaxbench.workloads.models import blocks
from jaxbench.workloads.models.norm import BatchNorm

KEY = jax.random.PRNGKey(0)
BATCH = 16
STATISTICS = ("device", "global")


def images(mean=0.0, deviation=1.0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(0).normal(mean, deviation, (BATCH, 3, 3, 2)), dtype)


def reference(x, groups=1):
    """float64, each of `groups` parts by itself: (y, mean over groups of the mean, and of the variance)."""
    parts = np.split(np.float64(x), groups)
    axes = (0, 1, 2)
    y = [(p - p.mean(axes)) / np.sqrt(p.var(axes) + 1e-5) for p in parts]
    return np.concatenate(y), np.mean([p.mean(axes) for p in parts], 0), np.mean([p.var(axes) for p in parts], 0)


@pytest.mark.parametrize(("statistics", "parts", "groups"), [("device", 1, 1), ("device", 4, 4), ("global", 4, 1)])
def test_values_and_running_statistics(statistics, parts, groups):
    norm, x = BatchNorm(2, statistics=statistics), images(3, 2)
    with sharding_context.over(parts=parts):
        y = norm(x)
    expected, mean, variance = reference(x, groups)
    np.testing.assert_allclose(y, expected, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * mean, rtol=1e-5)
    np.testing.assert_allclose(norm.variance[...], 0.9 + 0.1 * variance, rtol=1e-5)
    norm.eval()
    inferred = norm(x)
    np.testing.assert_allclose(inferred, (x - 0.1 * mean) / np.sqrt(0.9 + 0.1 * variance + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * mean, rtol=1e-5)  # inference moves nothing


def test_scale_and_bias_are_applied():
    norm = BatchNorm(2, statistics="device")
    norm.scale[...], norm.bias[...] = jnp.array([2.0, 3.0]), jnp.array([-1.0, 5.0])
    np.testing.assert_allclose(norm(images()), reference(images())[0] * [2, 3] + [-1, 5], atol=1e-5)


def test_a_small_variance_about_a_large_mean_keeps_its_digits():
    """The mean of squares minus the square of the mean, in float32, would give 0 or less here."""
    x = images(3000, 0.1)
    np.testing.assert_allclose(BatchNorm(2, statistics="device")(x), reference(x)[0], atol=5e-3)


def test_bfloat16_in_bfloat16_out_and_statistics_in_float32():
    norm, x = BatchNorm(2, statistics="device"), images(20, 1, jnp.bfloat16)
    y = norm(x)
    assert y.dtype == jnp.bfloat16 and norm.mean[...].dtype == jnp.float32
    np.testing.assert_allclose(np.float64(y), reference(x.astype(jnp.float32))[0], rtol=2**-8, atol=1e-5)
    np.testing.assert_allclose(norm.mean[...], 0.1 * np.float64(x.astype(jnp.float32)).mean((0, 1, 2)), rtol=1e-5)


def test_an_unknown_choice_names_a_near_one():
    with pytest.raises(UserError, match="no statistics 'globl': did you mean 'global'"):
        BatchNorm(2, statistics="globl")


class Net(nnx.Module):
    """Two normalised layers, as a block that can be recomputed."""

    def __init__(self, statistics, remat, rngs):
        self.blocks = nnx.List(Layer(statistics, rngs) for _ in range(2))
        self.logits, self.remat = nnx.Linear(6, 4, rngs=rngs), remat

    def __call__(self, x):
        return self.logits(jnp.mean(blocks.run(self.blocks, x, self.remat), axis=(1, 2)))


class Layer(nnx.Module):
    def __init__(self, statistics, rngs):
        self.conv = nnx.Conv(6, 6, (3, 3), rngs=rngs)
        self.norm = BatchNorm(6, statistics=statistics)

    def __call__(self, x):
        return nnx.relu(self.norm(self.conv(x))) + x


def workload(statistics, remat="none"):
    model = from_nnx(partial(Net, statistics, remat))
    return TrainWorkload(
        name="normed",
        init=model.init,
        loss=classification(model),
        optimizer=optax.sgd(0.1, momentum=0.9),
        example={"image": Field((5, 5, 6)), "label": Field((), jnp.int32, classes=4)},
        evaluate=evaluation(model),
        predict=lambda params, model_state, batch: model.predict(params, model_state, batch["image"]),
    )


def on_one_device(mine, parts):
    start = references.initial_state(mine, KEY, device=jax.devices()[0])
    return references.reference(
        mine, start, mine.synthetic(KEY, BATCH), device=jax.devices()[0], layout=references.BatchLayout(parts)
    )


@pytest.fixture(scope="module", params=STATISTICS)
def case(request):
    mine = workload(request.param)
    return mine, on_one_device(mine, 8)


@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS[1:2]))
def test_every_strategy_gives_one_devices_parameters_and_statistics(case, strategy):
    mine, expected = case
    batch = mine.synthetic(KEY, BATCH)
    program = parallel.build(strategy, mine, jax.devices())
    verdict = check.judge(check.train(program, program.step, KEY, batch), expected, mine)
    assert verdict.ok, verdict.reason
    state = references.initial_state(mine, KEY, device=jax.devices()[0])
    with sharding_context.over(parts=8):
        _, moved, _ = jit_once(partial(gradients, mine))(state, batch)
    with jax.set_mesh(program.mesh):
        after, _ = program.step(program.init(KEY), program.put(batch))
        found = program.export(after).model_state
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, moved)


@pytest.mark.full
def test_the_two_choices_are_two_functions_and_one_without_other_devices():
    ends = {(s, parts): on_one_device(workload(s), parts).end.params for s in STATISTICS for parts in (1, 8)}
    assert references.relative_l2(ends["device", 8], ends["global", 8]) > 1e-3
    assert references.relative_l2(ends["device", 1], ends["global", 1]) == 0
    assert references.relative_l2(ends["global", 8], ends["global", 1]) == 0


@pytest.mark.parametrize("remat", thin(["sqrt", "block", "dots_saveable"], 1))
def test_recomputation_changes_neither_gradients_nor_statistics(remat):
    """For several strategies in one process: a trace cached for one must not serve another."""
    plain, recomputed = workload("device"), workload("device", remat)
    state = references.initial_state(plain, KEY, device=jax.devices()[0])
    batch = plain.synthetic(KEY, BATCH)
    for parts in (1, 8):
        with sharding_context.over(parts=parts):
            expected = jit_once(partial(gradients, plain))(state, batch)
            found = jit_once(partial(gradients, recomputed))(state, batch)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)
    still = jax.tree.map(np.array_equal, found[1], state.model_state)
    assert not any(jax.tree.leaves(still))


def test_inference_uses_what_training_left():
    mine = workload("device")
    state = references.initial_state(mine, KEY, device=jax.devices()[0])
    batch = mine.synthetic(KEY, BATCH)
    _, moved, _ = jit_once(partial(gradients, mine))(state, batch)
    logits = mine.predict(state.params, moved, batch)
    one = {k: v[:1] for k, v in batch.items()}
    np.testing.assert_allclose(mine.predict(state.params, moved, one), logits[:1], rtol=1e-5, atol=1e-6)
    metrics = mine.evaluate(state.params, moved, batch)
    expected = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-6)
    assert metrics["accuracy"] == np.mean(np.argmax(logits, -1) == batch["label"])
    assert dataclasses.replace(mine, evaluate=None).predict is mine.predict


def test_parts_of_a_batch_with_separate_statistics_give_the_one_device_result():
    """So one accelerator need not hold the activations of a batch for many devices."""
    mine = dataclasses.replace(workload("device"), independent=True)
    start, batch = references.initial_state(mine, KEY, device=jax.devices()[0]), mine.synthetic(KEY, BATCH)
    seen = []

    def jit(function):
        def call(*arguments):
            seen.extend(len(one["label"]) for one in arguments if isinstance(one, dict) and "label" in one)
            return jit_once(function)(*arguments)

        return call

    whole = on_one_device(mine, 8)
    parts = references.reference(
        mine, start, batch, device=jax.devices()[0], layout=references.BatchLayout(8), apart=True, jit=jit
    )
    assert set(seen) == {BATCH // 8}
    assert references.relative_l2(parts.end.params, whole.end.params) < 1e-5


@pytest.mark.parametrize(("kind", "independent"), [("device", True), ("global", False)])
def test_only_statistics_of_their_own_may_be_found_part_by_part(kind, independent):
    mine = dataclasses.replace(workload(kind), independent=independent)
    proof = Proof(None, mine, jax.devices()[:1], KEY, own=True)
    proof.loss_kind = loss_kind.LossKind(name=loss_kind.MEAN)  # it may seem so, because detection uses four examples
    assert proof._in_parts(mine) == independent
