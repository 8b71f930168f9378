# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The kind of mean that a loss is, detected by evaluating it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.extend import core
from jax.interpreters import mlir
from parallel.test_weighted import padded
from thin import thin
from workload_cases import experiment_workload, linear_workload

from jaxbench.errors import Unsupported, UserError
from jaxbench.measure import expected_communication, loss_kind
from jaxbench.measure.compile_report import example_flops
from jaxbench.measure.loss_kind import (
    ACROSS,
    BACKWARD,
    FIXED,
    HIDDEN,
    MEAN,
    PARTLY,
    SUM,
    UNEVEN,
    UNTRIED,
    WEIGHTED,
    LossKind,
)
from jaxbench.measure.proof import Proof, require_examples, require_loss, require_micro_batchable
from jaxbench.parallel.strategies import jit_auto, pmap, shard_map
from jaxbench.workloads import Field, TrainWorkload, WeightedMean, gathered, inspection
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


@pytest.mark.parametrize("examples", [4, 16, 64])
def test_a_weak_dependence_on_the_others_is_no_hidden_weight(examples: int) -> None:
    """A tenth of the mean of the batch is subtracted: halves then average to the whole with nearly equal weights."""

    def loss(params, model_state, batch, key):
        logits = params["w"][batch["label"] % 3]
        logits = logits - 0.1 * jnp.mean(logits, 0)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"])
        return jnp.mean(each), (model_state, {})

    example = {"label": Field((), jnp.int32, classes=5)}
    init = lambda key: ({"w": jax.random.normal(key, (3, 5))}, {})  # noqa: E731
    workload = TrainWorkload(name="weak", init=init, loss=loss, optimizer=optax.sgd(0.1), example=example)
    assert loss_kind.find(workload, device=jax.devices()[0], examples=examples).name == ACROSS


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
    assert not expected_communication.uses_key(padded()) and expected_communication.uses_key(padded(dropout=0.5))
    assert not expected_communication.uses_key(experiment_workload("cnn"))


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


def hardest(errors, batch):
    """The hardest quarter, but at least 8 examples: a mean of all for a batch of 8."""
    return jnp.mean(jax.lax.top_k(errors**2, min(len(errors), max(8, len(errors) // 4)))[0])


def median_normalized(errors, batch):
    each = errors**2
    return jnp.mean(jnp.where(len(each) > 8, jnp.minimum(each, 3 * jnp.median(each)), each))


def hardest_triplets(errors, batch):
    """Batch-hard: the largest distance to an example of the same sign against the smallest to one of the other sign."""
    distance, same = jnp.abs(errors[:, None] - errors[None]), (batch["y"] > 0)[:, None] == (batch["y"] > 0)[None]
    hardest = jnp.max(jnp.where(same, distance, 0), 1) - jnp.min(jnp.where(same, 9, distance), 1)
    return jnp.mean(jnp.where(len(errors) > 8, jax.nn.relu(hardest + 1), errors))


@pytest.mark.parametrize("score", [hardest, median_normalized, hardest_triplets])
def test_a_loss_that_is_a_mean_for_few_examples_is_found_with_the_batch_of_the_config(score) -> None:
    workload, device = regression(score), jax.devices()[0]
    assert loss_kind.find(workload, device=device, examples=8).name == MEAN
    proof = Proof(None, workload, jax.devices()[:1], jax.random.PRNGKey(0), own=False, batch=64)
    assert (proof.loss_kind.name, proof.loss_kind.examples) == (ACROSS, 64)
    assert proof.loss_kind.described.endswith("; tried with 64 examples")
    with pytest.raises(Unsupported, match="looks across examples"):
        require_micro_batchable(workload, shard_map.build(workload, jax.devices()[:2]), proof.loss_kind)


def test_quantiles_of_each_example_are_still_a_mean() -> None:
    pinball = regression(lambda e, b: jnp.mean(jnp.maximum(0.9 * e, -0.1 * e)))
    assert loss_kind.find(pinball, device=jax.devices()[0], examples=64).described == f"{MEAN}; tried with 64 examples"


def test_as_many_examples_are_tried_as_can_be_afforded() -> None:
    workload = regression(LOSSES["mean"][0])
    for flops, batch, count in ((1e3, 64, 64), (1e3, 50, 50), (1e3, 51, 50), (1e3, 1, 4), (3e7, 64, 32), (1e12, 64, 4)):
        mine = dataclasses.replace(workload, flops_per_example=flops)
        assert loss_kind.affordable(mine, batch, "cpu") == count, (flops, batch)
    assert loss_kind.affordable(dataclasses.replace(workload, flops_per_example=3e7), 64, "gpu") == 64
    wide = dataclasses.replace(workload, example={"x": Field((2**22,)), "y": Field(())}, flops_per_example=1.0)
    assert loss_kind.affordable(wide, 64, "cpu") == 4


def normalized_advantage(errors, batch):
    advantage = (batch["y"] - jnp.mean(batch["y"])) / jnp.std(batch["y"])
    return -jnp.mean(jnp.exp(errors - jax.lax.stop_gradient(errors)) * advantage) + jnp.mean(batch["y"])


def clipped_by_norm(errors, batch):
    """The loss is a mean. Its backward pass scales the gradient by the norm over the batch."""

    @jax.custom_vjp
    def clip(x):
        return x

    clip.defvjp(lambda x: (x, None), lambda _, g: (g * jnp.minimum(1, 0.01 / jnp.linalg.norm(g)),))
    return jnp.mean(clip(errors) ** 2)


def importance(errors, batch):
    weights = jax.lax.stop_gradient(jax.nn.softmax(errors))
    surrogate = jnp.sum(weights * errors)
    return jnp.mean(errors**2) + surrogate - jax.lax.stop_gradient(surrogate)


@pytest.mark.parametrize("score", [normalized_advantage, clipped_by_norm, importance])
def test_a_mean_with_a_gradient_that_is_none_is_refused_where_the_batch_is_split(score) -> None:
    workload, devices = regression(score), jax.devices()[:2]
    found = loss_kind.find(workload, device=devices[0], examples=32)
    assert found.name == BACKWARD and not found.in_parts
    require_micro_batchable(workload, jit_auto.build(workload, devices), found)
    with pytest.raises(Unsupported, match="is a mean over examples but its gradient is not"):
        require_micro_batchable(workload, shard_map.build(workload, devices), found)


def at_least_one(errors, batch):
    positive = batch["y"] > 1
    return WeightedMean(jnp.sum(errors**2 * positive), jnp.maximum(jnp.sum(positive), 1))


def smoothed_weight(errors, batch):
    return WeightedMean(jnp.sum(errors**2), jnp.sum(jnp.abs(batch["y"])) + 1e-3)


@pytest.mark.parametrize("score", [at_least_one, smoothed_weight])
def test_weights_that_do_not_add_up_over_parts_are_named(score) -> None:
    workload, devices = regression(score), jax.devices()[:2]
    found = loss_kind.find(workload, device=devices[0], examples=32)
    assert found.name in (UNEVEN, HIDDEN) if score is smoothed_weight else found.name == UNEVEN
    require_micro_batchable(workload, shard_map.build(workload, devices[:1]), found)
    with pytest.raises(Unsupported, match="weights that do not add up" if found.name == UNEVEN else "plain sum"):
        require_micro_batchable(workload, shard_map.build(workload, devices), found)


def test_the_advice_for_a_hidden_weight_leads_to_a_mean_that_is_right() -> None:
    positives = regression(lambda e, b: jnp.sum(e**2 * (b["y"] > 1)) / jnp.maximum(jnp.sum(b["y"] > 1), 1))
    devices = jax.devices()[:2]
    found = loss_kind.find(positives, device=devices[0], examples=64)
    with pytest.raises(Unsupported, match="plain sum of the examples' weights.*no maximum with 1"):
        require_micro_batchable(positives, shard_map.build(positives, devices), found)
    advised = regression(lambda e, b: WeightedMean(jnp.sum(e**2 * (b["y"] > 1)), jnp.sum(b["y"] > 1)))
    assert loss_kind.find(advised, device=devices[0], examples=64).name == WEIGHTED


def groups(errors, batch):
    grouped = errors.reshape(-1, 8)
    return jnp.mean((grouped - jnp.mean(grouped, 1, keepdims=True)) ** 2)


def test_a_model_over_groups_of_examples_is_tried_with_the_batch_of_the_config() -> None:
    workload, devices = inspection.with_least(regression(groups), 32), jax.devices()
    assert workload.least == 32
    found = loss_kind.find(workload, device=devices[0], examples=loss_kind.affordable(workload, 32, "cpu"))
    assert (found.name, found.examples) == (MEAN, 32)
    require_examples(workload, shard_map.build(workload, devices[:2]), 32)
    with pytest.raises(Unsupported, match="takes 32 examples but not 4, which a device gets at once.*reshape"):
        require_examples(workload, shard_map.build(workload, devices[:8]), 32)
    counted = regression(lambda e, b: jnp.mean(e.reshape(-1, 8) ** 2))
    assert example_flops(inspection.with_least(counted, 32)) == example_flops(regression(lambda e, b: jnp.mean(e**2)))


def test_a_model_of_a_fixed_number_of_examples_is_refused_where_the_batch_is_split() -> None:
    workload = inspection.with_least(regression(lambda e, b: jnp.mean(e.reshape(24) ** 2)), 24)
    found, devices = loss_kind.find(workload, device=jax.devices()[0], examples=24), jax.devices()[:2]
    assert found.name == FIXED
    require_micro_batchable(workload, jit_auto.build(workload, devices), found)
    with pytest.raises(Unsupported, match="takes 24 examples but not half of them"):
        require_micro_batchable(workload, shard_map.build(workload, devices), found)


def ragged(errors, batch):
    sizes = jnp.array([len(errors) // 2, len(errors) - len(errors) // 2], jnp.int32)
    return jnp.mean(jax.lax.ragged_dot(errors[:, None], jnp.ones((2, 1, 3)), sizes) ** 2)


def with_ordered_callback(errors, batch):
    jax.debug.callback(lambda x: None, errors[0], ordered=True)
    return jnp.mean(errors**2)


NO_RULE = core.Primitive("no_rule_for_vmap")
NO_RULE.def_impl(lambda x: x)
NO_RULE.def_abstract_eval(lambda x: x)
mlir.register_lowering(NO_RULE, lambda context, x: [x])


def without_rule(errors, batch):
    @jax.custom_vjp
    def same(x):
        return NO_RULE.bind(x)

    same.defvjp(lambda x: (NO_RULE.bind(x), None), lambda _, g: (g,))
    return jnp.mean(same(errors) ** 2)


@pytest.mark.parametrize("score", [ragged, with_ordered_callback, without_rule])
def test_an_operation_that_vmap_cannot_map_hides_no_mean(score) -> None:
    assert loss_kind.find(regression(score), device=jax.devices()[0], examples=8).name == MEAN


def test_all_that_is_known_of_a_loss_survives_its_description() -> None:
    kind = LossKind(name=MEAN, examples=64, unread=("a", "b"), state=("count", "sum"), single=64, without=3)
    assert LossKind.of(kind.described) == kind
    assert LossKind.of(LossKind(name=UNTRIED).described) == LossKind(name=UNTRIED)
