# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Image classifiers: AlexNet, VGG-16, residual networks and the Vision Transformer.

AlexNet is that of torchvision: "One weird trick for parallelizing convolutional neural networks", arXiv:1404.5997.
VGG-16 is configuration D of Simonyan and Zisserman, arXiv:1409.1556.

The residual networks are ResNet-18 and ResNet-50 (He et al., arXiv:1512.03385) and the pre-activation ResNet-164.
ResNet-50 is version 1.5: the stride is in the 3x3 convolution, as in PyTorch. The pre-activation network ("Identity
Mappings in Deep Residual Networks", arXiv:1603.05027, for 32x32 images) has it in the first 1x1, as in the paper.

The Vision Transformer (Dosovitskiy et al., arXiv:2010.11929) has a class token. The sizes of S/16 are DeiT's,
arXiv:2012.12877.

The papers' dropout is omitted, so all strategies compute the same numbers.
Shapes: B batch, H height, W width, C channels, F features, T tokens, S tokens attended to, D width, N heads, K width of
a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.core.workload import Field, TrainWorkload
from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads.adapters import from_nnx
from jaxbench.workloads.flops import conv2d, dense, training
from jaxbench.workloads.losses import classification, evaluation, prediction
from jaxbench.workloads.models import sharded_layers
from jaxbench.workloads.models.blocks import run_blocks
from jaxbench.workloads.models.image_layers import BatchNorm, average_to, conv, max_pool, out_side
from jaxbench.workloads.optimizers import make_optimizer, tolerance

STEMS = ("imagenet", "cifar")  # 7x7 of stride 2 and a max-pool of stride 2; or 3x3
KERNELS = {"basic": (3, 3), "bottleneck": (1, 3, 1), "preactivation": (1, 3, 1)}
STRIDED = {"basic": 0, "bottleneck": 1, "preactivation": 0}  # the kernel with the stride
EXPANSION = {"basic": 1, "bottleneck": 4, "preactivation": 4}  # output channels of a block over its inner ones
MLP = 4  # hidden width of a block, in widths
EPSILON = 1e-6  # as in the authors' code


class Layer(NamedTuple):
    """A convolution. multiple: its channels, in config.width. pool: the window of a max-pool of stride 2 after it."""

    multiple: int
    pool: int = 0
    kernel: int = 3
    stride: int = 1
    padding: int = 1


Layers = tuple[Layer, ...]


class ConvNet(nnx.Module):
    """Convolutions and max-pools, then three dense layers. `config`: size, classes, width, hidden, pooled."""

    def __init__(self, config: ConfigDict, layers: Layers, rngs: nnx.Rngs):
        """Raises UserError unless ``config.pooled`` divides the side of the average pool's input."""
        side = _sides(config, layers)[-1]
        if side < 1:
            raise UserError(
                f"--config.model.size={config.size} is too small: nothing is left after the pools; use 224."
            )
        if config.pooled < 1 or side % config.pooled:
            raise UserError(
                f"--config.model.pooled={config.pooled} does not divide the {side} pixels that --config.model.size="
                f"{config.size} leaves: use {side}, for example."
            )
        widths = [3, *(config.width * layer.multiple for layer in layers)]
        self.convolutions = nnx.List(
            conv(i, o, kernel=layer.kernel, stride=layer.stride, padding=layer.padding, bias=True, rngs=rngs)
            for i, o, layer in zip(widths[:-1], widths[1:], layers, strict=True)
        )
        *hidden, logits = _dense_sizes(config, layers)
        self.hidden = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in hidden)
        self.logits = nnx.Linear(*logits, rngs=rngs)
        self.pools, self.pooled = tuple(layer.pool for layer in layers), config.pooled

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        x_BHWC = sharded_layers.own_examples(x_BHWC)
        for convolution, window in zip(self.convolutions, self.pools, strict=True):
            x_BHWC = nnx.relu(convolution(x_BHWC))
            x_BHWC = max_pool(x_BHWC, window) if window else x_BHWC
        x_BF = average_to(x_BHWC, self.pooled).reshape(x_BHWC.shape[0], -1)
        return sharded_layers.apply_dense([*self.hidden, self.logits], sharded_layers.all_examples(x_BF))


def _dense_sizes(config: ConfigDict, layers: Layers) -> list[tuple[int, int]]:
    """(inputs, outputs) of the three dense layers after the average pool."""
    features = config.pooled**2 * config.width * layers[-1].multiple
    return [(features, config.hidden), (config.hidden, config.hidden), (config.hidden, config.classes)]


def _sides(config: ConfigDict, layers: Layers) -> list[int]:
    """The side of each convolution's output, then the side of the last pool's output."""
    sides, side = [], config.size
    for layer in layers:
        side = out_side(side, kernel=layer.kernel, stride=layer.stride, padding=layer.padding)
        sides.append(side)
        side = out_side(side, kernel=layer.pool, stride=2, padding=0) if layer.pool else side
    return [*sides, side]


def convnet(name: str, layers: Layers, config: ConfigDict) -> TrainWorkload:
    """The workload of AlexNet or VGG-16."""
    model, flops, channels = config.model, [], 3
    for side, layer in zip(_sides(model, layers), layers, strict=False):  # not the side after the last pool
        flops.append(conv2d(side, side, kernel=layer.kernel, inputs=channels, outputs=model.width * layer.multiple))
        channels = model.width * layer.multiple
    sizes = _dense_sizes(model, layers)
    names = ("hidden/0", "hidden/1", "logits")  # the paths of `ConvNet`'s parameters
    dense_layers = [(path, *inputs_outputs) for path, inputs_outputs in zip(names, sizes, strict=True)]
    partition = sharded_layers.dense_partition(dense_layers, convolutions="convolutions/*")
    flops += [dense(i, o) for i, o in sizes]
    return image_classifier(name, lambda rngs: ConvNet(model, layers, rngs), config, flops, partition=partition)


def image_classifier(
    name: str, constructor: Callable[[Any], Any], config: Any, flops: list[float], **facts: Any
) -> TrainWorkload:
    """The workload of an NNX model of RGB images with `config.model.size` pixels and `config.model.classes` classes.

    constructor: rngs -> module. flops: forward FLOPs of each layer for one image. facts: further fields of the
    TrainWorkload.
    """
    model = from_nnx(constructor)
    size, classes = config.model.size, config.model.classes
    return TrainWorkload(
        name=name,
        init=model.init,
        loss=classification(model),
        evaluate=evaluation(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((size, size, 3)), "label": Field((), jnp.int32, classes=classes)},
        flops_per_example=training(flops),
        unit="images",
        **tolerance(config.optimizer.name),
        **facts,
    )


class ResNet(nnx.Module):
    """`config`: size, classes, stem, width (channels of the stem), block, blocks (by stage: "2,2,2,2"), statistics.

    Each stage after the first halves the image and doubles the channels. remat: see `blocks.run_blocks`.
    """

    def __init__(self, config: ConfigDict, remat: str, rngs: nnx.Rngs):
        kernel, stride = _stem(config)
        self.stem = conv(3, config.width, kernel=kernel, stride=stride, rngs=rngs)
        self.preactivation = config.block == "preactivation"
        plan = _block_plan(config)
        if not self.preactivation:
            self.norm = BatchNorm(config.width, statistics=config.statistics)
        kind = PreactivationBlock if self.preactivation else ResidualBlock
        # As in GPT-2, so that the sum over blocks does not grow with their number (De and Smith, arXiv:2002.10444).
        # Without it, rounding alone reverses the gradient of a deep network within two updates (ResNet-50 and
        # ResNet-164, one device compared with itself), and no strategy could be shown to be correct.
        gain = 1 / math.sqrt(len(plan))
        self.blocks = nnx.List(kind(config, i, w, s, gain=gain, rngs=rngs) for i, w, s in plan)
        features = plan[-1][1] * EXPANSION[config.block]
        if self.preactivation:
            self.norm = BatchNorm(features, statistics=config.statistics)
        self.logits = nnx.Linear(features, config.classes, rngs=rngs)
        self.pooled, self.remat = config.stem == "imagenet", remat

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        x_BHWC = self.stem(x_BHWC)
        if not self.preactivation:
            x_BHWC = nnx.relu(self.norm(x_BHWC))
        if self.pooled:
            x_BHWC = max_pool(x_BHWC, 3, padding=1)
        x_BHWC = run_blocks(self.blocks, x_BHWC, self.remat)
        if self.preactivation:
            x_BHWC = nnx.relu(self.norm(x_BHWC))
        return self.logits(jnp.mean(x_BHWC, axis=(1, 2)))


class ResidualBlock(nnx.Module):
    """x -> relu(shortcut(x) + norm(conv(... relu(norm(conv(x)))))); the shortcut is a 1x1 if the shape changes.

    gain: the initial scale of the branch added to the shortcut.
    """

    def __init__(self, config: ConfigDict, inputs: int, width: int, stride: int, *, gain: float, rngs: nnx.Rngs):
        convolutions = _block_convolutions(config.block, inputs, width, stride)
        outputs = convolutions[-1][2]
        self.convolutions = nnx.List(conv(i, o, kernel=k, stride=s, rngs=rngs) for k, i, o, s in convolutions)
        self.norms = nnx.List(BatchNorm(o, statistics=config.statistics) for _, _, o, _ in convolutions[:-1])
        # The scale of the last norm, because nothing after it could undo the gain.
        self.norms.append(BatchNorm(outputs, statistics=config.statistics, scale=gain))
        self.projected = stride > 1 or inputs != outputs  # option B of the paper; x itself wherever it fits
        if self.projected:
            self.shortcut = conv(inputs, outputs, kernel=1, stride=stride, rngs=rngs)
            self.shortcut_norm = BatchNorm(outputs, statistics=config.statistics)

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        shortcut_BHWC = self.shortcut_norm(self.shortcut(x_BHWC)) if self.projected else x_BHWC
        for convolution, norm in zip(self.convolutions[:-1], self.norms[:-1], strict=True):
            x_BHWC = nnx.relu(norm(convolution(x_BHWC)))
        return nnx.relu(self.norms[-1](self.convolutions[-1](x_BHWC)) + shortcut_BHWC)


class PreactivationBlock(nnx.Module):
    """x -> x + conv(relu(norm(...))); if the shape changes, a 1x1 of the first relu(norm(x)) replaces x.

    gain: the initial scale of the branch added to x, applied to its last convolution.
    """

    def __init__(self, config: ConfigDict, inputs: int, width: int, stride: int, *, gain: float, rngs: nnx.Rngs):
        convolutions = _block_convolutions(config.block, inputs, width, stride)
        outputs = convolutions[-1][2]
        self.norms = nnx.List(BatchNorm(i, statistics=config.statistics) for _, i, _, _ in convolutions)
        gains = [*[1.0] * (len(convolutions) - 1), gain]  # the branch ends with a convolution, not a norm
        self.convolutions = nnx.List(
            conv(i, o, kernel=k, stride=s, gain=g, rngs=rngs)
            for (k, i, o, s), g in zip(convolutions, gains, strict=True)
        )
        self.projected = stride > 1 or inputs != outputs
        if self.projected:
            self.shortcut = conv(inputs, outputs, kernel=1, stride=stride, rngs=rngs)

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        active_BHWC = nnx.relu(self.norms[0](x_BHWC))
        shortcut_BHWC = self.shortcut(active_BHWC) if self.projected else x_BHWC
        y_BHWC = self.convolutions[0](active_BHWC)
        for convolution, norm in zip(self.convolutions[1:], self.norms[1:], strict=True):
            y_BHWC = convolution(nnx.relu(norm(y_BHWC)))
        return shortcut_BHWC + y_BHWC


def stage_blocks(config: ConfigDict) -> list[int]:
    """``config.blocks``, "3,4,6,3", as numbers. Raises UserError if it is not a list of counts."""
    words = [word.strip() for word in str(config.blocks).split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"--config.model.blocks={config.blocks} is not a list of counts such as 2,2,2,2.")
    return [int(word) for word in words]


def resnet_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image."""
    kernel, stride = _stem(config)  # refuses an unknown stem or block
    side = out_side(config.size, kernel=kernel, stride=stride)
    flops = [conv2d(side, side, kernel=kernel, inputs=3, outputs=config.width)]
    if config.stem == "imagenet":
        side = out_side(side, kernel=3, stride=2)
    for inputs, width, stride in _block_plan(config):
        for kernel, i, o, s in _block_convolutions(config.block, inputs, width, stride):
            side = out_side(side, kernel=kernel, stride=s)
            flops.append(conv2d(side, side, kernel=kernel, inputs=i, outputs=o))
        if stride > 1 or inputs != o:
            flops.append(conv2d(side, side, kernel=1, inputs=inputs, outputs=o))
    return [*flops, dense(o, config.classes)]


def _stem(config: ConfigDict) -> tuple[int, int]:
    """(kernel, stride) of the first convolution."""
    for field, legal in (("stem", STEMS), ("block", tuple(KERNELS))):
        if config[field] not in legal:
            raise UserError(f"--config.model.{field}={config[field]} is unknown: {did_you_mean(config[field], legal)}")
    return (7, 2) if config.stem == "imagenet" else (3, 1)


def _block_plan(config: ConfigDict) -> list[tuple[int, int, int]]:
    """(input channels, width, stride) of each block."""
    plan, channels = [], config.width
    for stage, count in enumerate(stage_blocks(config)):
        width = config.width * 2**stage
        for number in range(count):
            # Only the first block of a later stage halves the image.
            plan.append((channels, width, 2 if stage and not number else 1))
            channels = width * EXPANSION[config.block]
    return plan


def _block_convolutions(block: str, inputs: int, width: int, stride: int) -> list[tuple[int, int, int, int]]:
    """(kernel, inputs, outputs, stride) of each convolution of a block, without the shortcut."""
    kernels = KERNELS[block]
    channels = [inputs, *[width] * (len(kernels) - 1), width * EXPANSION[block]]
    strides = [stride if place == STRIDED[block] else 1 for place in range(len(kernels))]
    return list(zip(kernels, channels[:-1], channels[1:], strides, strict=True))


class ViT(nnx.Module):
    """`config`: size, patch, classes, width, depth, heads. remat: see `blocks.run_blocks`."""

    def __init__(self, config: ConfigDict, remat: str, rngs: nnx.Rngs):
        _check_vit(config)
        init = nnx.initializers.normal(0.02)
        self.patches = nnx.Conv(
            3, config.width, (config.patch, config.patch), strides=config.patch, padding="VALID", rngs=rngs
        )
        self.class_token = nnx.Param(jnp.zeros((1, 1, config.width)))
        self.positions = nnx.Param(init(rngs.params(), (1, tokens(config), config.width)))
        self.blocks = nnx.List(TransformerBlock(config.width, config.heads, rngs) for _ in range(config.depth))
        self.norm = _layer_norm(config.width, rngs)
        self.logits = nnx.Linear(config.width, config.classes, rngs=rngs)
        self.remat = remat

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        x_BHWD = self.patches(x_BHWC)
        x_BTD = x_BHWD.reshape(x_BHWD.shape[0], -1, x_BHWD.shape[-1])
        # Not broadcast_to: a sum with a slice of the batch inherits the sharding of the batch.
        class_B1D = jnp.zeros_like(x_BTD[:, :1]) + self.class_token[...].astype(x_BTD.dtype)
        x_BTD = jnp.concatenate([class_B1D, x_BTD], axis=1) + self.positions[...].astype(x_BTD.dtype)
        x_BTD = self.norm(run_blocks(self.blocks, x_BTD, self.remat))
        return self.logits(x_BTD[:, 0])


class TransformerBlock(nnx.Module):
    """Pre-norm self-attention, then two dense layers with GELU, each with a residual connection."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm1, self.norm2 = _layer_norm(width, rngs), _layer_norm(width, rngs)
        self.qkv, self.out = nnx.Linear(width, 3 * width, rngs=rngs), nnx.Linear(width, width, rngs=rngs)
        self.hidden, self.back = nnx.Linear(width, MLP * width, rngs=rngs), nnx.Linear(MLP * width, width, rngs=rngs)
        self.heads = heads

    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        x_BTD = x_BTD + self._attention(self.norm1(x_BTD))
        # The tanh form, as in the authors' code. (JAX 0.12 refuses `erf` inside `shard_map`.)
        return x_BTD + self.back(jax.nn.gelu(self.hidden(self.norm2(x_BTD)), approximate=True))

    def _attention(self, x_BTD: jax.Array) -> jax.Array:
        """Attention over all tokens of an image."""
        batch, count, width = x_BTD.shape
        qkv = self.qkv(x_BTD).reshape(batch, count, 3, self.heads, width // self.heads)
        q_BTNK, k_BSNK, v_BSNK = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores_BNTS = jnp.einsum("btnk,bsnk->bnts", q_BTNK, k_BSNK).astype(jnp.float32)
        # In float32, because a sum over many tokens loses too much in 16 bits.
        weight_BNTS = jax.nn.softmax(scores_BNTS * (width // self.heads) ** -0.5, axis=-1).astype(x_BTD.dtype)
        mixed_BTNK = jnp.einsum("bnts,bsnk->btnk", weight_BNTS, v_BSNK)
        return self.out(mixed_BTNK.reshape(batch, count, width))


def tokens(config: ConfigDict) -> int:
    """The patches of an image and the class token."""
    return (config.size // config.patch) ** 2 + 1


def vit_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image; the attention's two products are one layer."""
    count, width = tokens(config), config.width
    block = [count * dense(width, 3 * width), 2 * count * dense(width, count), count * dense(width, width)]
    block += [count * dense(width, MLP * width), count * dense(MLP * width, width)]
    patches = (count - 1) * dense(3 * config.patch**2, width)
    return [patches, *block * config.depth, dense(width, config.classes)]


def _layer_norm(width: int, rngs: nnx.Rngs) -> nnx.LayerNorm:
    """A LayerNorm with float32 statistics."""
    # In two passes: the mean of squares minus the squared mean loses digits.
    return nnx.LayerNorm(width, epsilon=EPSILON, use_fast_variance=False, rngs=rngs)


def _check_vit(config: ConfigDict) -> None:
    if config.patch < 1 or config.size % config.patch or config.size < config.patch:
        size = max(1, round(config.size / max(1, config.patch))) * max(1, config.patch)
        raise UserError(
            f"--config.model.size={config.size} is not a multiple of --config.model.patch={config.patch}: use {size}."
        )
    if config.heads < 1 or config.width % config.heads:
        raise UserError(
            f"--config.model.heads={config.heads} does not divide --config.model.width={config.width}: use 1, for "
            "example."
        )
