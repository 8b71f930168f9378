# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Wrong strategies that pass the check of the first updates, or skip the work in the timed region."""

import dataclasses

import jax
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench import parallel
from jaxbench.parallel import step_phases

FAULTS = ("skips", "counts", "tires", "forgets", "idle", "replicates")


def build(workload, devices, fault):
    """skips: after three updates the step returns the state that it was given. counts: it counts, and does no more.
    tires: the same after 30 updates. forgets: of a part of the step, which counts its calls in a parameter's last bits,
    and after three has no loss.
    idle: one of the devices has nothing to do. replicates: each device does all the work."""
    if fault == "idle":
        return parallel.build("shard_map", workload, devices[:1])
    if fault == "replicates":
        return _replicated(workload, devices)
    if fault == "forgets":
        return _forgetful(workload, devices)
    right = parallel.build("shard_map", workload, devices)

    def step(state, batch):
        def lie(state):
            _, metrics = jax.eval_shape(right.step, state, batch)
            unmeasured = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), metrics)
            return (state if fault == "skips" else dataclasses.replace(state, step=state.step + 1)), unmeasured

        last = 30 if fault == "tires" else 3
        return jax.lax.cond(state.step < last, lambda state: right.step(state, batch), lie, state)

    whole = right.state_sharding
    return dataclasses.replace(right, step=jax.jit(step, donate_argnums=0, out_shardings=(whole, whole)))


def _forgetful(workload, devices):
    right = step_phases.build_phases(workload, devices, "forward")

    def step(state, batch):
        def nothing(state):
            _, outputs = jax.eval_shape(right.step, state, batch)
            return state, jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), outputs)

        seen = state.params["b"][0] >= 3e-30
        state, outputs = jax.lax.cond(seen, nothing, lambda state: right.step(state, batch), state)
        counted = {**state.params, "b": state.params["b"] + 1e-30}
        return dataclasses.replace(state, params=counted), outputs

    return dataclasses.replace(right, step=jax.jit(step, donate_argnums=0))


def _replicated(workload, devices):
    """Results are right, and the strategy declares that no communication is expected."""
    right = parallel.build("jit_auto", workload, devices)
    whole = NamedSharding(right.mesh, PartitionSpec())
    return dataclasses.replace(
        right, batch_sharding=whole, put=lambda batch: jax.device_put(batch, whole), expected=lambda _: {}
    )
