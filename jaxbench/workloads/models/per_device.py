# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parameters that are used more than once, with one copy per device so that their gradient is communicated once.

Under `jit` a gradient that comes in several pieces (of a table that is input and output embedding) would be added up
over the devices piece by piece, and one that is a sum over two axes, one of them split, has no sharding of its own.
Here the batch is seen as (devices, examples of each, ...) and the parameter is broadcast along the first axis: all
pieces meet on the device, and the one sum over devices is the broadcast's own gradient. Each device still holds one
copy. Where the loss sees only one device's examples (`shard_map`, `pmap`, one device) there is one group.

Axes: P devices, V rows of a table, D width, B examples, T positions.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.workloads import sharding_context


def split(x: jax.Array) -> jax.Array:
    """(B, ...) to (P, B / P, ...): contiguous groups of a batch that is split over devices lie whole on one each."""
    parts = sharding_context.current().parts
    return x.reshape(parts, x.shape[0] // parts, *x.shape[1:])


def join(x: jax.Array) -> jax.Array:
    """(P, B / P, ...) to (B, ...)."""
    return x.reshape(-1, *x.shape[2:])


def copies(parameter: jax.Array, like: jax.Array) -> jax.Array:
    """`parameter` for each group of `like`, which `split` gave: (P, *parameter.shape), each on its group's device."""
    axes = tuple(range(1, parameter.ndim + 1))
    out = _sharding(like, axes=parameter.ndim + 1)
    return jax.lax.broadcast_in_dim(parameter, (like.shape[0], *parameter.shape), axes, out_sharding=out)


def by_device(function: Callable[..., jax.Array], *arrays: jax.Array) -> jax.Array:
    """`function` of each group of the arrays given, (P, ...). For one group plainly: a batch of one product is slower
    than the product."""
    if arrays[0].shape[0] == 1:
        return function(*(array[0] for array in arrays))[None]
    return jax.vmap(function)(*arrays)


def rows(table_VD: jax.Array, numbers: jax.Array) -> jax.Array:
    """``table_VD[numbers]``, (*numbers.shape, D), for one table that all devices share.

    With explicit sharding a lookup must say how its result lies: as the numbers do.
    """
    return table_VD.at[numbers].get(out_sharding=_sharding(numbers, axes=numbers.ndim + 1))


class Tied:
    """A table for looking up and for scoring, as a language model's input and output embedding."""

    def __init__(self, table_VD: jax.Array, numbers_BT: jax.Array):
        """numbers_BT: integers in [0, V)."""
        self._numbers = split(numbers_BT)
        self._table = copies(table_VD, self._numbers)

    def rows(self) -> jax.Array:
        """The rows of the numbers given, (B, T, D)."""
        if self._table.shape[0] == 1:
            return rows(self._table[0], join(self._numbers))
        return join(jax.vmap(lambda table, numbers: table[numbers])(self._table, self._numbers))

    def scores(self, x_BTD: jax.Array) -> jax.Array:
        """The product of `x_BTD` with every row, (B, T, V)."""
        if self._table.shape[0] == 1:
            return x_BTD @ self._table[0].T
        return join(jax.vmap(lambda x, table: x @ table.T)(split(x_BTD), self._table))


def _sharding(like: jax.Array, *, axes: int) -> NamedSharding | None:
    """The layout of an array of so many axes whose leading one is split as that of `like`; None: not said."""
    sharding = jax.typeof(like).sharding
    if not any(sharding.spec):
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0], *[None] * (axes - 1)))
