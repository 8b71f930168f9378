# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The differences of a bench on an accelerator, with CPU devices in its place."""

from __future__ import annotations

import types

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from thin import thin
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.analysis import points
from jaxbench.core import reference as references
from jaxbench.core import schema
from jaxbench.core.bench import Bench
from jaxbench.core.plan import Point
from jaxbench.machine import mesh


def point(devices, **changes):
    (arm,) = levers.arms(levers.defaults())
    about = {"strategy": "shard_map", "scaling": "strong", "oversubscribed": False, "platform": "cpu"}
    return Point(**{"point": "p", **about, "devices": devices, "global_batch": 16, "levers": arm.levers, **changes})


def bench(name, devices):
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=True)
    return Bench(config_lib.plain(config), name, devices, "w")


@pytest.fixture
def host(monkeypatch):
    """A CPU device that is not measured."""
    monkeypatch.setattr(mesh, "host_device", lambda: jax.devices()[5])
    return jax.devices()[5]


def test_no_accelerator_holds_the_whole_batch_while_it_is_drawn(host):
    mine = bench("mlp", jax.devices())
    expected = jax.device_get(mine.batch(point(4)))
    mine.devices = [types.SimpleNamespace(platform="gpu")]
    draw, places = mine._draw, set()

    def spied(*arguments):
        drawn = draw(*arguments)
        places.update(device for leaf in jax.tree.leaves(drawn) for device in leaf.devices())
        return drawn

    mine._draw = spied
    with jax.set_mesh(mesh.data_mesh(jax.devices()[:4], AxisType.Auto)):  # as the rounds draw it
        found = mine.batch(point(4))
    assert places == {host}
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def full(names):
    """A `references.reference` that runs out of memory on the named devices."""
    real = references.reference

    def reference(workload, state, batch, *, device, **options):
        if str(device) in names:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.")
        return real(workload, state, batch, device=device, **options)

    return reference


@pytest.mark.parametrize("name", thin(["mlp", "resnet18"], 1))
def test_an_answer_that_does_not_fit_one_device_is_the_hosts(name, host, monkeypatch):
    monkeypatch.setattr(references, "reference", full({str(jax.devices()[1])}))
    record = bench(name, jax.devices()[1:3]).prepare(point(2).to_json())
    found = {verdict.name: verdict for verdict in record.checks}
    assert all(verdict.ok for verdict in record.checks)
    assert "does not fit on one cpu, so the host computed it in float32" in found["parameters"].reason


@pytest.mark.full
def test_an_answer_that_nobody_can_give_leaves_a_point_unchecked(host, monkeypatch):
    monkeypatch.setattr(references, "reference", full({str(jax.devices()[1])}))
    monkeypatch.setattr(references, "HOST_FLOPS", 1.0)
    mine = bench("mlp", jax.devices()[1:3])
    record = mine.prepare(point(2).to_json())
    parameters, collectives, *_ = record.checks
    assert parameters.unchecked and not parameters.ok and "would take the host too long" in parameters.reason
    measured = mine.round("p", 0)
    assert collectives.ok and measured.block_s
    assert [(v.name, v.ok, v.unchecked) for v in measured.checks][-1] == ("timed update", False, True)
    about = points.PointLines(passports=[record])
    assert points.check(about) == (None, f"parameters: {parameters.reason}")
    assert not list(points.faults(record))
    assert schema.from_json(schema.to_json(record)) == record


def test_another_error_of_the_reference_is_a_failure(host):
    def broken(device):
        raise jax.errors.JaxRuntimeError("INTERNAL: no")

    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        references.where_it_fits(broken, jax.devices()[1], flops=1.0)


def test_the_host_itself_has_nothing_to_fall_back_on(host):
    def small(device):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.")

    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        references.where_it_fits(small, host, flops=1.0)
