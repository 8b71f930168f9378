# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism: each device has the whole state and a part of the batch.

The ways to average gradients are the same sum with different communication:

    each      an all-reduce for each array; XLA may combine them
    fused     one all-reduce of all arrays, concatenated
    bucketed  all-reduces of some MiB each, the last layers' first, because their gradients are ready first (as PyTorch)
    scatter   a reduce-scatter, then an all-gather
    ring      both written out as n - 1 steps from neighbour to neighbour (Patarasuk and Yuan, 2009)

In each way a device sends 2 (n - 1) / n of the gradient's bytes. In bfloat16 it sends half, and each sum is rounded to
8 bits. XLA's CPU compiler widens bfloat16 to float32 again, and sends as much as before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, CollectiveBounds, Scalars, TrainWorkload
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel import multihost
from jaxbench.parallel.layout import canonical_avals, flattened, padded
from jaxbench.parallel.optimizer import unused_gradients
from jaxbench.parallel.step import create_state, gradients, jit_initial, mean_over, update
from jaxbench.workloads import rng_keys, sharding_context

T = TypeVar("T")
AXIS = "data"
WRITTEN_OUT = "shard_map"  # the equivalent of the others with explicit collectives
BUCKET_BYTES = 4 * 2**20  # PyTorch's 25 MiB would put most of this package's models into one bucket


def on_device(passes: Callable[..., T], workload: TrainWorkload, state: TrainState, batch: Batch, **options: Any) -> T:
    """Runs `passes` on this device's examples with its own random key, inside a mapped function.

    passes: `program.forward` or `program.gradients`. options: further arguments of `passes`.
    """
    # One key for all devices would drop the same units in every part of the batch.
    local = dataclasses.replace(state, key=rng_keys.local_key(state.key, (AXIS,)))
    with sharding_context.over(axis=AXIS):
        return passes(workload, local, batch, **options)


def by_compiler(
    workload: TrainWorkload,
    devices: list[jax.Device],
    axis_type: AxisType,
    tracing: AbstractContextManager[None] | None = None,
) -> Program:
    """The Program of a step written for the whole batch, in which the compiler places the communication.

    tracing: a context in which the loss is traced, for example to turn errors into advice.
    """

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Scalars]:
        with tracing or contextlib.nullcontext(), sharding_context.over(parts=len(devices)):
            grads, model_state, metrics = gradients(workload, state, batch)
        return update(workload, state, grads, model_state), metrics

    # Micro-batches are split by device even here: see `_in_micro_batches` of step.py.
    return data_parallel(workload, data_mesh(devices, axis_type), step, whole_batch=True)


def data_parallel(
    workload: TrainWorkload,
    mesh: Mesh,
    step: Callable[[TrainState, Batch], tuple[TrainState, ArrayTree]],
    *,
    whole_batch: bool = False,
) -> Program:
    """The Program of `step`, with the state replicated over `mesh` and the batch split over its axis "data".

    whole_batch: the loss sees the whole batch, unless there are micro-batches.
    """
    # A loss that sees one device's part draws from that device's key. The reference must draw in the same way.
    by_parts = not whole_batch or (workload.micro_batches > 1 and mesh.size > 1)
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(AXIS))
    return Program(
        mesh=mesh,
        init=jit_initial(lambda key: create_state(workload, key), out_shardings=whole),
        step=jax.jit(step, donate_argnums=0, out_shardings=(whole, whole)),
        state_sharding=whole,
        batch_sharding=split,
        put=lambda batch: multihost.put(batch, split),
        # No shared memory: the step donates its state, and would overwrite the caller's arrays.
        load=lambda state: multihost.put(state, whole, may_alias=False),
        keys=rng_keys.keys_of_parts(mesh.size) if by_parts else None,
    )


def build_reduction(workload: TrainWorkload, devices: list[jax.Device], way: str, dtype: str | None = None) -> Program:
    """Data parallelism as in the strategy shard_map, with gradients averaged in another `way`."""
    mesh = data_mesh(devices, AxisType.Auto)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Scalars]:
        grads, model_state, metrics = on_device(gradients, workload, state, batch)
        # Not by the chosen way: batch statistics and metrics are few numbers, and would blur what the ways differ in.
        model_state, metrics = mean_over(AXIS, (model_state, metrics))
        return update(workload, state, reduced_mean(grads, AXIS, way, dtype), model_state), metrics

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    # Type checking is off, because the checker cannot know that the result of a ring is equal on all devices.
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(whole, split), out_specs=(whole, whole), check_vma=False)
    bounds = expected_reduction(workload, way, len(devices), dtype)
    widest = jnp.dtype(dtype).itemsize if dtype and devices[0].platform != "cpu" else 4  # a CPU widens 16 bits to 32
    return dataclasses.replace(data_parallel(workload, mesh, step), expected=lambda _: bounds, widest=widest)


def reduced_mean(grads: T, axis: str, way: str, dtype: DTypeLike | None = None) -> T:
    """The mean over `axis` of floating-point arrays that differ from device to device, inside an unchecked shard_map.

    way: one of `levers.reduction.WAYS`. dtype: of the sums and of the transfers; None: each array's own.
    """
    leaves, tree = jax.tree.flatten(grads)
    sent = [leaf.astype(dtype) if dtype is not None else leaf for leaf in leaves]
    reduced: dict[int, jax.Array] = {}
    all_reduce = _scatter if way == "scatter" else _ring if way == "ring" else jax.lax.psum
    for group in _groups(sent, way):
        flat = jnp.concatenate([sent[i].reshape(-1) for i in group])  # a copy: the price of fewer messages
        total = all_reduce(flat, axis)
        ends = np.cumsum([sent[i].size for i in group])[:-1]
        for i, part in zip(group, jnp.split(total, ends), strict=True):
            reduced[i] = part.reshape(sent[i].shape)
    count = jax.lax.axis_size(axis)
    # Divided after the cast: in 16 bits the division would round once more.
    means = [reduced[i].astype(leaf.dtype) / count for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, means)


def _groups(leaves: Sequence[jax.Array | jax.ShapeDtypeStruct], way: str) -> list[list[int]]:
    """The indices of arrays that travel together. A group has one dtype, a bucket up to BUCKET_BYTES or one array."""
    if way == "each":
        return [[i] for i in range(len(leaves))]
    groups: list[list[int]] = []
    for dtype in dict.fromkeys(leaf.dtype for leaf in leaves):
        size_so_far = math.inf
        # Reversed: the backward pass computes the gradients of the last layers first.
        for i in reversed([i for i, leaf in enumerate(leaves) if leaf.dtype == dtype]):
            size = leaves[i].size * dtype.itemsize
            if size_so_far == math.inf or (way == "bucketed" and size_so_far + size > BUCKET_BYTES):
                groups.append([])
                size_so_far = 0
            groups[-1].append(i)
            size_so_far += size
    return groups


def _scatter(x: jax.Array, axis: str) -> jax.Array:
    """An all-reduce as a reduce-scatter and an all-gather."""
    chunks = _chunks(x, axis)  # padded: a reduce-scatter needs equal parts
    own = jax.lax.psum_scatter(chunks, axis)
    return jax.lax.all_gather(own, axis).reshape(-1)[: x.size]


def _ring(x: jax.Array, axis: str) -> jax.Array:
    """A ring all-reduce."""
    chunks, count, me = _chunks(x, axis), jax.lax.axis_size(axis), jax.lax.axis_index(axis)
    pairs = [(i, (i + 1) % count) for i in range(count)]

    def chunk(number: jax.Array | int) -> jax.Array:
        return jax.lax.dynamic_index_in_dim(chunks, number % count, keepdims=False)

    # Step s of the first half passes on the partial sum of chunk (me - s). After n - 1 steps a device holds the whole
    # sum of chunk (me + 1). The second half passes these sums around the ring.
    partial_sum = chunk(me)
    for s in range(count - 1):
        partial_sum = jax.lax.ppermute(partial_sum, axis, pairs) + chunk(me - s - 1)
    out = jax.lax.dynamic_update_index_in_dim(chunks, partial_sum, (me + 1) % count, 0)
    for s in range(count - 1):
        partial_sum = jax.lax.ppermute(partial_sum, axis, pairs)
        out = jax.lax.dynamic_update_index_in_dim(out, partial_sum, (me - s) % count, 0)
    return out.reshape(-1)[: x.size]


def _chunks(x: jax.Array, axis: str) -> jax.Array:
    """(elements,) as (n, elements / n), padded with zeros."""
    count = jax.lax.axis_size(axis)
    return flattened(x, count).reshape(count, -1)


def expected_reduction(
    workload: TrainWorkload, way: str, devices: int, dtype: DTypeLike | None = None
) -> CollectiveBounds:
    """The expected communication, as in `Program.expected`: numbers, with padding."""
    if devices == 1:
        return {}  # XLA removes collectives of one device
    canonical = canonical_avals(workload)
    unused = unused_gradients(workload, canonical)
    leaves = [jax.ShapeDtypeStruct(p.shape, jnp.dtype(dtype or p.dtype)) for p in jax.tree.leaves(canonical.params)]
    numbers: dict[str, tuple[int, int]] = {}
    for group in _groups(leaves, way):
        size = sum(leaves[i].size for i in group)
        whole = padded(size, devices)
        for kind, amount in {
            "scatter": {"reduce-scatter": whole // devices, "all-gather": whole},
            "ring": {"collective-permute": 2 * (devices - 1) * whole // devices},
        }.get(way, {"all-reduce": size}).items():
            least, most = numbers.get(kind, (0, 0))
            # A group travels as a whole or not at all: not, if the optimizer uses none of its gradients.
            numbers[kind] = least + (0 if unused.issuperset(group) else amount), most + amount
    return numbers
