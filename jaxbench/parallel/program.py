# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Program doorway: how a workload is spread over a mesh. Each strategy returns one of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.machine.start import run_once_options
from jaxbench.workloads.base import Batch, Metrics, PyTree, TrainWorkload


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """Everything a training step carries forward. In its *canonical* form no array has a device axis.

    step: int32 scalar. key: uint32 (2,), the run's random key; step i uses fold_in(key, i).
    """

    step: jax.Array
    params: PyTree
    model_state: PyTree
    opt_state: PyTree
    key: jax.Array


@dataclass(frozen=True, kw_only=True)
class Program:
    """A workload on a mesh.

    Attributes:
      mesh: trace and call `step` inside ``jax.set_mesh(mesh)``.
      init: key, uint32 (2,) -> state, born in `state_sharding` (never whole on one device first).
      step: jitted (state, batch) -> (state, metrics). The state is donated. Metrics are scalars over the global batch
        (or one equal copy per device).
      state_sharding, batch_sharding: trees (or prefixes) of shardings.
      put: a canonical batch, host or device, (global_batch, ...) -> the layout `step` takes, on the devices.
      export: state -> canonical TrainState (device or host arrays), the same whatever strategy and device count.
      load: canonical TrainState (host or device) -> state in this program's layout. Inverse of `export`.
    """

    mesh: Mesh
    init: Callable[[jax.Array], TrainState]
    step: Any
    state_sharding: PyTree
    batch_sharding: PyTree
    put: Callable[[Batch], Batch]
    export: Callable[[TrainState], TrainState]
    load: Callable[[TrainState], TrainState]


def create_state(workload: TrainWorkload, key: jax.Array) -> TrainState:
    """The canonical initial state. `key`: uint32 (2,)."""
    params, model_state = workload.init(jax.random.fold_in(key, 0))
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        model_state=model_state,
        opt_state=workload.optimizer.init(params),
        key=jax.random.fold_in(key, 1),
    )


def jit_once(function: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` for a program that runs a few times and is never timed."""
    return jax.jit(function, compiler_options=run_once_options(), **options)


def gradients(workload: TrainWorkload, state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
    """Forward and backward pass over the examples given. Returns (gradients, model_state, metrics with the loss)."""
    key = jax.random.fold_in(state.key, state.step)
    value_and_grad = jax.value_and_grad(workload.loss, has_aux=True)
    (loss, (model_state, metrics)), grads = value_and_grad(state.params, state.model_state, batch, key)
    return grads, model_state, {"loss": loss, **metrics}


def update(workload: TrainWorkload, state: TrainState, grads: PyTree, model_state: PyTree) -> TrainState:
    """The optimizer's step with gradients that are already averaged over the global batch."""
    updates, opt_state = workload.optimizer.update(grads, state.opt_state, state.params)
    params = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), state.params, updates)
    return TrainState(state.step + 1, params, model_state, opt_state, state.key)


def data_parallel(workload: TrainWorkload, mesh: Mesh, step: Any) -> Program:
    """A Program whose state is replicated over `mesh` and whose batch is split over its "data" axis."""
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    return Program(
        mesh=mesh,
        init=jit_once(lambda key: create_state(workload, key), out_shardings=whole),
        step=jax.jit(step, donate_argnums=0, out_shardings=(whole, whole)),
        state_sharding=whole,
        batch_sharding=split,
        put=lambda batch: jax.device_put(batch, split),
        export=lambda state: state,
        load=lambda state: jax.device_put(state, whole, may_alias=False),
    )


def mean_over(axis: str, tree: PyTree) -> PyTree:
    """Averages over a mesh axis, in shard_map or pmap; integers (counters, keys) are equal and pass through pmax."""
    return jax.tree.map(
        lambda x: jax.lax.pmean(x, axis) if jnp.issubdtype(x.dtype, jnp.inexact) else jax.lax.pmax(x, axis), tree
    )
