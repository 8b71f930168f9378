# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points of meshes and of models that grow with the devices: plans, programs, refusals."""

from __future__ import annotations

import jax
import pytest
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.core import plan
from jaxbench.errors import UserError
from jaxbench.measure.arm import Arms, build_program, build_workload
from jaxbench.parallel import axes

MACHINE = {"platform": "cpu", "devices": 1, "device_kinds": ["cpu"], "device_kind": "cpu", "cores": 2}


def config_of(name, **changes):
    config = config_lib.compose(name, discovery.load_experiment(name), TINY)
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return config


def planned(name, **changes):
    settings = config_lib.parse(config_of(name, **changes), parallel.strategy_names(), parallel.of_any_model())
    return plan.make(settings, MACHINE)


def test_all_meshes_are_arms_and_each_divides_its_batch():
    points = planned("hybrid", **{"mesh.devices": "8"})
    assert [point.levers["mesh"] for point in points] == [axes.text(sizes) for sizes in axes.meshes(8)]
    assert len({point.point for point in points}) == 16
    assert all(point.arm == f"mesh={point.levers['mesh']}" for point in points)


def test_several_meshes_are_told_apart_by_a_semicolon():
    points = planned("hybrid", **{"mesh.devices": "4", "lever.mesh": "data=2,tensor=2; fsdp=4"})
    assert [point.levers["mesh"] for point in points] == ["data=2,tensor=2", "fsdp=4"]


def test_a_mesh_for_another_number_of_devices_is_refused_before_anything_runs():
    with pytest.raises(UserError, match="has 4 places for 8 devices"):
        planned("hybrid", **{"mesh.devices": "8", "lever.mesh": "data=2,tensor=2"})


def test_only_what_splits_the_batch_must_divide_it():
    assert planned("gpt", strategy="tensor", batch=3, **{"mesh.devices": "2"})[0].global_batch == 3
    with pytest.raises(UserError, match=r"--config.batch=3 does not divide over 2 devices: use 4"):
        planned("gpt", strategy="fsdp", batch=3, **{"mesh.devices": "2"})


def test_a_model_that_grows_keeps_its_batch_and_has_more_parameters():
    points = planned("tensor_parallel")
    assert {point.global_batch for point in points} == {8}
    config = config_of("tensor_parallel")
    config.lever.update({name: "none" for name in ("remat",)})
    sizes = {}
    for devices in (1, 2, 8):
        workload = build_workload(config, "tensor_parallel", grown=devices)
        sizes[devices] = sum(x.size for x in jax.tree.leaves(jax.eval_shape(workload.init, jax.random.PRNGKey(0))[0]))
        parallel.build("tensor", workload, jax.devices()[:devices])  # heads and hidden units divide
    assert sizes[1] < sizes[2] < sizes[8]


def test_a_model_that_cannot_grow_is_refused():
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
