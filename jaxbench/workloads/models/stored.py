# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A gradient that is computed once and stored, where XLA's CPU compiler would compute it again for each of its uses.

The gradient that runs back along a residual stream is a growing sum: each branch adds its part and reads the sum so
far. All of it is element-wise, and the CPU compiler merges element-wise work into whatever reads it: in the backward
pass of n blocks the sum from the top down was computed anew for several products of each block, work of order n^2.
Without this the gradient of 4 blocks of width 128 takes 1.04 times as long on one core, that of 16 blocks 1.1 times.
"""

from __future__ import annotations

import jax

from jaxbench.workloads.one_piece import in_one_piece


@jax.custom_vjp
def stored_gradient(x: jax.Array) -> jax.Array:
    """`x`, whose gradient becomes an array in memory."""
    return x


def _forward(x: jax.Array) -> tuple[jax.Array, None]:
    return x, None


def _backward(_: None, gradient: jax.Array) -> tuple[jax.Array]:
    return (in_one_piece(lambda x: x)(gradient),)


stored_gradient.defvjp(_forward, _backward)
