# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jax.shard_map`: a per-device program that averages its own gradients.

Type checking is off. With it a replicated parameter is *invariant* over the mesh, and the gradient of an invariant
input is already summed over devices. Averaging that sum again would scale the update by the device count, although the
first loss would be right. Also, a loop that starts with zeros, as in most recurrent networks, would be a type error.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.workload import Batch, Scalars, TrainWorkload
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import AXIS, data_parallel, on_device
from jaxbench.parallel.step import gradients, mean_over, update

# The strategy with the same communication written as explicit collectives, which ablations can remove: this one itself.
WRITTEN_OUT = "shard_map"


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`: each has the whole state and an equal part of the batch."""
    mesh = data_mesh(devices, AxisType.Auto)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Scalars]:
        # The only communication: all-reduces of the gradients, the batch statistics and the metrics.
        grads, model_state, metrics = mean_over(AXIS, on_device(gradients, workload, state, batch))
        return update(workload, state, grads, model_state), metrics

    replicated, split = PartitionSpec(), PartitionSpec(AXIS)
    step = jax.shard_map(
        local_step, mesh=mesh, in_specs=(replicated, split), out_specs=(replicated, replicated), check_vma=False
    )
    return data_parallel(workload, mesh, step)
