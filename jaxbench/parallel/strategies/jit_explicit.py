# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jit` with explicit sharding: the sharding is part of each array's type while tracing.

The mathematics is that of `jit_auto`. But where `jit_auto` leaves an ambiguous sharding to the compiler, this is an
error at trace time. A model with such an operation must be rewritten before this strategy can take it.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

import jax
from jax.sharding import AxisType

from jaxbench import discovery
from jaxbench.core.program import Program
from jaxbench.core.workload import TrainWorkload
from jaxbench.errors import Unsupported
from jaxbench.parallel import data_parallel

# Regular expression in JAX's message -> advice. It uses an operand's own sharding, which works in every strategy.
ADVICE = (
    (r"\.get\(out_sharding", "write table.at[ids].get(out_sharding=jax.typeof(ids).sharding) there"),
    (
        r"carry",
        "start that loop with an array made from the examples, such as jnp.zeros_like(x), to get their sharding",
    ),
    (r"dot_general|[Cc]ontracting", "give that product the out_sharding of an operand, jax.typeof(x).sharding"),
    (r"", "rewrite it so that no operation runs along the axis of examples"),  # matches everything, so it is last
)

AXIS = data_parallel.AXIS
WRITTEN_OUT = data_parallel.WRITTEN_OUT


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Tracing its step raises Unsupported for an ambiguous sharding."""
    return data_parallel.by_compiler(workload, devices, AxisType.Explicit, _ShardingErrors(workload.name))


class _ShardingErrors(AbstractContextManager[None]):
    """Turns JAX's error for an ambiguous sharding into Unsupported, with the user's line and advice."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # JAX's ShardingTypeError has no public name, and some operations raise another error about sharding.
        message, typed = " ".join(str(error).split()), type(error).__name__ == "ShardingTypeError"
        refused = isinstance(error, ValueError | NotImplementedError)
        about_sharding = refused and re.search("shard|should be replicated", message) is not None
        in_loop = isinstance(error, TypeError) and "carry input and carry output" in message
        if error is None or not (typed or about_sharding or in_loop):
            return
        line = discovery.line_of(error)
        where = f"'{line[0]}', line {line[1]}" if line else f"'{self.name}'"
        advice = next(advice for pattern, advice in ADVICE if re.search(pattern, message))
        # The sentence in which JAX says what is wrong, without its own advice, which may not work in other strategies.
        shorter = re.sub("^Use `.*?indexing as", "in a lookup", message)
        reason = re.split(r",? [Gg]ot |, but they differ|\. ", shorter)[0].rstrip(".")
        raise Unsupported(
            f"{where}: with explicit sharding every layout must be known while tracing ({reason}): {advice}, or use "
            "--config.strategy=jit_auto, where the compiler chooses."
        ) from error
