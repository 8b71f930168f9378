# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jit` with automatic sharding: the compiler finds and places the gradient's all-reduce.

The step is written for the whole batch. The batch comes in split over "data" and the state replicated; XLA's
partitioner sees that a replicated parameter's gradient from a split batch is a sum over devices.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.program import Program, TrainState, data_parallel, gradients, update
from jaxbench.workloads import sharding_context
from jaxbench.workloads.base import Batch, Metrics, TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`."""

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        with sharding_context.over(parts=len(devices)):
            grads, model_state, metrics = gradients(workload, state, batch)
        return update(workload, state, grads, model_state), metrics

    return data_parallel(workload, data_mesh(devices, AxisType.Auto), step, whole_batch=True)
