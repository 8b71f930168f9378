# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A wrong strategy that looks right: a pmap body in shard_map, where the gradient is already a sum."""

import jax
from jax.sharding import AxisType, PartitionSpec

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import data_parallel
from jaxbench.parallel.step import gradients, mean_over, update

AXIS = "data"


def build(workload, devices):
    mesh = data_mesh(devices, AxisType.Auto)

    def step(state, batch):
        grads, model_state, metrics = gradients(workload, state, batch)
        grads = jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)
        return update(workload, state, grads, model_state), mean_over("data", metrics)

    specs = PartitionSpec(), PartitionSpec("data")
    return data_parallel(workload, mesh, jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=PartitionSpec()))
