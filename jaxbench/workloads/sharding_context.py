# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the examples, positions and parameters of a loss are distributed over devices.

A loss is independent of devices, but a few layers are not. For example, batch normalization computes the statistics of
each device's examples differently under `jit`, where the loss sees the whole batch, and under `shard_map`, where it
sees one device's part. Tensor-parallel layers are another example. The code that traces a loss sets the context, and
layers read it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.sharding import PartitionSpec

from jaxbench.errors import UserError


@dataclass(frozen=True)
class ShardingContext:
    """The distribution of a batch and a model over devices. At most one of `parts` and `axis` is set.

    parts: number of equal, contiguous parts of the given batch, one for each device.
    axis: the mapped axis, or axes, over which other devices have the rest of the batch; None: the batch is whole.
    tensor: mapped axis that splits heads, hidden units and vocabulary: a layer is given its device's parameters.
    sequence: whether positions are split over `tensor` between the tensor-parallel products.
    context: mapped axis that splits positions everywhere, in the order of `own_positions`.
    ulysses: whether attention exchanges positions for heads over `context`; otherwise keys and values travel.
    expert: mapped axis that splits the experts of a mixture.
    """

    parts: int = 1
    axis: str | tuple[str, ...] | None = None
    tensor: str | None = None
    sequence: bool = False
    context: str | None = None
    ulysses: bool = False
    expert: str | None = None


WHOLE = ShardingContext()
# A variable of the context, not an argument: the layers of any library read it, and their signatures are not ours.
_current: ContextVar[ShardingContext] = ContextVar("sharding_context", default=WHOLE)


def current() -> ShardingContext:
    """The context of the trace that the caller is part of."""
    return _current.get()


@contextlib.contextmanager
def over(**fields: Any) -> Iterator[None]:
    """Sets the context for code that is traced inside. fields: of `ShardingContext`."""
    token = _current.set(ShardingContext(**fields))
    try:
        yield
    finally:
        _current.reset(token)


def varies(x: Any) -> frozenset[str]:
    """The mapped axes along which the devices have different values of an array, or of an aval."""
    return (x if isinstance(x, ShapedArray) else jax.typeof(x)).manual_axis_type.varying


_gathered_sizes: ContextVar[list[int] | None] = ContextVar("gathered", default=None)


def gathered(x: jax.Array) -> jax.Array:
    """(examples given, ...) -> (examples of the global batch, ...), in the batch's order."""
    # A loss that compares examples calls this. On one device's part it is an all-gather. The gradient of that is a
    # reduce-scatter, which returns to each device the gradient of its examples from the losses of all devices.
    axis, recorded = current().axis, _gathered_sizes.get()
    if recorded is not None:
        recorded.append(x.size)  # what the expected communication of a contrastive loss is made of
    if axis is not None:
        return jax.lax.all_gather(x, axis, tiled=True)
    # Explicit sharding has no product of two arrays split over the same axis, so one of them must be replicated.
    return jax.sharding.reshard(x, PartitionSpec()) if any(jax.typeof(x).sharding.spec) else x


def first(x: jax.Array) -> jax.Array | int:
    """The index in the global batch of the first example of `x`, (examples given, ...)."""
    axis = current().axis
    return 0 if axis is None else jax.lax.axis_index(axis) * x.shape[0]


@contextlib.contextmanager
def recorded_sizes() -> Iterator[list[int]]:
    """Collects the size of each array that a loss gathers. Trace the loss inside this context."""
    sizes: list[int] = []
    token = _gathered_sizes.set(sizes)
    try:
        yield sizes
    finally:
        _gathered_sizes.reset(token)


def require_even_positions(positions: int, *, context: int = 1, sequence: int = 1) -> None:
    """Raises UserError unless `positions` can be split over `context` and over `sequence` devices."""
    # Along `context` each device has two chunks (see `own_positions`).
    for axis, devices, chunks in (("context", context, 2 * context), ("tensor", sequence, sequence)):
        if devices > 1 and positions % chunks:
            near = max(chunks, round(positions / chunks) * chunks)
            raise UserError(
                f"{positions} positions cannot be split over {devices} devices of the axis {axis}, which need "
                f"{chunks} equal chunks: use --config.model.context={near}, for example."
            )


def own_positions(x: jax.Array, axis: int = 1) -> jax.Array:
    """This device's chunks of an array with whole sequences along `axis`; `x` itself if positions are not split."""
    name = current().context
    if name is None:
        return x
    if current().ulysses:  # all heads have equal work, and after the exchange the positions must be in order
        size = x.shape[axis] // jax.lax.axis_size(name)
        return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(name) * size, size, axis)
    # In causal attention a late position attends to many others and an early one to few. So the sequence is cut into
    # 2 n chunks, and device i of n has chunks i and 2 n - 1 - i: all devices have equal work. Brandon et al., "Striped
    # Attention", arXiv:2311.09431, describe the imbalance; the pairing is that of Llama 3, arXiv:2407.21783, 3.3.2.
    devices, index = jax.lax.axis_size(name), jax.lax.axis_index(name)
    size = x.shape[axis] // (2 * devices)
    early = jax.lax.dynamic_slice_in_dim(x, index * size, size, axis)
    late = jax.lax.dynamic_slice_in_dim(x, (2 * devices - 1 - index) * size, size, axis)
    return jnp.concatenate([early, late], axis)


def global_count(local_positions: int) -> int:
    """The length of the whole sequence if a device has `local_positions` of its positions."""
    name = current().context
    return local_positions * (1 if name is None else jax.lax.axis_size(name))


def sequence_shard(x: jax.Array) -> jax.Array:
    """This device's part of `x`, (T, ...), under sequence parallelism (between tensor-parallel products), else `x`."""
    context = current()
    if not context.sequence or context.tensor is None:
        return x
    size = x.shape[0] // jax.lax.axis_size(context.tensor)
    return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(context.tensor) * size, size)
