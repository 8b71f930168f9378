# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the examples that a loss is given, and the parameters it is given, lie on devices.

A loss knows no device. A few layers must: batch normalisation ("the statistics of this device's examples" is one thing
where the loss sees the whole batch, under `jit`, and another where it sees a device's part, under `shard_map`), and the
layers of a model whose products are split over devices. Whoever traces a loss says how things lie; a layer asks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """parts: equal, contiguous parts of the batch given, one for each device. axis: the mapped axis, or axes, over
    which other devices hold the rest of the batch; None: the batch given is whole. One of the two is always trivial.

    The rest are mapped axes too, None where there is none.
    tensor: over it lie heads, hidden units and vocabulary: a layer is given its device's part of their parameters.
    sequence: between the split products, positions lie over `tensor` too.
    context: over it lie positions, everywhere, in the order of `workloads.positions`.
    expert: over it lie the experts of a mixture.
    """

    parts: int = 1
    axis: str | tuple[str, ...] | None = None
    tensor: str | None = None
    sequence: bool = False
    context: str | None = None
    expert: str | None = None


WHOLE = Spread()
_current: ContextVar[Spread] = ContextVar("spread", default=WHOLE)


def current() -> Spread:
    """What holds where the caller is being traced."""
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
    """Says how things lie for what is traced inside."""
    token = _current.set(Spread(parts, axis, tensor, sequence, context, expert))
    try:
        yield
    finally:
        _current.reset(token)
