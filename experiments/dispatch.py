# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of starting a program, pipelined and synchronous: an empty one and one of 8 comparisons (1 min).

"pipelined": calls without waiting, as in training; the device may lag behind. "sync": each call waits for its result,
as in code that reads every result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import Array, KernelWorkload, choose

IMPLS = ("pipelined", "sync")
DTYPES = ("float32",)


@dataclass(frozen=True)
class DispatchedProgram:
    """A program of `elements` float32 numbers, and its correct result."""

    elements: int
    jax: Callable[[jax.Array], jax.Array]
    answer: Callable[[np.ndarray], np.ndarray]


# jnp.copy, because a compiled identity returns its argument without running anything. Both are idempotent, so each call
# takes the previous result, as in a minimal hand-written loop.
PROGRAMS = {
    "empty": DispatchedProgram(1, jnp.copy, lambda x: x),
    "tiny": DispatchedProgram(8, lambda x: jnp.maximum(x, 0), lambda x: np.maximum(x, 0)),
}
OPS = tuple(PROGRAMS)


def cases(op: str, impls: tuple[str, ...] = IMPLS) -> Iterator[KernelWorkload]:
    """One program, started in both ways. It has no FLOPs or bytes, because its time is the cost of starting it."""
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
        call(x)  # compiled here, outside the timed region
        return lambda: call(x).block_until_ready()

    return prepare


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # pipelined, sync
    config.measure = ConfigDict({"rounds": 10})
    return config


def build(config: ConfigDict) -> CaseSet:
    choose("dtypes", config.dtypes, DTYPES)
    if config.sizes != "auto":
        raise UserError(f"--config.sizes={config.sizes}: each program of dispatch has one size, so use auto.")
    impls = choose("impls", config.impls, IMPLS)
    programs = choose("ops", config.ops, OPS)
    return CaseSet(name="dispatch", view="dispatch", cases=tuple(case for op in programs for case in cases(op, impls)))
