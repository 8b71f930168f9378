# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Shared by the data-parallel strategies: each device has the whole state and a part of the batch."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel import draws, multihost
from jaxbench.parallel.program import Program, TrainState, create_state, gradients, jit_once, update
from jaxbench.workloads import sharding_context
from jaxbench.workloads.base import Batch, Metrics, TrainWorkload

AXIS = "data"
WRITTEN_OUT = "shard_map"  # the equivalent of the others with explicit collectives


def on_device(
    passes: Callable[..., Any], workload: TrainWorkload, state: TrainState, batch: Batch, **options: Any
) -> Any:
    """Runs `passes` on this device's examples with its own random key, inside a mapped function.

    passes: `program.forward` or `program.gradients`. options: further arguments of `passes`.
    """
    local = dataclasses.replace(state, key=draws.local_key(state.key, (AXIS,)))
    with sharding_context.over(axis=AXIS):
        return passes(workload, local, batch, **options)


def by_compiler(
    workload: TrainWorkload,
    devices: list[jax.Device],
    axis_type: AxisType,
    explained: AbstractContextManager[None] | None = None,
) -> Program:
    """The Program of a step written for the whole batch, in which the compiler places the communication.

    explained: a context in which the loss is traced, for example to turn errors into advice.
    """

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        with explained or contextlib.nullcontext(), sharding_context.over(parts=len(devices)):
            grads, model_state, metrics = gradients(workload, state, batch)
        return update(workload, state, grads, model_state), metrics

    return data_parallel(workload, data_mesh(devices, axis_type), step, whole_batch=True)


def data_parallel(workload: TrainWorkload, mesh: Mesh, step: Any, *, whole_batch: bool = False) -> Program:
    """The Program of `step`, with the state replicated over `mesh` and the batch split over its axis "data".

    whole_batch: the loss sees the whole batch, unless there are micro-batches.
    """
    by_parts = not whole_batch or (workload.micro_batches > 1 and mesh.size > 1)
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(AXIS))
    return Program(
        mesh=mesh,
        init=jit_once(lambda key: create_state(workload, key), out_shardings=whole),
        step=jax.jit(step, donate_argnums=0, out_shardings=(whole, whole)),
        state_sharding=whole,
        batch_sharding=split,
        put=lambda batch: multihost.put(batch, split),
        export=lambda state: state,
        load=lambda state: multihost.put(state, whole, may_alias=False),
        keys=draws.keys_of_parts(mesh.size) if by_parts else None,
    )
