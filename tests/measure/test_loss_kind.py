# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kind of mean that a loss is, detected by evaluating it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest
from parallel.test_weighted import padded
from thin import thin
from workload_cases import experiment_workload, linear_workload

from jaxbench.core import expected_communication
from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import loss_kind
from jaxbench.measure.loss_kind import ACROSS, HIDDEN, MEAN, PARTLY, SUM, UNTRIED, WEIGHTED, LossKind
from jaxbench.measure.proof import require_loss, require_micro_batchable
from jaxbench.parallel.strategies import jit_auto, pmap, shard_map
from jaxbench.workloads import Field, TrainWorkload, WeightedMean, gathered
from jaxbench.workloads.sharding_context import first


def regression(score, *, noise: bool = False) -> TrainWorkload:
    """score: (errors of the examples, batch) -> the loss."""

    def loss(params, model_state, batch, key):
        x = batch["x"] * jax.random.bernoulli(key, 0.5, batch["x"].shape) if noise else batch["x"]
        error = jnp.sum(x * params["w"], (1, 2)) - batch["y"]
        return score(error, batch), (model_state, {})

    init = lambda key: ({"w": jax.random.normal(key, (5, 3))}, {})  # noqa: E731
    example = {"x": Field((5, 3)), "y": Field(())}
    return TrainWorkload(name="regression", init=init, loss=loss, optimizer=optax.sgd(0.1), example=example)


def contrast(error, others, at):
    """Each against all: the softmax over examples of their negative distances."""
    scores = -((error[:, None] - others[None]) ** 2) + 0.1 * others[None]
    return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(error)), at + jnp.arange(len(error))])


LOSSES = {
    "mean": (lambda e, b: jnp.mean(e**2), MEAN, False),
    "sum": (lambda e, b: jnp.sum(e**2), SUM, False),
    "half": (lambda e, b: jnp.mean(e[: len(e) // 2] ** 2), PARTLY, False),
    "contrastive": (lambda e, b: contrast(e, e, 0), ACROSS, False),
    "gathered": (lambda e, b: contrast(e, gathered(e), first(e)), ACROSS, True),
    "weights of zeros": (lambda e, b: jnp.sum(e**2 * real(b)) / jnp.sum(real(b)), HIDDEN, False),
    "total and weight": (lambda e, b: WeightedMean(jnp.sum(e**2 * real(b)), jnp.sum(real(b))), WEIGHTED, False),
    "spread": (lambda e, b: jnp.var(e), ACROSS, False),
}


def real(batch):
    """The number of nonzero rows of an example."""
    return jnp.sum(jnp.any(batch["x"] != 0, -1), -1).astype(jnp.float32)


def kind(workload):
    return loss_kind.find(workload, device=jax.devices()[0])


@pytest.mark.parametrize("noise", thin([False, True], 1), ids=["plain", "with dropout"])
@pytest.mark.parametrize("name", [*LOSSES])
def test_the_kind_is_found(name: str, noise: bool) -> None:
    score, expected, gathers = LOSSES[name]
    found = kind(regression(score, noise=noise))
    assert (found.name, found.gathers) == (expected, gathers)
    assert found.in_parts == (expected in (MEAN, WEIGHTED))


def test_examples_that_are_not_looked_at_are_numbered() -> None:
    found = kind(regression(LOSSES["half"][0]))
    assert found.ignored == (2, 3)
    with pytest.raises(UserError, match="of 4 it ignores number 3, 4"):
        require_loss(regression(LOSSES["half"][0]), found)


def test_few_labels_are_not_mistaken_for_examples_that_are_not_looked_at() -> None:
    """With only three different examples, neighbours are often equal, and so are the halves of a batch."""

    def loss(params, model_state, batch, key):
        scores = params["w"][batch["y"]]
        return jnp.var(scores) + jnp.sum(params["w"] ** 2), (model_state, {})

    example = {"y": Field((), jnp.int32, classes=2)}
    assert kind(dataclasses.replace(regression(LOSSES["mean"][0]), loss=loss, example=example)).name == ACROSS


def test_a_sum_is_named() -> None:
    with pytest.raises(UserError, match=r"2\.0 times for twice the examples"):
        require_loss(linear_workload(), loss_kind.LossKind(name=SUM))


@pytest.mark.parametrize("name", thin(["mlp", "gpt", "lstm", "recsys", "resnet18"], 1))
def test_our_own_are_means(name: str) -> None:
    assert kind(experiment_workload(name)).name == MEAN


def test_a_padded_loss_in_both_forms() -> None:
    assert kind(padded("weighted")).name == WEIGHTED
    assert kind(padded("plain")).name == HIDDEN
    assert kind(padded("plain", dropout=0.5)).name == HIDDEN


def test_whether_a_loss_draws() -> None:
    assert not expected_communication.draws(padded()) and expected_communication.draws(padded(dropout=0.5))
    assert not expected_communication.draws(experiment_workload("cnn"))


@pytest.mark.parametrize(
    ("name", "said"),
    [("weights of zeros", r"WeightedMean\(total, weight\)"), ("contrastive", r"gathered\(x\).*jit_auto")],
)
def test_who_splits_the_program_by_hand_cannot_take_it(name: str, said: str) -> None:
    workload = regression(LOSSES[name][0])
    found, devices = kind(workload), jax.devices()[:2]
    require_micro_batchable(workload, jit_auto.build(workload, devices), found)
    require_micro_batchable(workload, pmap.build(workload, devices[:1]), found)
    with pytest.raises(Unsupported, match=said):
        require_micro_batchable(workload, pmap.build(workload, devices), found)
    several = dataclasses.replace(workload, micro_batches=2)
    with pytest.raises(Unsupported):
        require_micro_batchable(several, jit_auto.build(several, devices), found)


def test_with_the_helper_all_can_but_micro_batches_cannot() -> None:
    workload = regression(LOSSES["gathered"][0])
    found, devices = kind(workload), jax.devices()[:2]
    require_micro_batchable(workload, shard_map.build(workload, devices), found)
    several = dataclasses.replace(workload, micro_batches=2)
    with pytest.raises(Unsupported, match="accumulate=1"):
        require_micro_batchable(several, shard_map.build(several, devices), found)


@pytest.mark.parametrize("kind", [LossKind(name=MEAN), LossKind(name=ACROSS, gathers=True), LossKind(name=UNTRIED)])
def test_the_message_about_a_loss_names_its_kind(kind):
    assert LossKind.of(kind.label) == kind
