# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Layers with parameters that are split over devices, or that are copied once to each device.

**One copy per device** of parameters that are used more than once, so that their gradient is communicated once. Here
the batch is reshaped to (devices, examples of each, ...), and the parameter is broadcast along the first axis (see
`copies`). If the loss sees only one device's examples (`shard_map`, `pmap`, one device), there is one group.

**Tensor parallelism**: products, and a vocabulary, split over the devices of the axis `tensor`. Shoeybi et al.,
"Megatron-LM", arXiv:1909.08053: a first product is split by columns, so each device computes its own outputs from the
whole input. The next is split by rows, so each device computes a partial sum of the whole output. An all-reduce follows
the second product; in the backward pass an all-reduce follows the first. If positions are split between the products
(Korthikanti et al., arXiv:2205.05198), each all-reduce becomes a reduce-scatter and an all-gather. Without a split this
is the plain product.

**Dense layers** with ReLU between them, split in pairs: the first layer of a pair by its outputs, the second by its
inputs. A last layer without a partner is replicated. After convolutions this is the mixture of Krizhevsky, "One weird
trick for parallelizing convolutional neural networks", arXiv:1404.5997: each device computes the convolutions of its
own examples, then gathers the features of all devices' examples, and applies its part of the dense layers to them. So
the gradients of split dense layers are not sent.

Axes: P devices, B examples, T positions, D width, F features, V rows of a table or of a vocabulary, or those on a
device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.core.workload import CollectiveBounds, DeviceShare, Partition
from jaxbench.errors import UserError, present
from jaxbench.workloads import sharding_context
from jaxbench.workloads.losses import PerPosition, in_blocks

# Scores above this are computed in blocks: with their gradient, they would take a large part of a device's memory.
# Below, the additional product costs more time than the memory is worth.
WHOLE_BYTES = 10e9
BLOCK_BYTES = 2**31  # of a block: some thousand positions, enough for a product at full rate


def split(x: jax.Array) -> jax.Array:
    """(B, ...) to (P, B / P, ...): each contiguous group of a sharded batch is on one device."""
    parts = sharding_context.current().parts
    return x.reshape(parts, x.shape[0] // parts, *x.shape[1:])


def join(x: jax.Array) -> jax.Array:
    """(P, B / P, ...) to (B, ...)."""
    return x.reshape(-1, *x.shape[2:])


def copies(parameter: jax.Array, like: jax.Array) -> jax.Array:
    """`parameter` for each group of `like`, a result of `split`: (P, *parameter.shape), on the group's device."""
    # Under `jit` a gradient with several terms (such as that of tied input and output embeddings) would be summed over
    # devices term by term. A gradient that sums over two axes, one of them split, has no sharding of its own. Of a copy
    # all terms are added on the device, and the only sum over devices is the gradient of this broadcast.
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


def _sharding(like: jax.Array, *, axes: int) -> NamedSharding | None:
    """The sharding of an array with `axes` axes, the first split like that of `like`; None: not explicit."""
    sharding = jax.typeof(like).sharding
    if not any(sharding.spec):
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0], *[None] * (axes - 1)))


def column(layer: nnx.Linear | nnx.LinearGeneral, x_BTD: jax.Array) -> jax.Array:
    """The layer at every position, (B, T, D) or (B, D) to (..., *outputs), or this device's outputs if it is split."""
    return columns((layer,), x_BTD)[0]


def columns(layers: Sequence[nnx.Linear | nnx.LinearGeneral], x_BTD: jax.Array) -> list[jax.Array]:
    """`column` of several layers with a common input, which is gathered once; its gradient is summed once."""
    x_BTD, axis = _whole(x_BTD), sharding_context.current().tensor
    # The backward pass needs no code: `shard_map` knows which arrays are the same on all devices (*invariant*). The
    # gradient of such an array is a sum over devices, which the cast below asks for.
    split = any(axis in sharding_context.varies(layer.kernel[...]) for layer in layers)
    if (
        axis is not None and split and axis not in sharding_context.varies(x_BTD)
    ):  # a layer that is whole on every device has a result that is the same on all
        x_BTD = jax.lax.pcast(x_BTD, axis, to="varying")
    return [_product(layer, x_BTD) for layer in layers]


def _product(layer: nnx.Linear | nnx.LinearGeneral, x_BTD: jax.Array) -> jax.Array:
    """The layer's product with its bias."""
    kernel, outputs = layer.kernel[...], layer.kernel.shape[1:]
    # Examples and positions form one axis, so the gradient of the kernel sums over one axis. XLA's CPU compiler does
    # this product almost three times as fast as a product over two axes.
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
    return y if layer.bias is None else y + layer.bias[...]  # after the sum, or each device would add the bias


class Vocabulary:
    """A table for lookup and scoring (tied input and output embedding). Its rows may be split over devices."""

    def __init__(self, table_VD: jax.Array, numbers_BT: jax.Array, words: int | None = None):
        """numbers_BT: integers in [0, words).

        words: number of rows that are words; None: all. The rest is padding, with which the table divides over devices.
        It is never looked up or predicted, and its gradient is zero.
        """
        self._words, self._axis = words, sharding_context.current().tensor
        self._table, self._numbers = table_VD, numbers_BT
        if self._axis is None:  # both uses share a device's copy, so their gradients are added before they are sent
            self._numbers = split(numbers_BT)
            self._table = copies(table_VD, self._numbers)

    def rows(self) -> jax.Array:
        """The rows of the given numbers, (B, T, D). With a split table, each device contributes its own rows."""
        if self._axis is None:
            if self._table.shape[0] == 1:
                return rows(self._table[0], join(self._numbers))
            return join(jax.vmap(lambda table, numbers: table[numbers])(self._table, self._numbers))
        # A row that is elsewhere counts as zeros here, and the sum over devices has each row once.
        number = self._numbers - jax.lax.axis_index(self._axis) * self._table.shape[0]
        is_local = (number >= 0) & (number < self._table.shape[0])
        looked_up = self._table[jnp.where(is_local, number, 0)]  # row 0 stands in for those elsewhere
        return _summed(jnp.where(is_local[..., None], looked_up, 0))

    def scores(self, x_BTD: jax.Array) -> jax.Array:
        """The product of `x_BTD` with every word, (B, T, words), or with a device's rows of a split table, (B, T, V).

        In a split table the score of padding is so low that it does not count in a softmax.
        """
        return self._scores(_whole(x_BTD), self._table)

    def scored(self, x_BTD: jax.Array, *, recompute: bool) -> jax.Array | PerPosition:
        """`scores`, or a function that computes the loss in blocks of positions and never has all scores in memory.

        recompute: whether the backward pass may compute scores again. Blocks need it, and begin where a device's
        scores would take more than `WHOLE_BYTES` in float32.
        """
        x_BTD = _whole(x_BTD)
        examples, positions = x_BTD.shape[0] // sharding_context.current().parts, x_BTD.shape[1]
        size = score_bytes(examples * positions, self._table.shape[-2])
        if not recompute or size <= WHOLE_BYTES:
            return self._scores(x_BTD, self._table)
        least = min(math.ceil(size / BLOCK_BYTES), positions)  # blocks of one position, if there are many examples
        count = next(n for n in range(least, positions + 1) if positions % n == 0)
        # In float32 outside of the loop, so that the sum of its gradient over blocks is float32 too.
        return partial(in_blocks, self._scores, self._table.astype(jnp.float32), x_BTD, count)

    def _scores(self, x_BTD: jax.Array, table: jax.Array) -> jax.Array:
        """`scores` with the table as an argument, so that a loop over blocks can differentiate it."""
        table = table.astype(x_BTD.dtype)
        if self._axis is None:
            if table.shape[0] == 1:
                scores = x_BTD @ table[0].T
            else:
                scores = join(jax.vmap(lambda x, table: x @ table.T)(split(x_BTD), table))
            return scores if self._words in (None, scores.shape[-1]) else scores[..., : self._words]
        scores, local_rows = x_BTD @ table.T, table.shape[0]
        if self._words in (None, local_rows * jax.lax.axis_size(self._axis)):
            return scores
        number = jax.lax.axis_index(self._axis) * local_rows + jnp.arange(local_rows)
        return jnp.where(number < self._words, scores, jnp.finfo(scores.dtype).min)


def score_bytes(positions: int, rows: int) -> int:
    """The bytes of a device's float32 scores of all its positions. rows: of the table, on the device."""
    return 4 * positions * rows


def _whole(x_BTD: jax.Array) -> jax.Array:
    """All positions, gathered from the devices of the tensor axis if these share them."""
    context = sharding_context.current()
    if context.tensor is None or not context.sequence:
        return x_BTD
    return jax.lax.all_gather(x_BTD, context.tensor, axis=1, tiled=True)


def _summed(x_BTD: jax.Array) -> jax.Array:
    """The sum over the tensor axis; of each device's positions if these are shared."""
    context = sharding_context.current()
    axis = present(context.tensor)
    if context.sequence:
        return jax.lax.psum_scatter(x_BTD, axis, scatter_dimension=1, tiled=True)
    return jax.lax.psum(x_BTD, axis)


Named = tuple[str, int, int]  # the path of a layer's parameters, its inputs and its outputs


def apply_dense(layers: Sequence[nnx.Linear], x_BF: jax.Array) -> jax.Array:
    """(B, features) to (B, outputs of the last layer)."""
    for number, layer in enumerate(layers):
        x_BF = nnx.relu(x_BF) if number else x_BF
        x_BF = (row if number % 2 else column)(layer, x_BF)
    return x_BF


def own_examples(x_BHWC: jax.Array) -> jax.Array:
    """The examples for which this device of the axis `tensor` computes the convolutions: an equal part, or all.

    Raises UserError for examples that do not divide.
    """
    axis = sharding_context.current().tensor
    if axis is None:
        return x_BHWC
    devices, examples = jax.lax.axis_size(axis), x_BHWC.shape[0]
    if examples % devices:
        raise UserError(
            f"the {examples} examples of a step do not divide over the {devices} devices of the mesh axis {axis}, and "
            f"each device computes the convolutions of its own: use {-(-examples // devices) * devices}, for example."
        )
    part = examples // devices
    return jax.lax.dynamic_slice_in_dim(x_BHWC, jax.lax.axis_index(axis) * part, part)


def all_examples(x_BF: jax.Array) -> jax.Array:
    """The features of all examples, gathered from those of `own_examples`.

    In the backward pass each device gets the sum of the gradients of its own examples' features.
    """
    axis = sharding_context.current().tensor
    return x_BF if axis is None else jax.lax.all_gather(x_BF, axis, tiled=True)


def dense_partition(layers: Sequence[Named], *, convolutions: str = "") -> Partition:
    """The Partition of the layers. convolutions: the pattern of the parameters before them; "" if there are none.

    The forward pass sums the outputs of each pair over devices. The backward pass sums the gradient of each pair's
    input, except the first: that is the example itself, or the features that were gathered.
    """
    axes: dict[str, tuple[str | None, ...]] = {}
    pairs = [*zip(layers[::2], layers[1::2], strict=False)]  # a last layer without a partner stays whole
    for (first, _, _), (second, _, _) in pairs:
        axes[f"{first}/kernel"], axes[f"{first}/bias"] = (None, "hidden"), ("hidden",)
        axes[f"{second}/kernel"] = ("hidden", None)  # its bias is added after the sum, so every device has all of it
    summed = sum(second[2] for _, second in pairs) + sum(first[1] for first, _ in pairs[1:])
    gathered = layers[0][1] if convolutions else 0

    def collective_bounds(share: DeviceShare) -> CollectiveBounds:
        devices = share.over("tensor")
        if devices == 1:
            return {}
        sent, features = summed * share.examples, gathered * share.examples
        bounds: CollectiveBounds = {"all-reduce": (sent, sent)}
        if gathered:
            bounds |= {"all-gather": (features, features), "reduce-scatter": (features // devices,) * 2}
        return bounds

    return Partition(
        axes=axes, collective_bounds=collective_bounds, own_examples=(convolutions,) if convolutions else ()
    )
