# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Splits a GPT over devices: the axes of its parameters, the communication of its layers, and its pipeline stages.

In the formulas: b examples of a micro-batch on a device, t positions, d width, l blocks; act = b t d numbers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from ml_collections import ConfigDict

from jaxbench.workloads import positions
from jaxbench.workloads.adapters import from_nnx
from jaxbench.workloads.base import Batch, CollectiveBounds, DeviceShare, Metrics, Partition, PyTree, Stages
from jaxbench.workloads.losses_sequence import score
from jaxbench.workloads.models import gpt, mixture
from jaxbench.workloads.models.tensor_parallel import Vocabulary

# Logical axes by dimension. All else (positions, norms, biases of row-parallel products, router) is replicated.
AXES: dict[str, tuple[str | None, ...]] = {
    "tokens": ("vocab", None),
    "blocks/*/attention/qkv/kernel": (None, None, "heads", None),
    "blocks/*/attention/qkv/bias": (None, "heads", None),
    "blocks/*/attention/grouped/kernel": (None, "heads", None, None),
    "blocks/*/attention/grouped/bias": ("heads", None, None),
    "blocks/*/attention/out/kernel": ("heads", None, None),
    "blocks/*/perceptron/up/kernel": (None, "hidden"),
    "blocks/*/perceptron/up/bias": ("hidden",),
    "blocks/*/perceptron/gate/kernel": (None, "hidden"),
    "blocks/*/perceptron/gate/bias": ("hidden",),
    "blocks/*/perceptron/down/kernel": ("hidden", None),
}
# The perceptron of a block with experts, which replaces that of AXES.
EXPERTS: dict[str, tuple[str | None, ...]] = {
    "blocks/*/perceptron/up_kernel": ("experts", None, None),
    "blocks/*/perceptron/up_bias": ("experts", None),
    "blocks/*/perceptron/down_kernel": ("experts", None, None),
    "blocks/*/perceptron/down_bias": ("experts", None),
}


def partition(config: ConfigDict, *, remat: str = "none", weights: str | None = None) -> Partition:
    """The Partition of a GPT. config: as `gpt.shape` reads it. remat: the lever. weights: as in
    `losses_sequence.next_token`."""
    shape = gpt.shape(config)
    dense = {path: axes for path, axes in AXES.items() if "perceptron" not in path}
    return Partition(
        axes={**dense, **EXPERTS} if shape.experts else AXES,
        collective_bounds=partial(collective_bounds, shape, recomputed=remat != "none"),
        positions=shape.context,
        stages=None if shape.experts else stages(config, remat, weights),
    )


def collective_bounds(shape: gpt.Dimensions, share: DeviceShare, *, recomputed: bool) -> CollectiveBounds:
    """The expected communication of one forward and backward pass on one device."""
    positions_held = share.examples * shape.context // share.over("context")  # positions of all examples on a device
    bounds: CollectiveBounds = {}
    if share.over("tensor") > 1:
        bounds |= _tensor(shape, share, positions_held, recomputed=recomputed)
    ring = share.over("context")
    if ring > 1:
        part = positions_held * shape.heads * shape.head // share.over("tensor")  # keys, or values, of one block
        # Keys and values travel the ring in both passes. In the backward pass their gradients return to their device.
        once, back = 2 * (ring - 1) * part, (2 * (ring - 1) + 2 * ring) * part
        bounds["collective-permute"] = _times(shape.layers, once + back, recomputed * once)
    if share.over("expert") > 1:
        sent = share.examples * shape.experts * mixture.capacity(shape.context, shape.experts) * shape.width
        bounds["all-to-all"] = _times(shape.layers, 4 * sent, recomputed * 2 * sent)
    return bounds


def _tensor(shape: gpt.Dimensions, share: DeviceShare, positions_held: int, *, recomputed: bool) -> CollectiveBounds:
    """The expected communication over `tensor`.

    There are four sums of activations for each block, one for the embedding lookup, one for the gradient of the scores'
    input, and four numbers per position for the loss. If positions are split, each sum becomes a reduce-scatter and an
    all-gather. The gradients of replicated parameters are then summed, because each device has only some positions.
    """
    act, blocks = positions_held * shape.width, share.blocks or shape.layers
    backward = "backward" in share.passes
    loss, more = backward * 4 * positions_held, backward * recomputed * 2 * blocks
    sums = len(share.passes) * (2 * blocks + 1)
    if not share.sequence:
        return {"all-reduce": (sums * act + loss, (sums + more) * act + loss)}
    norm, bias = (1, 0) if shape.rms else (2, 1)  # vectors of a normalisation, and of a product that is split by rows
    vectors = shape.layers * 2 * (norm + bias) + norm
    partly = (vectors + shape.context // share.over("context")) * shape.width
    size = share.over("tensor")
    return {
        "all-gather": (sums * act, (sums + more) * act),
        "reduce-scatter": (sums * act // size, (sums + more) * act // size),
        "all-reduce": (loss + partly, loss + partly),
    }


def _times(count: int, least: int, more: int) -> tuple[int, int]:
    return count * least, count * (least + more)


def stages(config: ConfigDict, remat: str, weights: str | None = None) -> Stages:
    """The blocks, with the embedding as prologue and the norm, scores and loss as epilogue."""
    shape = gpt.shape(config)
    block = from_nnx(partial(gpt.Block, shape, gpt.kernel(config)))
    norm = from_nnx(partial(gpt.norm, shape))

    def first(params: PyTree, x: Any, batch: Batch, key: jax.Array) -> jax.Array:
        del x, key
        tokens = positions.local(batch["tokens"][:, :-1])
        return gpt.embedded(Vocabulary(params["tokens"], tokens), params["positions"], tokens.shape[1])

    def middle(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> jax.Array:
        del batch, key
        return block.apply(params, {}, x)[0]

    def last(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> tuple[Any, Metrics]:
        del key
        tokens = positions.local(batch["tokens"][:, :-1])
        logits = Vocabulary(params["tokens"], tokens, shape.vocab).scores(norm.apply(params["norm"], {}, x)[0])
        return score(logits, batch, weights=weights)

    return Stages(first=first, block=middle, last=last, remat=remat)
