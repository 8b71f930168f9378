# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jit` with explicit sharding: the sharding is part of each array's type while tracing.

The same mathematics as `jit_auto`; an operation whose result could be laid out in more than one way is an error at
trace time instead of the compiler's choice. Such a model is one that this strategy cannot take as it is written.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax.sharding import AxisType

from jaxbench import discovery
from jaxbench.errors import Unsupported
from jaxbench.parallel import data_parallel
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload

# What to write, by what JAX says. A sharding that is an array's own is right under every other strategy too.
ADVICE = (
    (r"\.get\(out_sharding", "write table.at[ids].get(out_sharding=jax.typeof(ids).sharding) there"),
    (r"carry", "begin that loop with an array made of the examples, such as jnp.zeros_like(x), which lies as they do"),
    (
        r"dot_general|[Cc]ontracting",
        "give that product the out_sharding of an operand, jax.typeof(x).sharding",
    ),
    (r"", "write it so that no operation goes along the axis of examples"),
)


AXIS = data_parallel.AXIS


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Tracing its step raises Unsupported for a model that must say more."""
    return data_parallel.by_compiler(workload, devices, AxisType.Explicit, _Explained(workload.name))


class _Explained(AbstractContextManager[None]):
    """Turns what JAX raises where a sharding is ambiguous into Unsupported, with the person's line and what to write.

    Its ShardingTypeError has no public name, and some operations raise a ValueError that speaks of it.
    """

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        said, typed = " ".join(str(error).split()), type(error).__name__ == "ShardingTypeError"
        speaks = isinstance(error, ValueError | NotImplementedError) and re.search("shard|should be replicated", said)
        loops = isinstance(error, TypeError) and "carry input and carry output" in said
        if error is None or not (typed or speaks or loops):
            return
        found = discovery.line_of(error)
        where = f"'{found[0]}', line {found[1]}" if found else f"'{self.name}'"
        write = next(advice for pattern, advice in ADVICE if re.search(pattern, said))
        reason = re.split(r",? [Gg]ot |, but they differ|\. ", re.sub("^Use `.*?indexing as", "of a look-up", said))[
            0
        ].rstrip(".")
        raise Unsupported(
            f"{where}: with explicit sharding every layout must be known while tracing ({reason}): {write}, or use "
            "--config.strategy=jit_auto, where the compiler chooses."
        ) from error
