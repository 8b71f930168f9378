# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One copy per device of parameters that are used more than once, so that their gradient is communicated once.

Under `jit` a gradient with several terms (such as that of tied input and output embeddings) would be summed over
devices term by term. A gradient that sums over two axes, one of them split, has no sharding of its own. Here the batch
is reshaped to (devices, examples of each, ...), and the parameter is broadcast along the first axis. All terms are
added on the device, and the only sum over devices is the gradient of the broadcast. Each device still has one copy. If
the loss sees only one device's examples (`shard_map`, `pmap`, one device), there is one group.

Axes: P devices, V rows of a table, D width, B examples, T positions.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.workloads import sharding_context


def split(x: jax.Array) -> jax.Array:
    """(B, ...) to (P, B / P, ...): each contiguous group of a sharded batch is on one device."""
    parts = sharding_context.current().parts
    return x.reshape(parts, x.shape[0] // parts, *x.shape[1:])


def join(x: jax.Array) -> jax.Array:
    """(P, B / P, ...) to (B, ...)."""
    return x.reshape(-1, *x.shape[2:])


def copies(parameter: jax.Array, like: jax.Array) -> jax.Array:
    """`parameter` for each group of `like`, a result of `split`: (P, *parameter.shape), on the group's device."""
    axes = tuple(range(1, parameter.ndim + 1))
    out = _sharding(like, axes=parameter.ndim + 1)
    return jax.lax.broadcast_in_dim(parameter, (like.shape[0], *parameter.shape), axes, out_sharding=out)


def by_device(function: Callable[..., jax.Array], *arrays: jax.Array) -> jax.Array:
    """`function` of each group of `arrays`, (P, ...). One group is not vmapped: a batch of one product is slower."""
    if arrays[0].shape[0] == 1:
        return function(*(array[0] for array in arrays))[None]
    return jax.vmap(function)(*arrays)


def rows(table_VD: jax.Array, numbers: jax.Array) -> jax.Array:
    """``table_VD[numbers]``, (*numbers.shape, D), for one table that all devices share.

    With explicit sharding a lookup needs an output sharding: that of the numbers.
    """
    return table_VD.at[numbers].get(out_sharding=_sharding(numbers, axes=numbers.ndim + 1))


class Tied:
    """A table for lookup and scoring, such as the tied input and output embedding of a language model."""

    def __init__(self, table_VD: jax.Array, numbers_BT: jax.Array):
        """numbers_BT: integers in [0, V)."""
        self._numbers = split(numbers_BT)
        self._table = copies(table_VD, self._numbers)

    def rows(self) -> jax.Array:
        """The rows of the given numbers, (B, T, D)."""
        if self._table.shape[0] == 1:
            return rows(self._table[0], join(self._numbers))
        return join(jax.vmap(lambda table, numbers: table[numbers])(self._table, self._numbers))

    def scores(self, x_BTD: jax.Array) -> jax.Array:
        """The product of `x_BTD` with every row, (B, T, V)."""
        if self._table.shape[0] == 1:
            return x_BTD @ self._table[0].T
        return join(jax.vmap(lambda x, table: x @ table.T)(split(x_BTD), self._table))


def _sharding(like: jax.Array, *, axes: int) -> NamedSharding | None:
    """The sharding of an array with `axes` axes, the first split like that of `like`; None: not explicit."""
    sharding = jax.typeof(like).sharding
    if not any(sharding.spec):
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0], *[None] * (axes - 1)))
