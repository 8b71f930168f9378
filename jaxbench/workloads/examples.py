# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""All examples of the global batch, for a loss that compares each example with every other one.

If the loss is given the whole batch, these functions change nothing. If a strategy gives it one device's part,
`gathered` is an all-gather. Its gradient is a reduce-scatter, which returns to each device the gradient of its examples
from the losses of all devices.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import jax
from jax.sharding import PartitionSpec

from jaxbench.workloads import sharding_context

_sizes: ContextVar[list[int] | None] = ContextVar("gathered", default=None)


def gathered(x: jax.Array) -> jax.Array:
    """(examples given, ...) -> (examples of the global batch, ...), in the batch's order."""
    axis, recorded = sharding_context.current().axis, _sizes.get()
    if recorded is not None:
        recorded.append(x.size)
    if axis is not None:
        return jax.lax.all_gather(x, axis, tiled=True)
    # Explicit sharding has no product of two arrays split over the same axis, so one of them must be replicated.
    return jax.sharding.reshard(x, PartitionSpec()) if any(jax.typeof(x).sharding.spec) else x


def first(x: jax.Array) -> jax.Array | int:
    """The index in the global batch of the first example of `x`, (examples given, ...)."""
    axis = sharding_context.current().axis
    return 0 if axis is None else jax.lax.axis_index(axis) * x.shape[0]


@contextlib.contextmanager
def recorded_sizes() -> Iterator[list[int]]:
    """Collects the size of each array that a loss gathers. Trace the loss inside this context."""
    sizes: list[int] = []
    token = _sizes.set(sizes)
    try:
        yield sizes
    finally:
        _sizes.reset(token)
