# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mean over real tokens: every strategy divides by the weight of the whole global batch."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategy_cases import BATCH
from thin import KINDS, thin
from workload_cases import KEY

from jaxbench import parallel
from jaxbench.core.workload import Partition, Stages
from jaxbench.measure import check, reference
from jaxbench.parallel import data_parallel
from jaxbench.parallel.step import gradients
from jaxbench.parallel.strategies import pipeline
from jaxbench.workloads import Field, TrainWorkload, WeightedMean

T, D, LAYERS = 6, 8, 2


def padded(kind: str = "weighted", *, dropout: float = 0.0) -> TrainWorkload:
    """Regression at each position of sequences of uneven lengths, by LAYERS residual blocks. kind: of the loss."""

    def init(key):
        keys = jax.random.split(key, LAYERS + 1)
        rows = {str(i): {"w": 0.3 * jax.random.normal(keys[i], (D, D)), "b": jnp.zeros(D)} for i in range(LAYERS)}
        return {"blocks": rows, "out": {"w": jax.random.normal(keys[-1], (D, 1))}}, {}

    def block(params, x, batch, key):
        y = jnp.tanh(x @ params["w"] + params["b"])
        keep = jax.random.bernoulli(key, 1 - dropout, y.shape) if dropout else jnp.ones_like(y)
        return x + y * keep

    def first(params, nothing, batch, key):
        return batch["x"]

    def last(params, x, batch, key):
        error = ((x @ params["out"]["w"])[..., 0] - batch["y"]) ** 2
        real = (jnp.arange(T) < batch["length"][:, None]).astype(jnp.int32)
        total, weight = jnp.sum(error * real), jnp.sum(real)
        near = jnp.sum((error < 1.0) * real)
        if kind == "weighted":
            return WeightedMean(total, weight), {"near": WeightedMean(near.astype(jnp.float32), weight)}
        return total / weight, {"near": near / weight}

    def loss(params, model_state, batch, key):
        x = first(params, None, batch, jax.random.fold_in(key, LAYERS))
        for i in range(LAYERS):
            x = block(params["blocks"][str(i)], x, batch, jax.random.fold_in(key, i))
        value, metrics = last(params, x, batch, jax.random.fold_in(key, LAYERS + 1))
        return value, (model_state, metrics)

    return TrainWorkload(
        name="padded",
        init=init,
        loss=loss,
        optimizer=optax.sgd(0.1),
        example={"x": Field((T, D)), "y": Field((T,)), "length": Field((), jnp.int32, classes=T + 1)},
        partition=Partition(
            axes={}, collective_bounds=lambda share: {}, stages=Stages(first=first, block=block, last=last)
        ),
    )


def uneven(workload: TrainWorkload) -> dict[str, jax.Array]:
    """Long sequences first: all devices' parts have different weights."""
    batch = workload.synthetic(KEY, BATCH)
    return {**batch, "length": jnp.sort(batch["length"])[::-1]}


def moved(program: parallel.Program, workload: TrainWorkload) -> reference.TrainedState:
    return check.train(program, program.step, KEY, uneven(workload))


def whole(workload: TrainWorkload) -> reference.TrainedState:
    device = jax.devices()[0]
    state = reference.initial_state(workload, KEY, device=device)
    return reference.reference(workload, state, uneven(workload), device=device).end


@pytest.mark.parametrize("devices", thin([2, 8], 1))
@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS))
def test_every_strategy_divides_by_the_whole_weight(strategy: str, devices: int) -> None:
    workload = padded()
    found = moved(parallel.build(strategy, workload, jax.devices()[:devices]), workload)
    assert reference.relative_l2(found.params, whole(padded("plain")).params) < 1e-6


@pytest.mark.parametrize("strategy", thin(["pmap", "jit_auto", "zero2", "fsdp"], 1))
def test_micro_batches_of_other_weights(strategy: str) -> None:
    workload = dataclasses.replace(padded(), micro_batches=4)
    found = moved(parallel.build(strategy, workload, jax.devices()[:2]), workload)
    assert reference.relative_l2(found.params, whole(padded("plain")).params) < 1e-6


def test_other_reductions() -> None:
    program = data_parallel.build_reduction(padded(), jax.devices()[:2], "ring")
    assert reference.relative_l2(moved(program, padded()).params, whole(padded("plain")).params) < 1e-6


@pytest.mark.parametrize("sizes", thin([{"data": 2, "stage": 2}, {"stage": 2}], 1))
def test_a_pipeline(sizes: dict[str, int]) -> None:
    workload = dataclasses.replace(padded(), micro_batches=4)
    count = int(np.prod([*sizes.values()]))
    program = pipeline.build(workload, jax.devices()[:count], sizes=sizes)
    assert reference.relative_l2(moved(program, workload).params, whole(padded("plain")).params) < 1e-6


@pytest.mark.parametrize("strategy", thin(["shard_map", "pmap", "zero1", "fsdp"], 1))
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_a_mean_of_means_is_another_thing(strategy: str, micro_batches: int) -> None:
    workload = dataclasses.replace(padded("plain"), micro_batches=micro_batches)
    found = moved(parallel.build(strategy, workload, jax.devices()[:2]), workload)
    assert reference.relative_l2(found.params, whole(padded("plain")).params) > 1e-3


def test_metrics_are_of_the_whole_batch() -> None:
    workload = padded()
    program = parallel.build("shard_map", workload, jax.devices()[:4])
    with jax.set_mesh(program.mesh):
        state, metrics = program.step(program.init(KEY), program.put(uneven(workload)))
    state = reference.initial_state(workload, KEY, device=jax.devices()[0])
    _, _, expected = gradients(padded("plain"), state, uneven(workload))
    assert {name: float(x) for name, x in metrics.items()} == pytest.approx(
        {name: float(x) for name, x in expected.items()}, rel=1e-5
    )


def test_nothing_to_judge_moves_nothing() -> None:
    workload = padded()
    state = reference.initial_state(workload, KEY, device=jax.devices()[0])
    batch = uneven(workload)
    grads, _, metrics = gradients(workload, state, {**batch, "length": 0 * batch["length"]})
    assert float(metrics["loss"]) == 0 and not any(np.any(leaf) for leaf in jax.tree.leaves(grads))
