# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A fence around a function: XLA optimizes inside it, and neither fuses nor moves anything across it.

A kernel is measured inside a step that reads one value of its result and changes one value of its argument
(`parallel/collectives.py`). Without a fence, XLA mixes the two. For a chain of elementwise operations it computed the
chain twice, once for the result and once for the one value read, and copied the argument twice, because it could no
longer tell which use comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

T = TypeVar("T")
# The attribute of a call that XLA's inliner looks at.
_INLINEABLE = "inlineable"


def fenced(function: Callable[..., T]) -> Callable[..., T]:
    """`function` (arrays -> array or tuple of arrays) behind a fence: XLA moves nothing into, out of or across it."""

    @jax.jit  # makes the call that XLA is told not to inline
    def kernel(*arguments: jax.Array) -> T:
        with set_xla_metadata(**{_INLINEABLE: None}):  # calls inside the function are still inlined
            return function(*arguments)

    def as_a_call(*arguments: jax.Array) -> T:
        with set_xla_metadata(**{_INLINEABLE: "false"}):
            return kernel(*arguments)

    def with_barriers(*arguments: jax.Array) -> T:
        return jax.lax.optimization_barrier(function(*jax.lax.optimization_barrier(arguments)))

    def fenced_function(*arguments: jax.Array) -> T:
        # XLA's CPU compiler removes barriers before it fuses operations. On accelerators a barrier is enough.
        return jax.lax.platform_dependent(*arguments, cpu=as_a_call, default=with_barriers)

    return fenced_function


@jax.custom_vjp
def materialized_gradient(x: jax.Array) -> jax.Array:
    """Returns `x`, and makes its gradient an array in memory."""
    # For a residual stream: XLA would fuse its gradient into each use, and compute the whole sum again in every block.
    return x


def _forward(x: jax.Array) -> tuple[jax.Array, None]:
    return x, None


def _backward(_: None, gradient: jax.Array) -> tuple[jax.Array]:
    return (fenced(lambda x: x)(gradient),)


materialized_gradient.defvjp(_forward, _backward)
