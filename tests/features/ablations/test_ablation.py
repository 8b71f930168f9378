# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablation points: which a run has, where they run, and how a bench prepares and measures them."""

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest
from plan_cases import CPU, GPUS, settings
from thin import thin
from workload_cases import KEY, TINY, experiment_workload

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.errors import Unsupported
from jaxbench.features.ablations import programs, recipe
from jaxbench.features.ablations import programs as ablation_programs
from jaxbench.measure import check
from jaxbench.measure.compile_report import compile_step
from jaxbench.parallel.step import without
from jaxbench.sweep import ablations as ablation
from jaxbench.sweep import plan

FOUR = {**CPU, "cores": 4}


def of(machine, **changes):
    chosen = settings(**changes)
    planned = plan.make(chosen, machine)
    return {point.point: point for point in ablation.points(chosen, planned)}


def test_two_devices_are_explained_and_those_that_share_cores_are_not():
    found = of(CPU)
    assert [*found] == [
        *("jit_auto/strong/1/peak", "jit_auto/strong/2/peak"),
        *("jit_auto/strong/2/alone", "jit_auto/strong/2/local", "jit_auto/strong/2/communication"),
        "jit_auto/strong/2/processes",
        *("jit_auto/weak/2/local", "jit_auto/weak/2/communication", "jit_auto/weak/2/processes"),
    ]
    name, setup = plan.worker_of(found["jit_auto/weak/2/processes"])
    assert (name, setup.devices, setup.trainings, setup.own_cores) == ("cpu1x2", 1, 2, True)
    alone = found["jit_auto/strong/2/alone"]
    assert (alone.devices, alone.global_batch, alone.explains) == (1, 12, "jit_auto/strong/2")


@pytest.mark.parametrize(("strategy", "waits"), [("pipeline", True), ("fsdp", False)])
def test_stages_wait_for_each_other_in_a_part_of_its_own(strategy, waits):
    assert (f"{strategy}/strong/4/schedule" in of(FOUR, strategy=strategy, **{"mesh.devices": "1,4"})) is waits


def test_a_share_of_a_model_runs_on_one_core_of_a_process_that_knows_all_devices():
    alone = of(FOUR, strategy="fsdp")["fsdp/weak/4/alone"]
    name, setup = plan.worker_of(alone)
    assert (name, setup.devices, setup.cores) == ("cpu1of4", 4, 1)
    assert ablation.devices_of(alone) == 4
    assert plan.worker_of(of(GPUS, strategy="fsdp")["fsdp/weak/4/alone"])[0] == "gpu"


@pytest.mark.parametrize("strategy", ["jit_auto", "jit_explicit", "shard_map", "pmap"])
def test_a_share_of_a_batch_is_the_base_with_a_smaller_batch(strategy):
    """Under weak scaling it is the base itself."""
    found = of(CPU, strategy=strategy)
    (alone,) = (point for name, point in found.items() if name.endswith("/alone"))
    assert (alone.point, alone.global_batch, plan.worker_of(alone)[0]) == (f"{strategy}/strong/2/alone", 12, "cpu1")
    assert ablation.is_plain(alone)


def test_more_asks_what_a_larger_batch_would_do():
    larger = {name: point.global_batch for name, point in of(CPU, explain="more").items() if "batch=" in name}
    assert larger == {"jit_auto/strong/1/batch=2x": 48, "jit_auto/strong/1/batch=4x": 96}


def test_a_step_that_is_fed_is_explained_by_the_same_one_with_resident_input():
    found = of(CPU, strategy="shard_map", **{"lever.input": "pipeline:2"})
    names = [f"shard_map/{scaling}/{devices}/resident" for scaling in ("strong", "weak") for devices in (1, 2)]
    resident = [found[name] for name in names]
    assert [point.levers["input"] for point in resident] == ["device"] * 4
    assert [point.global_batch for point in resident] == [24, 24, 24, 48]
    assert all(ablation.is_plain(point) and point.point.startswith(point.explains) for point in resident)
    assert not [name for name in of(CPU) if name.endswith("/resident")]


@pytest.mark.parametrize(
    "changes",
    [
        {"explain": "off"},
        {"lever.precision": "default,bfloat16"},
        {"lever.execution": "jit"},
        {"mesh.devices": "2"},
        {"strategy": "shard_map", "lever.reduction": "ring:bfloat16"},
    ],
)
def test_nothing_is_explained(changes):
    assert not of(CPU, **changes)


def test_a_model_that_grows_is_explained_in_strong_scaling_only():
    assert not [name for name in of(CPU, weak="model") if "/weak/2/" in name]


@pytest.mark.full
@pytest.mark.parametrize(("name", "strategy"), thin([("mlp", "jit_auto"), ("mlp", "pmap"), ("mlp", "zero1")], 1))
def test_a_bench_prepares_and_measures_each_part(name, strategy, monkeypatch):
    monkeypatch.setitem(programs.SIZE, "cpu", 64)
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=True)
    config.update_from_flattened_dict({"strategy": strategy, "batch": 16, "mesh.devices": "1,2", "explain": "on"})
    chosen = config_lib.parse(config, [strategy], [])
    planned = plan.make(chosen, CPU)
    bench = recipe.bench(config_lib.plain(config), name, jax.devices()[:2], "w")
    steps = {point.point: point for point in planned}
    bench.prepare(steps[f"{strategy}/strong/2"].to_json())
    for point in ablation.points(chosen, planned):
        if "/strong/2/" not in point.point:
            continue
        record = bench.prepare(point.to_json())
        assert all(verdict.ok for verdict in record.checks), record.checks
        assert record.explains == f"{strategy}/strong/2"
        timed = bench.round(point.point, 0)
        assert all(verdict.ok for verdict in timed.checks), timed.checks
        if point.point.endswith("/alone"):
            assert (
                record.compile_report.flops_per_step * 2
                == bench.compiler.reports[f"{strategy}/strong/2"].flops_per_step
            )


# Ablation programs do exactly a part of the step: its work without communication, or its communication.


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
    local = ablation_programs.local(workload, program, BATCH)
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
    alone = ablation_programs.alone(workload, program, BATCH)
    mine = compiled(workload, alone)
    assert mine.inputs is not None
    assert all(leaf.sharding.device_set == {jax.devices()[0]} for leaf in jax.tree.leaves(mine.inputs))
    share = dataclasses.replace(
        whole.report, product_flops_per_step=whole.report.product_flops_per_step / program.mesh.size
    )
    assert check.judge_work(mine.report, share).ok
    assert not check.judge_work(mine.report, whole.report).ok
    state, _ = twice(workload, alone, mine)
    assert int(state.step) == 2


@pytest.mark.parametrize("mesh", thin(MESHES, ["fsdp=2,tensor=2"]))
def test_only_the_collectives_are_all_that_the_step_sends(mesh):
    workload, program, whole = step(mesh)
    communication = ablation_programs.communication(workload, program, BATCH)
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
    mine = compiled(workload, ablation_programs.communication(workload, program, BATCH))
    assert check.judge_communication(mine.report, compiled(workload, program).report).value == 0


@pytest.mark.parametrize("mesh", thin(["stage=2", "data=2,stage=2"], 1))
def test_in_the_order_of_its_schedule_a_stage_waits_for_one_number_of_each_message(mesh):
    workload, program, whole = step(mesh)
    mine = compiled(workload, ablation_programs.in_order(workload, program, BATCH))
    verdict = check.judge_schedule(mine.report, whole.report, "stage")
    assert verdict.ok and verdict.value > 0, verdict
    assert check.judge_work(mine.report, whole.report).value == 0
    state, metrics = twice(workload, ablation_programs.in_order(workload, program, BATCH), mine)
    assert int(state.step) == 2 and np.isfinite(metrics["loss"])


def test_a_schedule_that_sends_whole_messages_or_nothing_is_seen():
    workload, program, whole = step("stage=2")
    verdict = check.judge_schedule(whole.report, whole.report, "stage")
    assert not verdict.ok and "NOT one for each" in verdict.reason and "all-reduce, which must NOT be" in verdict.reason
    silent = compiled(workload, ablation_programs.local(workload, program, BATCH))
    assert not check.judge_schedule(silent.report, whole.report, "stage").ok


def test_an_omission_or_addition_is_seen():
    _, program, whole = step("data=2")
    fewer = compiled(*_without_a_leaf())
    assert not check.judge_communication(fewer.report, whole.report).ok
    silent = compiled(step("data=2")[0], ablation_programs.local(step("data=2")[0], program, BATCH))
    verdict = check.judge_communication(silent.report, whole.report)
    assert not verdict.ok and "only one of the program and the step has all-reduce over 'data'" in verdict.reason


def _without_a_leaf():
    """A model with fewer parameters, which sends less."""
    workload = experiment_workload("gpt", **{**GPT, "model.width": 8})
    program = parallel.load("hybrid").build(workload, jax.devices()[:2], sizes={"data": 2})
    return workload, ablation_programs.communication(workload, program, BATCH)


def test_an_update_of_whole_arrays_is_no_program_of_one_device():
    clipped = optax.chain(optax.clip_by_global_norm(1), optax.sgd(1))
    workload = dataclasses.replace(experiment_workload("gpt", **GPT), optimizer=clipped)
    program = parallel.build("fsdp", workload, jax.devices()[:2])
    with pytest.raises(Unsupported, match="its optimizer's update needs whole arrays"):
        ablation_programs.local(workload, program, BATCH)


def test_a_large_product_keeps_its_size_and_counts_its_operations(monkeypatch):
    monkeypatch.setitem(ablation_programs.SIZE, "cpu", 64)
    program = ablation_programs.large_product(jax.devices()[:2])
    workload = experiment_workload("mlp")
    mine = compiled(workload, program)
    assert mine.report.product_flops_per_step == ablation_programs.product_flops("cpu", 2) == 2 * 2 * 64**3
    before = jax.device_get(program.init(KEY)).params
    state, _ = twice(workload, program, mine)
    np.testing.assert_array_equal(state.params["x"], before["x"])  # nothing overflows, for any number of steps
    np.testing.assert_allclose(state.params["product"], before["x"] @ before["w"], rtol=1e-3, atol=1e-4)
