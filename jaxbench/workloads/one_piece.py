# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A function that the compiler optimises within, and not together with what stands around it.

A kernel is measured inside a step that reads one value of its result and changes one value of its argument
(`parallel/chain.py`). Left to itself XLA mixes the two: it computed a chain of element-wise operations twice, once for
the result and once for the one value that is read, and copied the argument twice because it no longer saw which use of
it comes first. An optimisation barrier prevents that on accelerators. On the CPU barriers are gone before operations
are fused; there a call that is not inlined does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

# What XLA's inliner asks a call for.
_INLINEABLE = "inlineable"


def in_one_piece(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` (arrays -> array or tuple of arrays), with nothing moved into it, out of it or across it."""

    @jax.jit
    def kernel(*arguments: jax.Array) -> Any:
        with set_xla_metadata(**{_INLINEABLE: None}):  # calls inside it are inlined as ever
            return function(*arguments)

    def called(*arguments: jax.Array) -> Any:
        with set_xla_metadata(**{_INLINEABLE: "false"}):
            return kernel(*arguments)

    def fenced(*arguments: jax.Array) -> Any:
        return jax.lax.optimization_barrier(function(*jax.lax.optimization_barrier(arguments)))

    def piece(*arguments: jax.Array) -> Any:
        return jax.lax.platform_dependent(*arguments, cpu=called, default=fenced)

    return piece
