# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the examples and the parameters of a loss are distributed over devices.

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


@dataclass(frozen=True)
class ShardingContext:
    """The distribution of a batch and a model over devices. At most one of `parts` and `axis` is set.

    parts: number of equal, contiguous parts of the given batch, one for each device.
    axis: the mapped axis, or axes, over which other devices have the rest of the batch; None: the batch is whole.
    tensor: mapped axis that splits heads, hidden units and vocabulary: a layer is given its device's parameters.
    sequence: whether positions are split over `tensor` between the tensor-parallel products.
    context: mapped axis that splits positions everywhere, in the order of `workloads.positions`.
    expert: mapped axis that splits the experts of a mixture.
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
