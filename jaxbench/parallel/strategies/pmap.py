# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jax.pmap`: the classic form, with an explicit leading device axis on every array.

Since JAX 0.8 pmap is built on `jit(shard_map)`, so it runs the same algorithm. The differences are the wrapper, the
stacked layout of the state, and the cost of creating it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.workload import Batch, Scalars, TrainWorkload
from jaxbench.parallel import multihost
from jaxbench.parallel.data_parallel import AXIS, on_device
from jaxbench.parallel.step import create_state, gradients, jit_initial, mean_over, update
from jaxbench.workloads import rng_keys

T = TypeVar("T")
WRITTEN_OUT = "shard_map"  # the same function per device; a pmapped step cannot be traced without lowering it


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`; state and batch arrays have a leading axis of that length."""
    count = len(devices)
    # In list order: pmap rejects a mesh order in which a host's devices are not neighbours.
    mesh = Mesh(np.array(devices), (AXIS,), axis_types=(AxisType.Auto,))
    stacked = NamedSharding(mesh, PartitionSpec(AXIS))

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Scalars]:
        grads, model_state, metrics = mean_over(AXIS, on_device(gradients, workload, state, batch))
        return update(workload, state, grads, model_state), metrics

    def stack(tree: T, library: ModuleType = jnp) -> T:
        return jax.tree.map(lambda x: library.broadcast_to(x, (count, *x.shape)), tree)

    return Program(
        mesh=mesh,
        init=jit_initial(lambda key: stack(create_state(workload, key)), out_shardings=stacked),
        step=_lowered_from_shapes(jax.pmap(step, axis_name=AXIS, donate_argnums=0, devices=devices)),
        state_sharding=stacked,
        batch_sharding=stacked,
        put=lambda batch: multihost.put(
            jax.tree.map(lambda x: x.reshape(count, x.shape[0] // count, *x.shape[1:]), batch), stacked
        ),
        # Every device holds an equal copy, so the first one of this process is enough.
        export=lambda state: jax.tree.map(lambda x: np.asarray(x.addressable_shards[0].data)[0], state),
        load=lambda state: multihost.put(stack(jax.device_get(state), np), stacked, may_alias=False),
        keys=rng_keys.keys_of_parts(count),
    )


def _lowered_from_shapes(mapped: Any) -> Any:
    """A wrapper that lowers `mapped` from abstract values."""
    # With several processes, pmap takes an argument for the part of one process, unless it is an array that spans all
    # processes, as here, or an abstract value.
    lower = mapped.lower

    def from_shapes(*args: object) -> jax.stages.Lowered:
        return lower(*jax.tree.map(lambda x: jax.core.ShapedArray(x.shape, x.dtype), args))

    mapped.lower = from_shapes
    return mapped
