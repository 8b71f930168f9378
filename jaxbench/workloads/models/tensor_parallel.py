# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Products whose kernels are split over the devices of the axis `tensor`, and a vocabulary that is.

Shoeybi et al., "Megatron-LM", arXiv:1909.08053: a first product is split by columns, so each device makes its own
outputs from the whole input, and the next by rows, so each makes a summand of the whole output. One all-reduce follows
the second product; in the backward pass one follows the first. With positions split between the products (Korthikanti
et al., arXiv:2205.05198) each of these is a reduce-scatter, and an all-gather before the next product.

Where nothing is split this is the plain product. The backward pass is not written out: `shard_map` knows which arrays
are the same on all devices (*invariant*), and the gradient of such an array is a sum over devices.

Axes: B examples, T positions, D width, V rows of a vocabulary, or those of them that a device holds.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.workloads import sharding_context
from jaxbench.workloads.base import CollectiveBounds, DeviceShare
from jaxbench.workloads.models.per_device import Tied


def column(layer: nnx.Linear | nnx.LinearGeneral, x_BTD: jax.Array) -> jax.Array:
    """The layer on every position, (B, T, D) to (B, T, *outputs), a device's outputs where they are split; or (B, D).

    The product is made over one axis of examples and positions: the gradient of the kernel then sums over one axis, for
    which XLA's CPU compiler has a product almost three times as fast as for two.
    """
    x_BTD = _whole(x_BTD)
    kernel, outputs = layer.kernel[...], layer.kernel.shape[1:]
    assert layer.bias is not None
    y = x_BTD.reshape(-1, x_BTD.shape[-1]) @ kernel.reshape(kernel.shape[0], -1) + layer.bias[...].reshape(-1)
    y = y.reshape(*x_BTD.shape[:-1], -1)  # in two steps: with explicit sharding JAX knows no way to do both in one
    return y.reshape(*x_BTD.shape[:-1], *outputs)


def row(layer: nnx.Linear | nnx.LinearGeneral, x: jax.Array) -> jax.Array:
    """The layer on every position, (B, T, *inputs) to (B, T, D), where `x` has a device's inputs if they are split; or
    (B, *inputs) to (B, D)."""
    kernel = layer.kernel[...]
    assert layer.bias is not None
    width, positions = kernel.shape[-1], x.shape[: x.ndim - kernel.ndim + 1]
    x = x.reshape(*positions, -1)
    y = x.reshape(-1, x.shape[-1]) @ kernel.reshape(-1, width)
    if sharding_context.current().tensor is None:
        return (y + layer.bias[...]).reshape(*positions, width)
    return _summed(y.reshape(*positions, width)) + layer.bias[...]


def summed(numbers: int) -> Callable[[DeviceShare], CollectiveBounds]:
    """The closed form of layers, as `workloads.base.Partition.wire`, of which so many numbers are summed over devices
    for each example, in the forward and the backward pass together."""

    def wire(share: DeviceShare) -> CollectiveBounds:
        sent = numbers * share.examples
        return {"all-reduce": (sent, sent)} if share.over("tensor") > 1 else {}

    return wire


class Vocabulary:
    """A table for looking up and for scoring, as a language model's input and output embedding, whose rows may be
    split."""

    def __init__(self, table_VD: jax.Array, numbers_BT: jax.Array, words: int | None = None):
        """numbers_BT: integers in [0, words).

        words: how many of all rows are words; None: all. The rest are there for the table to divide over devices: they
        are never looked up nor chosen, and their gradient is zero.
        """
        self._table, self._numbers, self._words = table_VD, numbers_BT, words
        self._axis = sharding_context.current().tensor
        self._tied = None if self._axis else Tied(table_VD, numbers_BT)

    def rows(self) -> jax.Array:
        """The rows of the numbers given, (B, T, D). A device adds those that it holds."""
        if self._tied is not None:
            return self._tied.rows()
        number = self._numbers - first_row(self._table.shape[0])
        here = (number >= 0) & (number < self._table.shape[0])
        found = self._table[jnp.where(here, number, 0)]
        return _summed(jnp.where(here[..., None], found, 0))

    def scores(self, x_BTD: jax.Array) -> jax.Array:
        """The product of `x_BTD` with every word, (B, T, words), or with every row that a device holds of a table that
        is split, (B, T, V): there a row that is no word scores so low that it has no part in a softmax."""
        if self._tied is not None:
            scores = self._tied.scores(x_BTD)
            return scores if self._words in (None, scores.shape[-1]) else scores[..., : self._words]
        scores, held = _whole(x_BTD) @ self._table.T, self._table.shape[0]
        if self._words in (None, held * jax.lax.axis_size(self._axis)):
            return scores
        number = first_row(held) + jnp.arange(held)
        return jnp.where(number < self._words, scores, jnp.finfo(scores.dtype).min)


def first_row(rows: int) -> jax.Array:
    """The number of the first of `rows` rows that a device holds of a vocabulary split over `tensor`."""
    axis = sharding_context.current().tensor
    assert axis is not None
    return jax.lax.axis_index(axis) * rows


def _whole(x_BTD: jax.Array) -> jax.Array:
    where = sharding_context.current()
    if where.tensor is None or not where.sequence:
        return x_BTD
    return jax.lax.all_gather(x_BTD, where.tensor, axis=1, tiled=True)


def _summed(x_BTD: jax.Array) -> jax.Array:
    where = sharding_context.current()
    assert where.tensor is not None
    if where.sequence:
        return jax.lax.psum_scatter(x_BTD, where.tensor, scatter_dimension=1, tiled=True)
    return jax.lax.psum(x_BTD, where.tensor)
