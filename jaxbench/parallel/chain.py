# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A case as dependent steps: each call needs the previous result, so no call can be skipped or overlapped.

Each step passes on its whole result, so the compiler must compute all of it. One element of the result, times a zero
that the compiler cannot see, is added in place to one element of the first argument. This changes no value and costs
one element, but the compiler can hoist nothing out of a loop over steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

PyTree = Any


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A case in the form that is compiled and timed.

    Attributes:
      step: (state, batch) -> (state, None), pure; jitted with the state donated and, in a loop, iterated.
      draw: seed -> (state, batch), new arrays on the devices. The result in the first state may have any values.
      wrong: (state after some steps, seed) -> the number of wrong values in the result; None: the answer is unknown.
      values: the number of values that `wrong` compares.
      zeros: seed -> the share of the input values that are zero.
      mesh: the mesh to run under; None for one device.
      avals: () -> (state, batch) as shapes with shardings, to compile for devices that are not here; None: unknown.
    """

    step: Callable[[PyTree, PyTree], tuple[PyTree, None]]
    draw: Callable[[int], tuple[PyTree, PyTree]]
    wrong: Callable[[PyTree, int], int] | None
    values: int
    zeros: Callable[[int], float]
    mesh: jax.sharding.Mesh | None = None
    avals: Callable[[], tuple[PyTree, PyTree]] | None = None

    def context(self) -> contextlib.AbstractContextManager[Any]:
        """The mesh to run under."""
        return contextlib.nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)


def feed_back(argument: jax.Array, result: PyTree, zero: jax.Array) -> jax.Array:
    """`argument` with `zero` x (one element of `result`) added to its first element. `zero`: a scalar 0."""
    # One element is enough: a compiled result is computed as a whole, and its other elements are carried along.
    one = jax.tree.leaves(result)[0].ravel()[0]
    if jnp.iscomplexobj(one):
        one = one.real  # its product with a zero is still 0
    # In place, because the state is donated: a sum over the whole argument would cost as much as STREAM's add.
    return argument.at[(0,) * argument.ndim].add((zero.astype(one.dtype) * one).astype(argument.dtype))


def loop(step: Callable[[PyTree, PyTree], tuple[PyTree, None]]) -> Callable[[PyTree, PyTree, Any], PyTree]:
    """(state, batch, count) -> the state after `count` steps, in one program."""

    # As a constant, each count would be another program, and XLA could unroll the loop.
    def iterate(state: PyTree, batch: PyTree, count: Any) -> PyTree:
        return jax.lax.fori_loop(0, count, lambda _, carried: step(carried, batch)[0], state)

    return iterate
