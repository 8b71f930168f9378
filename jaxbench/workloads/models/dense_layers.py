# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Dense layers with ReLU between them, split over the axis `tensor` in pairs.

The first layer of a pair is split by its outputs, the second by its inputs. A last layer without a partner is
replicated.

After convolutions this is the mixture of Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
arXiv:1404.5997: each device computes the convolutions of its own examples, then gathers the features of all devices'
examples, and applies its part of the dense layers to them. So the gradients of split dense layers are not sent.

Axes: B examples, F features.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
from flax import nnx

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.base import CollectiveBounds, DeviceShare, Partition
from jaxbench.workloads.models.tensor_parallel import column, row

Named = tuple[str, int, int]  # the path of a layer's parameters, its inputs and its outputs


def apply(layers: Sequence[nnx.Linear], x_BF: jax.Array) -> jax.Array:
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


def partition(layers: Sequence[Named], *, convolutions: str = "") -> Partition:
    """The Partition of the layers. convolutions: the pattern of the parameters before them; "" if there are none.

    The forward pass sums the outputs of each pair over devices. The backward pass sums the gradient of each pair's
    input, except the first: that is the example itself, or the features that were gathered.
    """
    axes: dict[str, tuple[str | None, ...]] = {}
    pairs = [*zip(layers[::2], layers[1::2], strict=False)]
    for (first, _, _), (second, _, _) in pairs:
        axes[f"{first}/kernel"], axes[f"{first}/bias"] = (None, "hidden"), ("hidden",)
        axes[f"{second}/kernel"] = ("hidden", None)
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
