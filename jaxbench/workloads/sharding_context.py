# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the examples and the parameters that a loss is given lie on devices.

A loss knows nothing of devices, but a few layers must. Batch normalisation is one: "the statistics of this device's
examples" are computed in one way where the loss sees the whole batch, under `jit`, and in another where it sees a
device's part, under `shard_map`. The layers of a model whose products are split over devices are others. Whoever traces
a loss sets the context, and a layer asks for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class ShardingContext:
    """parts: the number of equal, contiguous parts of the batch given, one for each device. axis: the mapped axis, or
    axes, along which other devices hold the rest of the batch; None: the batch given is whole. At most one of the two
    says something.

    The rest are mapped axes too, None where there is none.
    tensor: splits heads, hidden units and vocabulary: a layer is given its device's part of their parameters.
    sequence: whether positions are split over `tensor` between the split products.
    context: splits positions, everywhere, in the order of `workloads.positions`.
    expert: splits the experts of a mixture.
    """

    parts: int = 1
    axis: str | tuple[str, ...] | None = None
    tensor: str | None = None
    sequence: bool = False
    context: str | None = None
    expert: str | None = None


WHOLE = ShardingContext()
_current: ContextVar[ShardingContext] = ContextVar("sharding_context", default=WHOLE)


def current() -> ShardingContext:
    """The context in which the caller is being traced."""
    return _current.get()


@contextlib.contextmanager
def over(
    *,
    parts: int = 1,
    axis: str | tuple[str, ...] | None = None,
    tensor: str | None = None,
    sequence: bool = False,
    context: str | None = None,
    expert: str | None = None,
) -> Iterator[None]:
    """Sets the context for what is traced inside."""
    token = _current.set(ShardingContext(parts, axis, tensor, sequence, context, expert))
    try:
        yield
    finally:
        _current.reset(token)
