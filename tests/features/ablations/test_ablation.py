# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablation points: which a run has, where they run, and how a bench prepares and measures them."""

import jax
import pytest
from plan_cases import CPU, GPUS, settings
from thin import thin
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core import plan
from jaxbench.features.ablations import points as ablation
from jaxbench.features.ablations import programs
from jaxbench.features.ablations.bench import AblationBench

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
        *("jit_auto/weak/2/local", "jit_auto/weak/2/communication"),
    ]
    alone = found["jit_auto/strong/2/alone"]
    assert (alone.devices, alone.global_batch, alone.explains) == (1, 12, "jit_auto/strong/2")


@pytest.mark.parametrize(("strategy", "waits"), [("pipeline", True), ("fsdp", False)])
def test_stages_wait_for_each_other_in_a_part_of_its_own(strategy, waits):
    assert (f"{strategy}/strong/4/schedule" in of(FOUR, strategy=strategy, **{"mesh.devices": "1,4"})) is waits


def test_a_share_of_a_model_runs_on_one_core_of_a_process_that_knows_all_devices():
    alone = of(FOUR, strategy="fsdp")["fsdp/weak/4/alone"]
    name, setup = alone.worker()
    assert (name, setup.devices, setup.cores) == ("cpu1of4", 4, 1)
    assert ablation.devices_of(alone) == 4
    assert of(GPUS, strategy="fsdp")["fsdp/weak/4/alone"].worker()[0] == "gpu"


@pytest.mark.parametrize("strategy", ["jit_auto", "jit_explicit", "shard_map", "pmap"])
def test_a_share_of_a_batch_is_the_base_with_a_smaller_batch(strategy):
    """Under weak scaling it is the base itself."""
    found = of(CPU, strategy=strategy)
    (alone,) = (point for name, point in found.items() if name.endswith("/alone"))
    assert (alone.point, alone.global_batch, alone.worker()[0]) == (f"{strategy}/strong/2/alone", 12, "cpu1")
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
    bench = AblationBench(config_lib.plain(config), name, jax.devices()[:2], "w")
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
            assert record.passport.flops_per_step * 2 == bench.reports[f"{strategy}/strong/2"].flops_per_step
