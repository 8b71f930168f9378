# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mesh may order its devices differently from the list: no program may rely on the order of the list."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from strategy_cases import BATCH
from thin import KINDS, thin
from workload_cases import KEY, linear_workload, one_device

from jaxbench import parallel
from jaxbench.machine import mesh
from jaxbench.measure import check
from jaxbench.parallel import collectives
from jaxbench.workloads.cases import CollectiveWorkload


@pytest.fixture(autouse=True)
def shuffled(monkeypatch):
    """The devices of a process that report a grid, and an order of it."""
    monkeypatch.setattr(
        mesh, "torus_order", lambda where, shape: list(np.random.default_rng(0).permutation(len(where)))
    )
    device = type(jax.devices()[0])
    monkeypatch.setattr(device, "coords", (0, 0, 0), raising=False)
    monkeypatch.setattr(device, "core_on_chip", 0, raising=False)


@pytest.mark.parametrize("strategy", thin(parallel.of_any_model(), KINDS))
def test_every_strategy_is_right_in_any_order(strategy):
    workload, devices = linear_workload(), jax.devices()
    batch = workload.synthetic(KEY, BATCH)
    program = parallel.build(strategy, workload, devices)
    assert (list(program.mesh.devices.flat) == devices) == (strategy == "pmap")  # it accepts only the order of the list
    verdict = check.judge(check.train(program, program.step, KEY, batch), one_device(workload, batch), workload)
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "ppermute"])
def test_every_collective_is_right_in_any_order(op):
    workload = CollectiveWorkload(op=op, dtype="float32", payload_bytes=4096)
    chain = collectives.build(workload, jax.devices(), (2, 4), "y")
    state, batch = chain.draw(0)
    with jax.set_mesh(chain.mesh):
        state, _ = jax.jit(chain.step)(state, batch)
    assert chain.wrong(state, 0) == 0
