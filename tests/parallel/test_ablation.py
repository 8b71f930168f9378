# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablation programs do exactly a part of the step: its work without communication, or its communication."""

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest
from thin import thin
from workload_cases import KEY, experiment_workload

from jaxbench import parallel
from jaxbench.core.program import without
from jaxbench.errors import Unsupported
from jaxbench.features.ablations import programs as ablation
from jaxbench.measure import check
from jaxbench.measure.compile_report import compile_step

BATCH = 8
GPT = {"model.layers": 1, "model.width": 16, "model.heads": 2, "model.context": 16, "model.vocab": 32}
MESHES = ["data=2", "fsdp=2,tensor=2", "tensor=2", "context=2", "expert=2", "stage=2", "fsdp=2", "data=2,stage=2"]


@functools.cache
def step(mesh):
    """(workload, program, compiled) of a small gpt."""
    sizes = parallel.axes.parse(mesh)
    changes = {"model.experts": 4 if "expert" in sizes else 0, "model.layers": 2 if "stage" in sizes else 1}
    workload = experiment_workload("gpt", **{**GPT, **changes})
    devices = jax.devices()[: int(np.prod([*sizes.values()]))]
    program = parallel.load("hybrid").build(workload, devices, sizes=sizes)
    return workload, program, compiled(workload, program)


def compiled(workload, program):
    return compile_step(workload, program, BATCH, options=without(program.disabled_passes))


def twice(workload, program, step):
    with jax.set_mesh(program.mesh):
        state, batch = program.init(KEY), program.put(workload.synthetic(KEY, BATCH))
        for _ in range(2):
            state, metrics = step.call(state, batch)
        return jax.device_get((state, metrics))


@pytest.mark.parametrize("mesh", thin(MESHES, ["fsdp=2,tensor=2"]))
def test_without_collectives_each_device_multiplies_what_it_does_in_the_step(mesh):
    workload, program, whole = step(mesh)
    local = ablation.local(workload, program, BATCH)
    mine = compiled(workload, local)
    assert check.judge_silent(mine.report).ok
    assert not check.judge_silent(whole.report).ok
    assert check.judge_work(mine.report, whole.report).value == 0
    state, metrics = twice(workload, local, mine)
    assert int(state.step) == 2
    assert "loss" in metrics


@pytest.mark.parametrize("mesh", thin(MESHES, ["data=2"]))
def test_one_device_alone_does_one_devices_share(mesh):
    workload, program, whole = step(mesh)
    alone = ablation.alone(workload, program, BATCH)
    mine = compiled(workload, alone)
    assert mine.inputs is not None
    assert all(leaf.sharding.device_set == {jax.devices()[0]} for leaf in jax.tree.leaves(mine.inputs))
    share = 1 / program.mesh.size
    assert check.judge_work(mine.report, whole.report, share=share).ok
    assert not check.judge_work(mine.report, whole.report).ok
    state, _ = twice(workload, alone, mine)
    assert int(state.step) == 2


@pytest.mark.parametrize("mesh", thin(MESHES, ["fsdp=2,tensor=2"]))
def test_only_the_collectives_are_all_that_the_step_sends(mesh):
    workload, program, whole = step(mesh)
    communication = ablation.communication(workload, program, BATCH)
    mine = compiled(workload, communication)
    verdict = check.judge_communication(mine.report, whole.report)
    assert verdict.ok and verdict.value == 0, verdict.reason
    assert not mine.report.product_flops_per_step
    state, _ = twice(workload, communication, mine)
    assert int(state.step) == 0


@pytest.mark.full
def test_a_gather_that_micro_batches_share_is_sent_once():
    workload = experiment_workload("gpt", **GPT, **{"lever.accumulate": "2"})
    program = parallel.build("fsdp", workload, jax.devices()[:2])
    mine = compiled(workload, ablation.communication(workload, program, BATCH))
    assert check.judge_communication(mine.report, compiled(workload, program).report).value == 0


@pytest.mark.parametrize("mesh", thin(["stage=2", "data=2,stage=2"], 1))
def test_in_the_order_of_its_schedule_a_stage_waits_for_one_number_of_each_message(mesh):
    workload, program, whole = step(mesh)
    mine = compiled(workload, ablation.in_order(workload, program, BATCH))
    verdict = check.judge_schedule(mine.report, whole.report, "stage")
    assert verdict.ok and verdict.value > 0, verdict
    assert check.judge_work(mine.report, whole.report).value == 0
    state, metrics = twice(workload, ablation.in_order(workload, program, BATCH), mine)
    assert int(state.step) == 2 and np.isfinite(metrics["loss"])


def test_a_schedule_that_sends_whole_messages_or_nothing_is_seen():
    workload, program, whole = step("stage=2")
    verdict = check.judge_schedule(whole.report, whole.report, "stage")
    assert not verdict.ok and "NOT one for each" in verdict.reason and "all-reduce, which must NOT be" in verdict.reason
    silent = compiled(workload, ablation.local(workload, program, BATCH))
    assert not check.judge_schedule(silent.report, whole.report, "stage").ok


def test_an_omission_or_addition_is_seen():
    _, program, whole = step("data=2")
    fewer = compiled(*_without_a_leaf())
    assert not check.judge_communication(fewer.report, whole.report).ok
    silent = compiled(step("data=2")[0], ablation.local(step("data=2")[0], program, BATCH))
    verdict = check.judge_communication(silent.report, whole.report)
    assert not verdict.ok and "only one of the program and the step has all-reduce over 'data'" in verdict.reason


def _without_a_leaf():
    """A model with fewer parameters, which sends less."""
    workload = experiment_workload("gpt", **{**GPT, "model.width": 8})
    program = parallel.load("hybrid").build(workload, jax.devices()[:2], sizes={"data": 2})
    return workload, ablation.communication(workload, program, BATCH)


def test_an_update_of_whole_arrays_is_no_program_of_one_device():
    clipped = optax.chain(optax.clip_by_global_norm(1), optax.sgd(1))
    workload = dataclasses.replace(experiment_workload("gpt", **GPT), optimizer=clipped)
    program = parallel.build("fsdp", workload, jax.devices()[:2])
    with pytest.raises(Unsupported, match="its optimizer's update needs whole arrays"):
        ablation.local(workload, program, BATCH)


def test_a_large_product_keeps_its_size_and_counts_its_operations(monkeypatch):
    monkeypatch.setitem(ablation.SIZE, "cpu", 64)
    program = ablation.large_product(jax.devices()[:2])
    workload = experiment_workload("mlp")
    mine = compiled(workload, program)
    assert mine.report.product_flops_per_step == ablation.product_flops("cpu", 2) == 2 * 2 * 64**3
    before = jax.device_get(program.init(KEY)).params
    state, _ = twice(workload, program, mine)
    np.testing.assert_array_equal(state.params["x"], before["x"])  # nothing overflows, for any number of steps
    np.testing.assert_allclose(state.params["product"], before["x"] @ before["w"], rtol=1e-3, atol=1e-4)
