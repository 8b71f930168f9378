# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What it costs to start a program that does nothing, or next to nothing.

"pipelined": call after call without waiting, as in training; the device may run behind. "sync": each call is waited
for, which is what code pays that looks at every result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.workloads.cases import Array, KernelWorkload

IMPLS = ("pipelined", "sync")
DTYPES = ("float32",)


@dataclass(frozen=True)
class Program:
    """A program of `elements` float32 numbers, and its right result."""

    elements: int
    jax: Callable[[jax.Array], jax.Array]
    answer: Callable[[np.ndarray], np.ndarray]


# jnp.copy, because a compiled identity hands its argument back and leaves nothing to wait for. Both may be fed with
# their own result, call after call, as the barest loop by hand is.
PROGRAMS = {
    "empty": Program(1, jnp.copy, lambda x: x),
    "tiny": Program(8, lambda x: jnp.maximum(x, 0), lambda x: np.maximum(x, 0)),
}
OPS = tuple(PROGRAMS)


def cases(op: str, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """One program, started in both ways. FLOPs and bytes would mean nothing: its time is the cost of starting it."""
    program = PROGRAMS[op]
    for impl in impls:
        yield KernelWorkload(
            op=op,
            dtype=DTYPES[0],
            impl=impl,
            elements=program.elements,
            flops=None,
            bytes_moved=None,
            arguments=(Array((program.elements,)),),
            function=program.jax if impl == "pipelined" else None,
            prepare=_waited_for(program.jax) if impl == "sync" else None,
            waits=impl == "sync",
            answer=program.answer,
            elementwise=True,
            idempotent=True,
        )


def _waited_for(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], Callable[[], jax.Array]]:
    call = jax.jit(function)

    def prepare(x: jax.Array) -> Callable[[], jax.Array]:
        call(x)  # compiled here, outside the clock
        return lambda: call(x).block_until_ready()

    return prepare
