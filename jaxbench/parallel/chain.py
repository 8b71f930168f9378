# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A case as dependent steps: each call needs the result of the one before, so that none can be skipped or overlapped.

The whole result is carried from step to step, which makes the compiler produce all of it. One element of it, times a
zero that the compiler does not know to be zero, is added to one element of the first argument, in place: the values
stay what they were, at the cost of one element, and a loop over steps has nothing to hoist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

PyTree = Any


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What is compiled and timed.

    Attributes:
      step: (state, batch) -> (state, None), pure; jitted with the state donated and, in a loop, iterated.
      draw: seed -> (state, batch), new arrays on the devices. The result inside the first state may hold anything.
      wrong: (state after some steps, seed) -> how many values of the result are wrong; None: the answer is not known.
      values: how many values `wrong` compares.
      zeros: seed -> the share of the input values that are zero.
      mesh: the mesh to run under; None for one device.
      avals: () -> (state, batch) as shapes with their shardings, for devices that are not here, where nothing can be
        drawn; None: not known.
    """

    step: Callable[[PyTree, PyTree], tuple[PyTree, None]]
    draw: Callable[[int], tuple[PyTree, PyTree]]
    wrong: Callable[[PyTree, int], int] | None
    values: int
    zeros: Callable[[int], float]
    mesh: jax.sharding.Mesh | None = None
    avals: Callable[[], tuple[PyTree, PyTree]] | None = None


def feed_back(argument: jax.Array, result: PyTree, zero: jax.Array) -> jax.Array:
    """`argument` with `zero` x (one element of `result`) added to its first element. `zero`: a scalar 0."""
    one = jax.tree.leaves(result)[0].ravel()[0]
    if jnp.iscomplexobj(one):
        one = one.real
    return argument.at[(0,) * argument.ndim].add((zero.astype(one.dtype) * one).astype(argument.dtype))


def loop(step: Callable[[PyTree, PyTree], tuple[PyTree, None]]) -> Callable[[PyTree, PyTree, Any], PyTree]:
    """(state, batch, count) -> the state after `count` steps, in one program; `count` is known only when it runs."""

    def iterate(state: PyTree, batch: PyTree, count: Any) -> PyTree:
        return jax.lax.fori_loop(0, count, lambda _, carried: step(carried, batch)[0], state)

    return iterate
