# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: products, and a vocabulary, split over the devices of the axis `tensor`.

Shoeybi et al., "Megatron-LM", arXiv:1909.08053: a first product is split by columns, so each device computes its own
outputs from the whole input. The next is split by rows, so each device computes a partial sum of the whole output. An
all-reduce follows the second product; in the backward pass an all-reduce follows the first. If positions are split
between the products (Korthikanti et al., arXiv:2205.05198), each all-reduce becomes a reduce-scatter and an all-gather.

Without a split this is the plain product. The backward pass needs no code: `shard_map` knows which arrays are the same
on all devices (*invariant*), and the gradient of such an array is a sum over devices.

Axes: B examples, T positions, D width, V rows of a vocabulary, or the rows on a device.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.workloads import sharding_context
from jaxbench.workloads.models.per_device import Tied


def column(layer: nnx.Linear | nnx.LinearGeneral, x_BTD: jax.Array) -> jax.Array:
    """The layer at every position, (B, T, D) or (B, D) to (..., *outputs), or this device's outputs if it is split.

    Examples and positions form one axis, so the gradient of the kernel sums over one axis. XLA's CPU compiler does this
    product almost three times as fast as a product over two axes.
    """
    return columns((layer,), x_BTD)[0]


def columns(layers: Sequence[nnx.Linear | nnx.LinearGeneral], x_BTD: jax.Array) -> list[jax.Array]:
    """`column` of several layers with a common input, which is gathered once; its gradient is summed once."""
    x_BTD, axis = _whole(x_BTD), sharding_context.current().tensor
    split = axis is not None and any(_varies(layer.kernel[...], axis) for layer in layers)
    if split and not _varies(x_BTD, axis):  # a layer that is whole on every device has a result that is the same on all
        x_BTD = jax.lax.pcast(x_BTD, axis, to="varying")
    return [_product(layer, x_BTD) for layer in layers]


def _varies(x: jax.Array, axis: str | None) -> bool:
    """Whether the devices of the axis have different parts of the array."""
    return axis in jax.typeof(x).manual_axis_type.varying


def _product(layer: nnx.Linear | nnx.LinearGeneral, x_BTD: jax.Array) -> jax.Array:
    kernel, outputs = layer.kernel[...], layer.kernel.shape[1:]
    y = x_BTD.reshape(-1, x_BTD.shape[-1]) @ kernel.reshape(kernel.shape[0], -1)
    y = y if layer.bias is None else y + layer.bias[...].reshape(-1)
    y = y.reshape(*x_BTD.shape[:-1], -1)  # in two steps: JAX cannot infer the explicit sharding of a single reshape
    return y.reshape(*x_BTD.shape[:-1], *outputs)


def row(layer: nnx.Linear | nnx.LinearGeneral, x: jax.Array) -> jax.Array:
    """The layer at every position, (B, T, *inputs) to (B, T, D), or (B, *inputs) to (B, D).

    If the layer is split, `x` has the inputs of this device.
    """
    kernel = layer.kernel[...]
    width, positions = kernel.shape[-1], x.shape[: x.ndim - kernel.ndim + 1]
    x = x.reshape(*positions, -1)
    y = x.reshape(-1, x.shape[-1]) @ kernel.reshape(-1, width)
    if sharding_context.current().tensor is None:
        return (y if layer.bias is None else y + layer.bias[...]).reshape(*positions, width)
    y = _summed(y.reshape(*positions, width))
    return y if layer.bias is None else y + layer.bias[...]


class Vocabulary:
    """A table for lookup and scoring (tied input and output embedding). Its rows may be split over devices."""

    def __init__(self, table_VD: jax.Array, numbers_BT: jax.Array, words: int | None = None):
        """numbers_BT: integers in [0, words).

        words: number of rows that are words; None: all. The rest is padding, with which the table divides over devices.
        It is never looked up or predicted, and its gradient is zero.
        """
        self._table, self._numbers, self._words = table_VD, numbers_BT, words
        self._axis = sharding_context.current().tensor
        self._tied = None if self._axis else Tied(table_VD, numbers_BT)

    def rows(self) -> jax.Array:
        """The rows of the given numbers, (B, T, D), summed over devices: each contributes its own rows."""
        if self._tied is not None:
            return self._tied.rows()
        number = self._numbers - first_row(self._table.shape[0])
        is_local = (number >= 0) & (number < self._table.shape[0])
        looked_up = self._table[jnp.where(is_local, number, 0)]
        return _summed(jnp.where(is_local[..., None], looked_up, 0))

    def scores(self, x_BTD: jax.Array) -> jax.Array:
        """The product of `x_BTD` with every word, (B, T, words), or with a device's rows of a split table, (B, T, V).

        In a split table the score of padding is so low that it does not count in a softmax.
        """
        if self._tied is not None:
            scores = self._tied.scores(x_BTD)
            return scores if self._words in (None, scores.shape[-1]) else scores[..., : self._words]
        scores, local_rows = _whole(x_BTD) @ self._table.T, self._table.shape[0]
        if self._words in (None, local_rows * jax.lax.axis_size(self._axis)):
            return scores
        number = first_row(local_rows) + jnp.arange(local_rows)
        return jnp.where(number < self._words, scores, jnp.finfo(scores.dtype).min)


def first_row(rows: int) -> jax.Array:
    """The index of the first row of a device that has `rows` rows of a vocabulary split over `tensor`."""
    axis = sharding_context.current().tensor
    assert axis is not None
    return jax.lax.axis_index(axis) * rows


def _whole(x_BTD: jax.Array) -> jax.Array:
    context = sharding_context.current()
    if context.tensor is None or not context.sequence:
        return x_BTD
    return jax.lax.all_gather(x_BTD, context.tensor, axis=1, tiled=True)


def _summed(x_BTD: jax.Array) -> jax.Array:
    context = sharding_context.current()
    assert context.tensor is not None
    if context.sequence:
        return jax.lax.psum_scatter(x_BTD, context.tensor, scatter_dimension=1, tiled=True)
    return jax.lax.psum(x_BTD, context.tensor)
