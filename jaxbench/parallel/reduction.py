# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Several ways to average gradients over devices: the same sum with different communication.

    each      an all-reduce for each array; XLA may combine them
    fused     one all-reduce of all arrays, concatenated
    bucketed  all-reduces of some MiB each, the last layers' first, because their gradients are ready first (as PyTorch)
    scatter   a reduce-scatter, then an all-gather
    ring      both written out as n - 1 steps from neighbour to neighbour (Patarasuk and Yuan, 2009)

In each way a device sends 2 (n - 1) / n of the gradient's bytes. In bfloat16 it sends half, and each sum is rounded to
8 bits. XLA's CPU compiler widens bfloat16 to float32 again, and sends as much as before.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel import flat_shards, optimizer_need
from jaxbench.parallel.data_parallel import AXIS, data_parallel, on_device
from jaxbench.parallel.layout import canonical_avals
from jaxbench.parallel.program import Program, TrainState, gradients, mean_over, update
from jaxbench.workloads.base import Batch, CollectiveBounds, Metrics, PyTree, TrainWorkload

BUCKET_BYTES = 4 * 2**20


def build(workload: TrainWorkload, devices: list[jax.Device], way: str, dtype: str | None = None) -> Program:
    """Data parallelism as in the strategy shard_map, with gradients averaged in another `way`.

    Type checking is off, because the checker cannot know that the result of a ring is equal on all devices.
    """
    mesh = data_mesh(devices, AxisType.Auto)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        grads, model_state, metrics = on_device(gradients, workload, state, batch)
        model_state, metrics = mean_over(AXIS, (model_state, metrics))
        return update(workload, state, mean(grads, AXIS, way, dtype), model_state), metrics

    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(whole, split), out_specs=(whole, whole), check_vma=False)
    bounds = expected(workload, way, len(devices), dtype)
    widest = jnp.dtype(dtype).itemsize if dtype and devices[0].platform != "cpu" else 4
    return dataclasses.replace(data_parallel(workload, mesh, step), expected=lambda _: bounds, widest=widest)


def mean(grads: PyTree, axis: str, way: str, dtype: Any = None) -> PyTree:
    """The mean over `axis` of floating-point arrays that differ from device to device, inside an unchecked shard_map.

    way: one of `levers.REDUCTIONS`. dtype: of the sums and of the transfers; None: each array's own.
    """
    leaves, tree = jax.tree.flatten(grads)
    sent = [leaf.astype(dtype) if dtype is not None else leaf for leaf in leaves]
    reduced: list[Any] = [None] * len(sent)
    for group in _groups(sent, way):
        flat = jnp.concatenate([sent[i].reshape(-1) for i in group])
        total = _SUMS[way](flat, axis)
        ends = np.cumsum([sent[i].size for i in group])[:-1]
        for i, part in zip(group, jnp.split(total, ends), strict=True):
            reduced[i] = part.reshape(sent[i].shape)
    count = jax.lax.axis_size(axis)
    means = [(x.astype(leaf.dtype) / count) for x, leaf in zip(reduced, leaves, strict=True)]
    return jax.tree.unflatten(tree, means)


def _groups(leaves: Sequence[jax.Array | jax.ShapeDtypeStruct], way: str) -> list[list[int]]:
    """The indices of arrays that travel together. A group has one dtype, a bucket up to BUCKET_BYTES or one array."""
    if way == "each":
        return [[i] for i in range(len(leaves))]
    groups: list[list[int]] = []
    for dtype in dict.fromkeys(leaf.dtype for leaf in leaves):
        size_so_far = math.inf
        for i in reversed([i for i, leaf in enumerate(leaves) if leaf.dtype == dtype]):
            size = leaves[i].size * dtype.itemsize
            if size_so_far == math.inf or (way == "bucketed" and size_so_far + size > BUCKET_BYTES):
                groups.append([])
                size_so_far = 0
            groups[-1].append(i)
            size_so_far += size
    return groups


def _scatter(x: jax.Array, axis: str) -> jax.Array:
    chunks = _chunks(x, axis)
    own = jax.lax.psum_scatter(chunks, axis)
    return jax.lax.all_gather(own, axis).reshape(-1)[: x.size]


def _ring(x: jax.Array, axis: str) -> jax.Array:
    """A ring all-reduce.

    Step s of the first half passes on the partial sum of chunk (me - s). After n - 1 steps a device holds the whole sum
    of chunk (me + 1). The second half passes these sums around the ring.
    """
    chunks, count, me = _chunks(x, axis), jax.lax.axis_size(axis), jax.lax.axis_index(axis)
    pairs = [(i, (i + 1) % count) for i in range(count)]

    def chunk(number: Any) -> jax.Array:
        return jax.lax.dynamic_index_in_dim(chunks, number % count, keepdims=False)

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
    return flat_shards.cut(x, count).reshape(count, -1)


_SUMS: dict[str, Callable[[jax.Array, str], jax.Array]] = {
    "each": jax.lax.psum,
    "fused": jax.lax.psum,
    "bucketed": jax.lax.psum,
    "scatter": _scatter,
    "ring": _ring,
}


def expected(workload: TrainWorkload, way: str, devices: int, dtype: Any = None) -> CollectiveBounds:
    """The expected communication, as in `Program.expected`: numbers, with padding.

    A group travels as a whole or not at all. It may be left out if the optimizer uses none of its gradients.
    """
    if devices == 1:
        return {}
    canonical = canonical_avals(workload)
    unused = optimizer_need.unused_gradients(workload, canonical)
    leaves = [jax.ShapeDtypeStruct(p.shape, jnp.dtype(dtype or p.dtype)) for p in jax.tree.leaves(canonical.params)]
    numbers: dict[str, tuple[int, int]] = {}
    for group in _groups(leaves, way):
        size = sum(leaves[i].size for i in group)
        padded = flat_shards.padded(size, devices)
        for kind, amount in {
            "scatter": {"reduce-scatter": padded // devices, "all-gather": padded},
            "ring": {"collective-permute": 2 * (devices - 1) * padded // devices},
        }.get(way, {"all-reduce": size}).items():
            least, most = numbers.get(kind, (0, 0))
            numbers[kind] = least + (0 if unused.issuperset(group) else amount), most + amount
    return numbers
