# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A function's forward and backward pass as two functions, with the residuals between them as plain arrays.

`jax.vjp` returns the backward pass as a pytree of residuals. These can be stored and used much later, as a pipeline
does between two ticks of one compiled loop. Residuals that depend only on the parameters (a transposed kernel, or one
cast to 16 bits) are recomputed instead: they are as large as the parameters, and the same for every micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads.base import PyTree
from jaxbench.workloads.jaxprs import reached


class SplitVjp:
    """The two passes of ``function(params, x, *given) -> y``, for arrays x and y; `given` gets no gradient.

    Attributes:
      kept: the avals of what `forward` returns for `backward`.
    """

    def __init__(self, function: Callable[..., jax.Array], params: PyTree, x: jax.Array, *given: Any):
        """params, x, given: arrays or tracers with the right shapes and dtypes; their values are not used."""
        self._function = function
        self._zero = partial(jnp.zeros_like, x)
        jaxpr = jax.make_jaxpr(lambda params, x: jax.tree.leaves(self._vjp(params, x, given)[1]))(params, x)
        self._keep = reached(jaxpr.jaxpr, jaxpr.jaxpr.invars[-1:])
        self.kept = [aval for aval, keep in zip(jaxpr.out_avals, self._keep, strict=True) if keep]

    def forward(self, params: PyTree, x: jax.Array, *given: Any) -> tuple[jax.Array, list[jax.Array]]:
        """(y, the residuals for `backward`)."""
        y, pulled = self._vjp(params, x, given)
        return y, [leaf for leaf, keep in zip(jax.tree.leaves(pulled), self._keep, strict=True) if keep]

    def backward(
        self, params: PyTree, kept: Iterable[jax.Array], dy: jax.Array, *given: Any
    ) -> tuple[PyTree, jax.Array]:
        """The gradients of <y, dy> with respect to params and x. params, given: the same as in `forward`."""
        # This forward pass, of zeros, is dead code except for what depends only on the parameters.
        pulled = self._vjp(params, self._zero(), given)[1]
        leaves, structure = jax.tree.flatten(pulled)
        rest = iter(kept)
        leaves = [next(rest) if keep else leaf for leaf, keep in zip(leaves, self._keep, strict=True)]
        return jax.tree.unflatten(structure, leaves)(dy)

    def _vjp(self, params: PyTree, x: jax.Array, given: tuple[Any, ...]) -> tuple[jax.Array, Any]:
        return jax.vjp(lambda params, x: self._function(params, x, *given), params, x)
