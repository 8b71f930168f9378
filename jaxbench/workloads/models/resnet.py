# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Residual networks: ResNet-18 and ResNet-50 (He et al., arXiv:1512.03385) and the pre-activation ResNet-164.

ResNet-50 is version 1.5: the stride is in the 3x3 convolution, as in PyTorch. The pre-activation network ("Identity
Mappings in Deep Residual Networks", arXiv:1603.05027, for 32x32 images) has it in the first 1x1, as in the paper.

The initial output of each of n blocks is scaled by 1 / sqrt(n), as in GPT-2, so the sum does not grow with n (De and
Smith, arXiv:2002.10444). Without the scale, rounding alone reverses the gradient of a deep network within two updates
(ResNet-50 and ResNet-164, one device compared with itself), and no strategy could be shown to be correct.
Shapes: B batch, H height, W width, C channels.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads.flops import conv2d, dense
from jaxbench.workloads.models import blocks
from jaxbench.workloads.models.conv import conv, out_side
from jaxbench.workloads.models.norm import BatchNorm
from jaxbench.workloads.models.pool import max_pool

STEMS = ("imagenet", "cifar")  # 7x7 of stride 2 and a max-pool of stride 2; or 3x3
KERNELS = {"basic": (3, 3), "bottleneck": (1, 3, 1), "preactivation": (1, 3, 1)}
STRIDED = {"basic": 0, "bottleneck": 1, "preactivation": 0}  # the kernel with the stride
EXPANSION = {"basic": 1, "bottleneck": 4, "preactivation": 4}


class ResNet(nnx.Module):
    """`config`: size, classes, stem, width (channels of the stem), block, blocks (by stage: "2,2,2,2"), statistics.

    Each stage after the first halves the image and doubles the channels. remat: see `blocks.run`.
    """

    def __init__(self, config: ConfigDict, remat: str, rngs: nnx.Rngs):
        kernel, stride = _stem(config)
        self.stem = conv(3, config.width, kernel=kernel, stride=stride, rngs=rngs)
        self.preactivation = config.block == "preactivation"
        plan = _plan(config)
        if not self.preactivation:
            self.norm = BatchNorm(config.width, statistics=config.statistics)
        kind = PreactivationBlock if self.preactivation else Block
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
            x_BHWC = max_pool(x_BHWC, 3, stride=2, padding=1)
        x_BHWC = blocks.run(self.blocks, x_BHWC, self.remat)
        if self.preactivation:
            x_BHWC = nnx.relu(self.norm(x_BHWC))
        return self.logits(jnp.mean(x_BHWC, axis=(1, 2)))


class Block(nnx.Module):
    """x -> relu(shortcut(x) + norm(conv(... relu(norm(conv(x)))))); the shortcut is a 1x1 if the shape changes.

    gain: the initial scale of the branch added to the shortcut.
    """

    def __init__(self, config: ConfigDict, inputs: int, width: int, stride: int, *, gain: float, rngs: nnx.Rngs):
        convolutions = _convolutions(config.block, inputs, width, stride)
        outputs = convolutions[-1][2]
        self.convolutions = nnx.List(conv(i, o, kernel=k, stride=s, rngs=rngs) for k, i, o, s in convolutions)
        self.norms = nnx.List(BatchNorm(o, statistics=config.statistics) for _, _, o, _ in convolutions[:-1])
        self.norms.append(BatchNorm(outputs, statistics=config.statistics, scale=gain))
        self.projected = stride > 1 or inputs != outputs
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
        convolutions = _convolutions(config.block, inputs, width, stride)
        outputs = convolutions[-1][2]
        self.norms = nnx.List(BatchNorm(i, statistics=config.statistics) for _, i, _, _ in convolutions)
        gains = [*[1.0] * (len(convolutions) - 1), gain]
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


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image."""
    kernel, stride = _stem(config)
    side = out_side(config.size, kernel=kernel, stride=stride)
    flops = [conv2d(side, side, kernel=kernel, inputs=3, outputs=config.width)]
    if config.stem == "imagenet":
        side = out_side(side, kernel=3, stride=2)
    for inputs, width, stride in _plan(config):
        for kernel, i, o, s in _convolutions(config.block, inputs, width, stride):
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


def _plan(config: ConfigDict) -> list[tuple[int, int, int]]:
    """(input channels, width, stride) of each block."""
    plan, channels = [], config.width
    for stage, count in enumerate(stage_blocks(config)):
        width = config.width * 2**stage
        for number in range(count):
            plan.append((channels, width, 2 if stage and not number else 1))
            channels = width * EXPANSION[config.block]
    return plan


def _convolutions(block: str, inputs: int, width: int, stride: int) -> list[tuple[int, int, int, int]]:
    """(kernel, inputs, outputs, stride) of each convolution of a block, without the shortcut."""
    kernels = KERNELS[block]
    channels = [inputs, *[width] * (len(kernels) - 1), width * EXPANSION[block]]
    strides = [stride if place == STRIDED[block] else 1 for place in range(len(kernels))]
    return list(zip(kernels, channels[:-1], channels[1:], strides, strict=True))
