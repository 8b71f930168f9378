# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Wrong strategies: data parallelism with one fault in its communication."""

import dataclasses

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import data_parallel
from jaxbench.parallel.step import gradients, mean_over, update
from jaxbench.workloads import sharding_context

FAULTS = ("dropped", "doubled", "stray")


def build(workload, devices, fault):
    """dropped: the smallest gradient is not averaged. doubled: each is summed again, as its square, for nothing. stray:
    one device's gradients are gathered by all, for nothing."""
    mesh = data_mesh(devices, AxisType.Auto)

    def averaged(grads):
        smallest = min(leaf.size for leaf in jax.tree.leaves(grads))
        return jax.tree.map(lambda g: one(g, g.size == smallest), grads)

    def one(g, smallest):
        if fault == "dropped" and smallest:
            return g
        mean = jax.lax.pmean(g, "data")
        if fault == "doubled":
            return mean + 0 * jax.lax.pmean(g * g, "data")
        return mean + 0 * jnp.sum(jax.lax.all_gather(g, "data"), axis=0) if fault == "stray" else mean

    def step(state, batch):
        local = dataclasses.replace(state, key=jax.random.fold_in(state.key, jax.lax.axis_index("data")))
        with sharding_context.over(axis="data"):
            grads, model_state, metrics = gradients(workload, local, batch)
        model_state, metrics = mean_over("data", (model_state, metrics))
        return update(workload, state, averaged(grads), model_state), metrics

    specs = PartitionSpec(), PartitionSpec("data")
    run = jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(), check_vma=False)
    return data_parallel(workload, mesh, run)
