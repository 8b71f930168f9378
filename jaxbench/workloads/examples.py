# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""All examples of the global batch, for a loss that compares each with every other one.

Where the loss is given the whole batch these functions change nothing. Where it is given one device's part, by a
strategy that writes its program for one device, `gathered` collects the parts; its gradient gives each device back what
the others' losses say of its examples, by a reduce-scatter.
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
    axis, noted = sharding_context.current().axis, _sizes.get()
    if noted is not None:
        noted.append(x.size)
    if axis is not None:
        return jax.lax.all_gather(x, axis, tiled=True)
    # Explicit sharding has no product of two arrays that are split over one axis: who is compared must be whole.
    return jax.sharding.reshard(x, PartitionSpec()) if any(jax.typeof(x).sharding.spec) else x


def first(x: jax.Array) -> jax.Array | int:
    """The place in the global batch of the first example of `x`, (examples given, ...)."""
    axis = sharding_context.current().axis
    return 0 if axis is None else jax.lax.axis_index(axis) * x.shape[0]


@contextlib.contextmanager
def noted() -> Iterator[list[int]]:
    """While a loss is traced inside, the list gets the size of each array that it asks to be gathered."""
    found: list[int] = []
    token = _sizes.set(found)
    try:
        yield found
    finally:
        _sizes.reset(token)
