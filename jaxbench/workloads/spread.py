# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the examples that a loss is given lie on devices, for the few layers whose mathematics depends on it.

A loss knows no device. Batch normalisation must: "the statistics of this device's examples" is one thing where the loss
sees the whole batch (`jit`) and another where it sees a device's part (`shard_map`, `pmap`). Whoever traces a loss says
which it is; a layer asks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """parts: equal, contiguous parts of the batch given, one for each device. axis: the mapped axis over which other
    devices hold the rest of the batch; None: the batch given is whole. One of the two is always trivial."""

    parts: int = 1
    axis: str | None = None


WHOLE = Spread()
_current: ContextVar[Spread] = ContextVar("spread", default=WHOLE)


def current() -> Spread:
    """What holds where the caller is being traced."""
    return _current.get()


@contextlib.contextmanager
def over(*, parts: int = 1, axis: str | None = None) -> Iterator[None]:
    """Says how the batch lies for what is traced inside."""
    token = _current.set(Spread(parts, axis))
    try:
        yield
    finally:
        _current.reset(token)
