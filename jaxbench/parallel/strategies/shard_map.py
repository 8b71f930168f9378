# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jax.shard_map`: a per-device program that averages its own gradients.

Type checking is off. With it a replicated parameter is *invariant* over the mesh, and the gradient of an invariant
input is already summed over devices. Averaging that sum again would scale the update by the device count, although the
first loss would be right. Also, a loop that starts with zeros, as in most recurrent networks, would be a type error.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType, PartitionSpec

from jaxbench.core.program import Program, TrainState, gradients, mean_over, update
from jaxbench.core.workload import Batch, Metrics, TrainWorkload
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import AXIS, data_parallel, on_device

WRITTEN_OUT = "shard_map"  # this strategy itself


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`."""
    mesh = data_mesh(devices, AxisType.Auto)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        grads, model_state, metrics = mean_over(AXIS, on_device(gradients, workload, state, batch))
        return update(workload, state, grads, model_state), metrics

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(whole, split), out_specs=(whole, whole), check_vma=False)
    return data_parallel(workload, mesh, step)
