# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Collective counts against the expected communication: equal numbers, for any width and shape in the compiled text."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from broken_strategies import communication
from strategy_cases import verdicts
from workload_cases import experiment_workload, linear_workload

from jaxbench.core.schema import Collective
from jaxbench.measure.expected_communication import (
    Statistics,
    StepFacts,
    data_parallel,
    equal_gradients,
    scalars_of_examples,
    verify,
)
from jaxbench.parallel.strategies import shard_map

FORM = {"all-reduce": (8, 8)}
CPU, GPU, TPU = (StepFacts(devices=2, platform=name, metrics=2, sizes=(2,)) for name in ("cpu", "gpu", "tpu"))


def summed(numbers, scalars=0, *, width=4, kind="all-reduce", count=1):
    size = numbers * width + 4 * scalars
    scalar = {"scalar_bytes": 4 * scalars, "scalars": scalars}
    return Collective(kind=kind, count=count, bytes=size, elements=numbers, group=2, **scalar)


def test_scalars_do_not_count_as_gradients_and_missing_collectives_fail():
    assert verify([summed(8, scalars=2)], FORM, CPU).ok
    assert not verify([summed(8, scalars=2)], {"all-reduce": (10, 10)}, CPU).ok
    assert not verify((), FORM, CPU).ok
    assert verify((), {}, StepFacts(devices=1)).ok


def test_the_width_is_the_compilers_choice_and_the_number_is_not():
    assert verify([summed(8, width=2)], FORM, CPU).ok
    assert not verify([summed(4, width=8)], FORM, CPU).ok  # as many bytes
    assert not verify([summed(16, width=2)], FORM, CPU).ok  # twice
    assert not verify([summed(8, width=8)], FORM, CPU).ok  # in 64 bits
    assert not verify([summed(8)], FORM, StepFacts(devices=2, platform="gpu", metrics=0, widest=2)).ok  # 16 requested


def test_batch_statistics_are_summed_whole_times_and_gradients_once():
    """With state in the model, gradients reduced three times would pass if any number of reductions were allowed."""
    own = StepFacts(devices=2, metrics=2, statistics=Statistics(floats=5))
    of_all = StepFacts(devices=2, metrics=2, statistics=Statistics(floats=5, repeats=4))
    assert verify([summed(8)], FORM, own).ok and verify([summed(13)], FORM, own).ok
    assert not verify([summed(24)], FORM, own).ok and not verify([summed(24)], FORM, of_all).ok
    assert not verify([summed(12)], FORM, own).ok and not verify([summed(18)], FORM, own).ok
    assert verify([summed(28)], FORM, of_all).ok and not verify([summed(33)], FORM, of_all).ok
    counters = StepFacts(devices=2, platform="gpu", metrics=0, statistics=Statistics(floats=5, integers=2, scalars=1))
    assert verify([summed(15, scalars=1)], FORM, counters).ok and not verify([summed(17)], FORM, counters).ok
    stateful = StepFacts(devices=2, metrics=2, statistics=Statistics(floats=4))
    assert verify([summed(12)], FORM, stateful).ok
    assert not verify([summed(12)], FORM, CPU).ok
    assert not verify([summed(12)], {"all-reduce": (16, 16)}, stateful).ok


@pytest.mark.parametrize("fault", ["", "doubled"])
def test_a_program_with_batch_statistics_that_reduces_its_gradients_again(fault):
    plain = linear_workload()

    def loss(params, model_state, batch, key):
        value, (_, metrics) = plain.loss(params, {}, batch, key)
        return value, ({"mean": jnp.mean(batch["x"], 0)}, metrics)

    init = lambda key: (plain.init(key)[0], {"mean": jnp.zeros(3)})  # noqa: E731
    workload, devices = dataclasses.replace(plain, init=init, loss=loss, independent=True), jax.devices()[:2]
    program = communication.build(workload, devices, fault) if fault else shard_map.build(workload, devices)
    parameters, collectives, _ = verdicts(workload, program)
    assert parameters.ok and collectives.ok is not bool(fault)
    assert not fault or "19 numbers by all-reduce, but 11 are expected" in collectives.reason


def test_equal_gradients_need_not_be_sent_twice():
    step = StepFacts(devices=2, repeated=lambda: 2)
    assert verify([summed(6)], FORM, step).ok and not verify([summed(5)], FORM, step).ok
    stateful = dataclasses.replace(step, statistics=Statistics(floats=5))
    assert verify([summed(11)], FORM, stateful).ok and not verify([summed(10)], FORM, stateful).ok


@pytest.mark.parametrize(("name", "equal"), [("cnn", 0), ("resnet18", 16)])
def test_which_gradients_are_equal(name, equal):
    """A block of resnet18 adds two normalizations, and their biases have the same gradient."""
    assert equal_gradients(experiment_workload(name)) == equal


@pytest.mark.parametrize("step", [GPU, TPU], ids=["gpu", "tpu"])
def test_gradients_and_metrics_in_one_array(step):
    assert verify([summed(10)], FORM, step).ok
    assert verify([summed(8, scalars=2)], FORM, step).ok
    assert verify([summed(7, scalars=3)], FORM, step).ok  # an array of one number, without its dimension
    assert not verify([summed(9)], FORM, step).ok  # a bias of one number is missing
    assert not verify([summed(18)], FORM, step).ok  # twice


def test_a_metric_of_no_example_need_not_be_summed():
    step = StepFacts(devices=2, platform="gpu", metrics=2, least_metrics=lambda: 1)
    assert verify([summed(9)], FORM, step).ok and verify([summed(10)], FORM, step).ok
    assert not verify([summed(8)], FORM, step).ok


def test_which_metrics_depend_on_examples():
    workload = linear_workload()

    def loss(params, model_state, batch, key):
        value, (state, metrics) = workload.loss(params, model_state, batch, key)
        norm = sum(x.sum() for x in jax.tree.leaves(params))
        return value, (state, {**metrics, "constant": 1.0 + 0 * norm * 0, "norm": norm, "again": 2 * value})

    _, (_, plain) = jax.eval_shape(workload.loss, *jax.eval_shape(workload.init, KEY), workload.batch_avals(1), KEY)
    found = scalars_of_examples(dataclasses.replace(workload, loss=loss))
    assert found == 1 + len(plain) + 1  # the loss, its own metrics, and the one made of the loss


KEY = jax.ShapeDtypeStruct((2,), "uint32")
ZERO = {"reduce-scatter": (4, 4), "all-gather": (8, 8)}


def test_a_tpu_writes_scatters_and_small_gathers_as_sums():
    scattered = [summed(8, scalars=2), summed(8, kind="all-gather")]
    assert verify(scattered, ZERO, TPU).ok
    assert "wrote all-reduce for reduce-scatter" in verify(scattered, ZERO, TPU).reason
    assert verify([summed(16, scalars=2)], ZERO, TPU).ok
    assert not verify(scattered, ZERO, GPU).ok  # there it is another program, which sends twice as much
    assert not verify([summed(12, scalars=2)], ZERO, TPU).ok
    assert not verify([*scattered, summed(4, kind="all-gather")], ZERO, TPU).ok


def test_pairs_of_16_bits_may_be_filled_up_and_not_be_sent_twice():
    form, step = {"all-reduce": (1000, 1000)}, StepFacts(devices=2, platform="tpu", metrics=2, sizes=(2,))

    def pairs(elements):
        return [dataclasses.replace(summed(elements, scalars=2), packed=elements)]

    assert verify(pairs(640), form, step).ok
    assert not verify(pairs(256), form, step).ok
    assert not verify([*pairs(1024), *pairs(1024)], form, step).ok


def test_a_tpu_may_send_the_borders_of_what_it_scatters_and_no_more():
    form = {"reduce-scatter": (400, 400), "all-gather": (800, 800)}
    step = StepFacts(devices=2, platform="tpu", metrics=0, sizes=(2,), statistics=Statistics(floats=4))
    right = [summed(800), summed(800, kind="all-gather")]
    assert verify([*right, summed(40, kind="collective-permute")], form, step).ok
    assert not verify([*right, summed(80, kind="collective-permute")], form, step).ok
    assert not verify([summed(800), summed(8, kind="collective-permute")], {"all-reduce": (800, 800)}, step).ok


@pytest.mark.parametrize("step", [CPU, GPU, TPU], ids=["cpu", "gpu", "tpu"])
def test_a_stray_gather_and_a_doubled_sum_are_seen_everywhere(step):
    right = summed(8, scalars=2)
    assert verify([right], FORM, step).ok
    assert not verify([right, summed(4, kind="all-gather")], FORM, step).ok
    assert not verify([right, summed(8)], FORM, step).ok
    assert not verify([summed(6, scalars=2)], FORM, step).ok


def test_parameters_of_rank_0_look_like_a_loss_on_a_cpu():
    params = {"w": jax.ShapeDtypeStruct((8,), "float32"), "scale": jax.ShapeDtypeStruct((), "float32")}
    form = data_parallel(params)
    assert form == {"all-reduce": (9, 9)}
    assert verify([summed(8, scalars=3)], form, CPU, rank_0=1).ok
    assert verify([summed(11)], form, GPU, rank_0=1).ok
    assert not verify([summed(10)], form, GPU, rank_0=1).ok
