# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How a GPT is split over devices: the table of its parameters, what its layers then send, and its stages.

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

# The logical axis of each dimension; what is not named here (positions, norms, the biases of the products split by
# rows, the router) is whole on every device.
AXES: dict[str, tuple[str | None, ...]] = {
    "tokens": ("vocab", None),
    "blocks/*/attention/qkv/kernel": (None, None, "heads", None),
    "blocks/*/attention/qkv/bias": (None, "heads", None),
    "blocks/*/attention/out/kernel": ("heads", None, None),
    "blocks/*/perceptron/up/kernel": (None, "hidden"),
    "blocks/*/perceptron/up/bias": ("hidden",),
    "blocks/*/perceptron/down/kernel": ("hidden", None),
}
# The perceptron of a block with experts, in place of the three above it.
EXPERTS: dict[str, tuple[str | None, ...]] = {
    "blocks/*/perceptron/up_kernel": ("experts", None, None),
    "blocks/*/perceptron/up_bias": ("experts", None),
    "blocks/*/perceptron/down_kernel": ("experts", None, None),
    "blocks/*/perceptron/down_bias": ("experts", None),
}


def partition(config: ConfigDict, *, remat: str = "none", weights: str | None = None) -> Partition:
    """config: as `gpt.shape` reads it. remat: the lever. weights: as `losses_sequence.next_token` takes them."""
    shape = gpt.shape(config)
    dense = {path: axes for path, axes in AXES.items() if "perceptron" not in path}
    return Partition(
        axes={**dense, **EXPERTS} if shape.experts else AXES,
        wire=partial(wire, shape, again=remat != "none"),
        positions=shape.context,
        stages=None if shape.experts else stages(config, remat, weights),
    )


def wire(shape: gpt.Shape, share: DeviceShare, *, again: bool) -> CollectiveBounds:
    """The closed form of one forward and backward pass on one device. again: activations are recomputed."""
    held = share.examples * shape.context // share.over("context")  # positions of all examples on a device
    found: CollectiveBounds = {}
    if share.over("tensor") > 1:
        found |= _tensor(shape, share, held, again=again)
    ring = share.over("context")
    if ring > 1:
        part = held * shape.width // share.over("tensor")  # keys, or values, of one block
        # Keys and values go round in the forward and in the backward pass, and their gradients all the way home.
        once, back = 2 * (ring - 1) * part, (2 * (ring - 1) + 2 * ring) * part
        found["collective-permute"] = _times(shape.layers, once + back, again * once)
    if share.over("expert") > 1:
        sent = share.examples * shape.experts * mixture.capacity(shape.context, shape.experts) * shape.width
        found["all-to-all"] = _times(shape.layers, 4 * sent, again * 2 * sent)
    return found


def _tensor(shape: gpt.Shape, share: DeviceShare, held: int, *, again: bool) -> CollectiveBounds:
    """Four sums of activations a block, one for the embedding's lookup and one for the gradient of what is scored; and
    four numbers a position for the loss. With positions split, each sum is a reduce-scatter and has an all-gather, and
    what is whole on every device has seen only some positions: its gradient is summed."""
    act, blocks = held * shape.width, share.blocks or shape.layers
    backward = "backward" in share.passes
    loss, more = backward * 4 * held, backward * again * 2 * blocks
    sums = len(share.passes) * (2 * blocks + 1)
    if not share.sequence:
        return {"all-reduce": (sums * act + loss, (sums + more) * act + loss)}
    partly = (shape.layers * 6 + 2 + shape.context // share.over("context")) * shape.width
    size = share.over("tensor")
    return {
        "all-gather": (sums * act, (sums + more) * act),
        "reduce-scatter": (sums * act // size, (sums + more) * act // size),
        "all-reduce": (loss + partly, loss + partly),
    }


def _times(count: int, least: int, more: int) -> tuple[int, int]:
    return count * least, count * (least + more)


def stages(config: ConfigDict, remat: str, weights: str | None = None) -> Stages:
    """The model as a row of blocks, with the embedding before the first and norm, scores and loss after the last."""
    shape = gpt.shape(config)
    block = from_nnx(partial(gpt.Block, shape))
    norm = from_nnx(partial(gpt.norm, shape.width))

    def first(params: PyTree, x: Any, batch: Batch, key: jax.Array) -> jax.Array:
        del x, key
        given = positions.held(batch["tokens"][:, :-1])
        return gpt.embedded(Vocabulary(params["tokens"], given), params["positions"], given.shape[1])

    def middle(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> jax.Array:
        del batch, key
        return block.apply(params, {}, x)[0]

    def last(params: PyTree, x: jax.Array, batch: Batch, key: jax.Array) -> tuple[Any, Metrics]:
        del key
        given = positions.held(batch["tokens"][:, :-1])
        logits = Vocabulary(params["tokens"], given, shape.vocab).scores(norm.apply(params["norm"], {}, x)[0])
        return score(logits, batch, weights=weights)

    return Stages(first=first, block=middle, last=last, remat=remat)
