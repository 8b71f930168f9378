# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""gpt on documents of uneven lengths: every strategy agrees with one device's plain sum over real tokens."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from ml_collections import ConfigDict
from strategy_cases import BATCH, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import parallel
from jaxbench.core.weighted import WeightedMean
from jaxbench.errors import UserError
from jaxbench.measure import reference as references
from jaxbench.parallel.strategies import pipeline
from jaxbench.workloads import TrainWorkload, from_nnx
from jaxbench.workloads.losses import next_token
from jaxbench.workloads.models import gpt

CHANGES = {"model.context": 64, "optimizer.name": "sgd", "optimizer.learning_rate": 0.5}
SHAPE = {"preset": "tiny", "layers": 2, "width": 16, "heads": 2, "context": 64}


@pytest.fixture(scope="module", autouse=True)
def few_bytes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxbench.workloads.data.text.LANGUAGE_BYTES", 400_000)
        yield


@pytest.fixture(scope="module")
def padded() -> TrainWorkload:
    return experiment_workload("gpt", **{"data.pad": "padded"}, **CHANGES)


def plain(workload: TrainWorkload) -> TrainWorkload:
    """The same model with an independent implementation of its loss."""
    model = from_nnx(partial(gpt.GPT, ConfigDict(SHAPE)))

    def loss(params, model_state, batch, key):
        logits, _ = model.apply(params, model_state, batch["tokens"][:, :-1], key)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"][:, 1:])
        return jnp.sum(each * batch["real"]) / jnp.sum(batch["real"]), (model_state, {})

    return dataclasses.replace(workload, loss=loss)


@pytest.fixture(scope="module")
def reference(padded: TrainWorkload) -> references.Reference:
    return one_device(plain(padded), padded.synthetic(KEY, BATCH))


def judged(workload: TrainWorkload, program: parallel.Program, reference: references.Reference) -> list[str]:
    return [found.reason for found in verdicts(workload, program, reference)[:2] if not found.ok]


EVERY = ["context", "shard_map", "tensor", "jit_auto", "jit_explicit", "pmap", "zero2", "fsdp"]


@pytest.mark.parametrize("strategy", thin(EVERY, 1))
def test_every_strategy_and_what_it_sends(
    strategy: str, padded: TrainWorkload, reference: references.Reference
) -> None:
    program = parallel.build(strategy, padded, jax.devices()[:2])
    assert not judged(padded, program, reference)


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["jit_auto", "pmap", "fsdp", "pipeline"])
def test_micro_batches(strategy: str, padded: TrainWorkload, reference: references.Reference) -> None:
    workload = dataclasses.replace(padded, micro_batches=2)
    program = parallel.build(strategy, workload, jax.devices()[:2])
    assert not judged(workload, program, reference)


@pytest.mark.full
def test_a_pipeline_with_data_and_tensor(padded: TrainWorkload, reference: references.Reference) -> None:
    workload = dataclasses.replace(padded, micro_batches=2)
    program = pipeline.build(workload, jax.devices()[:8], sizes={"data": 2, "stage": 2, "tensor": 2})
    assert not judged(workload, program, reference)


@pytest.mark.full
def test_the_plain_sum_over_sum_is_wrong_in_parts(padded: TrainWorkload, reference: references.Reference) -> None:
    mine = plain(padded)
    for workload, strategy in ((mine, "pmap"), (dataclasses.replace(mine, micro_batches=2), "jit_auto")):
        (reason,) = judged(workload, parallel.build(strategy, workload, jax.devices()[:2]), reference)
        assert "NOT within" in reason


@pytest.mark.full
def test_weights_of_one_are_the_plain_loss() -> None:
    model = from_nnx(partial(gpt.GPT, ConfigDict(SHAPE)))
    params, _ = model.init(KEY)
    tokens = jax.random.randint(KEY, (3, 9), 0, 256)
    found, (_, metrics) = next_token(model, weights="real")(
        params, {}, {"tokens": tokens, "real": jnp.ones((3, 8), jnp.int32)}, KEY
    )
    expected, (_, others) = next_token(model)(params, {}, {"tokens": tokens}, KEY)
    assert isinstance(found, WeightedMean) and float(found.weight) == 24
    assert float(found.mean) == pytest.approx(float(expected), rel=1e-6)
    assert float(metrics["accuracy"].mean) == pytest.approx(float(others["accuracy"]))
    assert float(metrics["real_share"]) == 1 and "real_share" not in others


def test_a_loss_that_cannot_be_weighted_is_one_sentence() -> None:
    model = from_nnx(partial(gpt.GPT, ConfigDict(SHAPE)))
    params, _ = model.init(KEY)
    mask = {"tokens": jnp.zeros((3, 9), jnp.int32), "mask": jnp.ones((3, 9))}
    with pytest.raises(UserError, match=r"\(3, 9\).*\(3, 8\).*mask\[:, 1:\]"):
        next_token(model, weights="mask")(params, {}, mask, KEY)
    with pytest.raises(UserError, match="experts=0"):
        experiment_workload("gpt", **{"data.pad": "packed", "model.experts": 2})
    with pytest.raises(UserError, match="data.pad=paded is unknown.*padded"):
        experiment_workload("gpt", **{"data.pad": "paded"})
