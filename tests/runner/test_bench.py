# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a bench does differently on an accelerator, with CPU devices that stand in for one."""

from __future__ import annotations

import types

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from workload_cases import TINY

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.machine import mesh
from jaxbench.runner.bench import Bench
from jaxbench.runner.plan import Point


def point(devices, **changes):
    (arm,) = levers.arms(levers.defaults())
    about = {"strategy": "shard_map", "scaling": "strong", "oversubscribed": False, "platform": "cpu"}
    return Point(**{"point": "p", **about, "devices": devices, "global_batch": 16, "levers": arm.levers, **changes})


def bench(name, devices):
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=True)
    return Bench(config_lib.plain(config), name, devices, "w")


@pytest.fixture
def host(monkeypatch):
    """A CPU device that is none of those measured."""
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
    with jax.set_mesh(mesh.data_mesh(jax.devices()[:4], AxisType.Auto)):  # where rounds draw it
        found = mine.batch(point(4))
    assert places == {host}
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
