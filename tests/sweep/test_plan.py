# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The points of a sweep, and the messages for impossible points."""

from __future__ import annotations

import jax
import pytest
from experiment_cases import lever_experiments
from plan_cases import CPU, GPUS, settings
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.core import schema
from jaxbench.errors import UserError
from jaxbench.measure.arm import Arms, build_program, build_workload
from jaxbench.parallel import axes
from jaxbench.processes.messages import Setup
from jaxbench.sweep import plan, sweep

MIXED = {**GPUS, "device_kinds": ["NVIDIA A100", "NVIDIA T1000"]}


def test_a_laptop_gets_1_2_4_8_and_says_what_is_oversubscribed():
    points = plan.make(settings(), CPU)
    assert {p.devices: p.oversubscribed for p in points} == {1: False, 2: False, 4: True, 8: True}
    assert [p.global_batch for p in points if p.scaling == "strong"] == [24] * 4
    assert [p.global_batch for p in points if p.scaling == "weak"] == [24, 48, 96, 192]
    assert list(plan.groups(points)) == ["cpu1", "cpu2", "cpu4", "cpu8"]


def test_accelerators_in_powers_of_two():
    points = plan.make(settings(), GPUS)
    assert sorted({p.devices for p in points}) == [1, 2, 4]
    assert not any(p.oversubscribed for p in points)
    assert list(plan.groups(points)) == ["gpu"]


def test_on_a_tpu_there_is_nothing_to_unfuse():
    """Its compiler makes the same fusions for any passes disabled by name."""
    tpu = {**GPUS, "platform": "tpu", "devices": 4, "device_kind": "TPU v5 lite", "device_kinds": ["TPU v5 lite"]}
    ladder = {"lever.ladder": "execution=eager; execution=unfused; execution=jit"}
    assert {p.arm for p in plan.make(settings(**ladder), tpu)} == {"execution=eager", "execution=jit"}
    assert {p.arm for p in plan.make(settings(**ladder), GPUS)} == set(ladder["lever.ladder"].split("; "))
    with pytest.raises(UserError, match="unfused .* on a TPU, .*: use eager or jit"):
        plan.make(settings(**{"lever.execution": "unfused"}), tpu)


def test_a_count_above_the_limit_or_that_does_not_divide_is_left_out():
    assert {p.devices for p in plan.make(settings(**{"mesh.devices": "auto:2"}), CPU)} == {1, 2}
    assert {p.devices for p in plan.make(settings(batch=100), CPU)} == {1, 2, 4}
    assert {p.devices for p in plan.make(settings(batch=100, scaling="weak"), CPU)} == {1, 2, 4, 8}


FIXED_COUNTS = ("hybrid", "pipeline")  # of 4 devices, and up to 8
PLACES = {"cpu": CPU, "6 gpus": GPUS, "8 gpus": {**GPUS, "devices": 8}}


@pytest.mark.parametrize("name", [*config_lib.training_experiments(), *lever_experiments()])
@pytest.mark.parametrize("preset", sorted(discovery.presets()))
@pytest.mark.parametrize("place", PLACES)
def test_every_experiment_has_a_plan_in_every_preset_everywhere(name, preset, place):
    machine = PLACES["8 gpus" if place == "6 gpus" and name in FIXED_COUNTS else place]
    config = config_lib.compose(name, discovery.load_experiment(name), discovery.load_preset(preset))
    assert plan.make(config_lib.parse(config, parallel.strategy_names(), parallel.of_any_model()), machine)


@pytest.mark.parametrize(
    ("changes", "machine", "sentence"),
    [
        ({"mesh.devices": "1,8"}, GPUS, "asks for 8 devices, this machine has 6"),
        ({}, MIXED, "different accelerators (NVIDIA A100, NVIDIA T1000)"),
        ({"mesh.devices": "1,5"}, CPU, "--config.batch=24 does not divide over 5 devices: use 25"),
        ({"mesh.devices": "4", "lever.batch": "30"}, CPU, "--config.lever.batch=30 does not divide over 4 devices"),
        ({"mesh.devices": "1,x"}, CPU, "--config.mesh.devices=1,x is not a list"),
        ({"mesh.devices": "0"}, CPU, "--config.mesh.devices=0 is not a list"),
        ({"mesh.devices": "2,2"}, CPU, "different device counts"),
        ({"mesh.devices": "auto:0"}, CPU, "--config.mesh.devices=auto:0 is not a list"),
        ({"mesh.platform": "gpus"}, CPU, "did you mean 'gpu'"),
        ({"strategy": "jit_atuo"}, CPU, "did you mean 'jit_auto'"),
        ({"strategy": ""}, CPU, "is empty"),
        ({"report.overlay": "none"}, CPU, "--config.report.overlay=none is unknown"),
        ({"scaling": "strong,week"}, CPU, "did you mean 'weak'"),
        ({"measure.rounds": 0}, CPU, "--config.measure.rounds=0 is out of range: use 1 to 10000"),
        ({"measure.rounds": 1_000_000_000}, CPU, "--config.measure.rounds=1000000000 is out of range"),
        ({"measure.rounds": 10, "measure.processes": 11}, CPU, "processes=11 cannot share 10 rounds: use 1 to 10"),
        ({"measure.rounds": "sometimes"}, CPU, "rounds=sometimes is neither auto nor a whole number: use auto or 10."),
        ({"measure.rounds": 1.5}, CPU, "rounds=1.5 is neither auto nor a whole number"),
        ({"measure.processes": 2}, CPU, "processes=2 is too few for --config.measure.rounds=auto"),
        ({"measure.budget_s": 0.0}, CPU, "--config.measure.budget_s=0.0 must be above 0"),
        ({"measure.budget_s": -5.0}, CPU, "--config.measure.budget_s=-5.0 must be above 0"),
        ({"measure.rounds": 10, "measure.budget_s": 5.0}, CPU, "budget_s=5 has no effect on 10 rounds"),
        ({"accelerator_batch": -8}, CPU, "--config.accelerator_batch=-8 is out of range"),
        ({"seed": -1}, CPU, "--config.seed=-1 is out of range"),
        ({"optimizer.learning_rate": float("nan")}, CPU, "--config.optimizer.learning_rate=nan must be above 0"),
        ({"optimizer.learning_rate": float("inf")}, CPU, "--config.optimizer.learning_rate=inf must be above 0"),
        ({"optimizer.learning_rate": -1.0}, CPU, "--config.optimizer.learning_rate=-1.0 must be above 0"),
        ({"measure.block_s": 0.0}, CPU, "must be above 0"),
    ],
)
def test_what_cannot_be_is_one_sentence(changes, machine, sentence):
    with pytest.raises(UserError) as error:
        plan.make(settings(**changes), machine)
    assert sentence in str(error.value)


def test_devices_that_share_cores_get_the_least_that_proves_them_right():
    points = {p.devices: p for p in plan.make(settings(scaling="strong"), CPU)}
    assert {n: plan.rounds_of(point, 10) for n, point in points.items()} == {1: 10, 2: 10, 4: 1, 8: 1}
    assert [plan.rounds_of(points[n], 2) for n in (2, 8)] == [2, 1]
    done = [round_of(name, r) for name in ("jit_auto/strong/1", "jit_auto/strong/8") for r in range(3)]
    missing = sweep.missing_rounds(done, list(points.values()), 5)
    assert missing == {"jit_auto/strong/1": [3, 4], "jit_auto/strong/2": [0, 1, 2, 3, 4], "jit_auto/strong/4": [5]}


def round_of(point, number):
    return schema.RoundRecord(
        point=point, round=number, steps=1, block_s=(1.0,), double_block_s=(2.0,), warmup_block_s=(), settled=True,
        compilations=0, worker="session0/cpu1",
    )  # fmt: skip


def test_the_processes_of_a_point_share_its_devices():
    def of(processes, machine=CPU, **changes):
        points = plan.make(settings(**{"mesh.processes": processes, **changes}), machine)
        return {point.devices: point.processes for point in points}

    assert of("1") == {1: 1, 2: 1, 4: 1, 8: 1}
    assert of("2") == {1: 1, 2: 2, 4: 2, 8: 2}
    assert of("per_device") == {1: 1, 2: 2, 4: 4, 8: 8}
    assert of("per_device", GPUS) == {1: 1, 2: 2, 4: 4}
    points = plan.make(settings(**{"mesh.processes": "per_device"}), GPUS)
    assert plan.groups(points)["gpu"][1] == Setup(platform="gpu", devices=4, processes=4)
    assert "processes" not in points[-1].to_json()
    points = plan.make(settings(**{"mesh.processes": "2"}), CPU)
    assert list(plan.groups(points)) == ["cpu1", "cpu2-2processes", "cpu4-2processes", "cpu8-2processes"]


@pytest.mark.parametrize(
    ("processes", "machine", "devices", "sentence"),
    [
        ("two", CPU, "auto", "processes=two is not a number of processes: use 1, 2 or per_device"),
        ("0", CPU, "auto", "processes=0 is not a number of processes"),
        ("4", CPU, "1,2", "processes=4 is more than the 2 devices of the largest point: use at most 2"),
        ("3", CPU, "auto", "4 devices do not divide over --config.mesh.processes=3"),
        ("2", GPUS, "auto", "processes=2 is not possible on a gpu, .*: use per_device"),
        ("per_device", {**GPUS, "platform": "tpu"}, "auto", "processes=per_device is not possible on a TPU"),
    ],
)
def test_processes_that_cannot_be_are_one_sentence(processes, machine, devices, sentence):
    with pytest.raises(UserError, match=sentence):
        plan.make(settings(**{"mesh.processes": processes, "mesh.devices": devices}), machine)


# Points of meshes and of models that grow with the devices: plans, programs, refusals.


MACHINE = {"platform": "cpu", "devices": 1, "device_kinds": ["cpu"], "device_kind": "cpu", "cores": 2}


def config_of(name, **changes):
    config = config_lib.compose(name, discovery.load_experiment(name), TINY)
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return config


def planned(name, **changes):
    settings = config_lib.parse(config_of(name, **changes), parallel.strategy_names(), parallel.of_any_model())
    return plan.make(settings, MACHINE)


def test_all_or_some_meshes_are_arms_and_one_for_another_number_of_devices_is_refused():
    points = planned("hybrid", **{"mesh.devices": "8"})
    assert [point.levers["mesh"] for point in points] == [axes.text(sizes) for sizes in axes.meshes(8)]
    assert len({point.point for point in points}) == 16
    assert all(point.arm == f"mesh={point.levers['mesh']}" for point in points)
    points = planned("hybrid", **{"mesh.devices": "4", "lever.mesh": "data=2,tensor=2; fsdp=4"})
    assert [point.levers["mesh"] for point in points] == ["data=2,tensor=2", "fsdp=4"]
    with pytest.raises(UserError, match="has 4 places for 8 devices"):
        planned("hybrid", **{"mesh.devices": "8", "lever.mesh": "data=2,tensor=2"})


def test_only_what_splits_the_batch_must_divide_it():
    assert planned("gpt", strategy="tensor", batch=3, **{"mesh.devices": "2"})[0].global_batch == 3
    with pytest.raises(UserError, match=r"--config.batch=3 does not divide over 2 devices: use 4"):
        planned("gpt", strategy="fsdp", batch=3, **{"mesh.devices": "2"})


def test_a_model_that_grows_keeps_its_batch_and_has_more_parameters_or_is_refused():
    points = planned("tensor_parallel")
    assert {point.global_batch for point in points} == {8}
    config = config_of("tensor_parallel")
    config.lever.update({"remat": "none"})
    sizes = {}
    for devices in (1, 2, 8):
        workload = build_workload(config, "tensor_parallel", grown=devices)
        sizes[devices] = sum(x.size for x in jax.tree.leaves(jax.eval_shape(workload.init, jax.random.PRNGKey(0))[0]))
        parallel.build("tensor", workload, jax.devices()[:devices])  # heads and hidden units divide
    assert sizes[1] < sizes[2] < sizes[8]
    with pytest.raises(UserError, match="weak=model.*'cnn'"):
        build_workload(config_of("cnn"), "cnn", grown=2)


@pytest.mark.parametrize(
    ("strategy", "levers", "said"),
    [
        ("tensor", {"schedule": "1f1b"}, "schedule=1f1b needs a pipeline"),
        ("context", {"sequence_parallel": "on"}, "sequence_parallel=on needs a mesh with the axis tensor"),
        ("shard_map", {"part": "forward", "schedule": "1f1b"}, "schedule=1f1b needs a pipeline"),
        ("shard_map", {"part": "forward", "reduction": "ring"}, "reduction=ring needs the strategy shard_map"),
        ("tensor", {"mesh": "data=2"}, "'tensor' defines its own mesh"),
    ],
)
def test_a_lever_that_a_strategy_does_not_have_is_refused(strategy, levers, said):
    workload = Arms(config_of("gpt"), "gpt", jax.devices()[0]).workload({})
    with pytest.raises(UserError, match=said):
        build_program(workload, strategy, jax.devices()[:2], levers)
