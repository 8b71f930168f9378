# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jit` with explicit sharding: the sharding is part of each array's type while tracing.

The same mathematics as `jit_auto`; an operation whose result could be laid out in more than one way is an error at
trace time instead of the compiler's choice.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.program import Program, TrainState, data_parallel, gradients, update
from jaxbench.workloads import spread
from jaxbench.workloads.base import Batch, Metrics, TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`."""

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        with spread.over(parts=len(devices)):
            grads, model_state, metrics = gradients(workload, state, batch)
        return update(workload, state, grads, model_state), metrics

    return data_parallel(workload, data_mesh(devices, AxisType.Explicit), step, whole_batch=True)
