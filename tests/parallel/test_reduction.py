# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every gradient reduction gives the mean, moves the expected bytes, and is refused if impossible."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, PartitionSpec
from strategy_cases import BATCH, assert_right, verdicts
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench.errors import UserError
from jaxbench.levers import REDUCTION, REDUCTIONS
from jaxbench.machine.mesh import data_mesh
from jaxbench.measure.arm import build_program
from jaxbench.parallel import data_parallel

WORDS = REDUCTION.values[1:]


def averaged(tree, way, dtype=None, devices=8):
    """`tree`: leaves with a leading device axis; returns what each device has afterwards, along that axis."""
    split = PartitionSpec("data")

    def local(tree):
        means = data_parallel.reduced_mean(jax.tree.map(lambda x: x[0], tree), "data", way, dtype)
        return jax.tree.map(lambda x: x[None], means)

    mesh = data_mesh(jax.devices()[:devices], AxisType.Auto)
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=split, check_vma=False))(tree)


@pytest.mark.parametrize("devices", thin([3, 1, 2, 8], 1))
@pytest.mark.parametrize("way", REDUCTIONS)
def test_every_device_gets_the_mean(way, devices, monkeypatch):
    monkeypatch.setattr(data_parallel, "BUCKET_BYTES", 64)
    keys = jax.random.split(KEY, 4)
    shapes = {"a": (5, 3), "b": (), "c": (17,), "d": (2, 2)}
    tree = {
        name: jax.random.normal(k, (devices, *shape)) for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    tree["d"] = tree["d"].astype(jnp.bfloat16)
    found = averaged(tree, way, devices=devices)
    for name, x in tree.items():
        assert found[name].dtype == x.dtype
        expected = np.broadcast_to(np.float32(x).mean(axis=0), x.shape)
        np.testing.assert_allclose(np.float32(found[name]), expected, rtol=1e-5, atol=2e-2 if name == "d" else 1e-6)


def test_bfloat16_is_what_travels():
    x = {"x": jnp.full((8, 4), 1 + 2.0**-10)}  # which bfloat16 rounds to 1
    assert float(averaged(x, "fused", "bfloat16")["x"][0, 0]) == 1
    assert float(averaged(x, "fused")["x"][0, 0]) > 1


@functools.cache
def case():
    workload = experiment_workload("mlp")
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


@pytest.mark.parametrize("devices", thin([8, 1], 1))
@pytest.mark.parametrize("words", thin(WORDS, WORDS[::2]))
def test_same_parameters_and_expected_communication(words, devices):
    workload = experiment_workload("mlp", **{"lever.reduction": words})
    program = build_program(workload, "shard_map", jax.devices()[:devices], {"reduction": words})
    report = assert_right(workload, program, case()[1])
    assert report.collectives or devices == 1


@functools.cache
def frozen_case():
    """A model that updates only its weights: gradients of its biases are not computed."""

    def labels(params):
        return jax.tree.map(lambda x: "trained" if x.ndim > 1 else "set", params)

    optimizer = optax.multi_transform({"trained": optax.sgd(0.1), "set": optax.set_to_zero()}, labels)
    workload = dataclasses.replace(experiment_workload("mlp"), optimizer=optimizer)
    return workload, one_device(workload, workload.synthetic(KEY, BATCH))


@pytest.mark.parametrize("words", thin([*WORDS], 1))
def test_gradients_that_the_optimizer_leaves_out_need_not_travel(words, monkeypatch):
    monkeypatch.setattr(data_parallel, "BUCKET_BYTES", 64)
    workload, reference = frozen_case()
    program = build_program(workload, "shard_map", jax.devices()[:2], {"reduction": words})
    assert_right(workload, program, reference)


def test_a_ring_takes_its_steps():
    workload = case()[0]
    for words, kind, count in [("ring", "collective-permute", 14), ("scatter", "reduce-scatter", 1)]:
        report = verdicts(workload, data_parallel.build_reduction(workload, jax.devices(), words), case()[1])[2]
        assert {c.kind: c.count for c in report.collectives}[kind] == count


def test_another_strategy_has_its_own_reduction():
    with pytest.raises(UserError, match="reduction=ring .* use --config.strategy=shard_map"):
        build_program(case()[0], "jit_auto", jax.devices()[:2], {"reduction": "ring"})
