# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""VGG-16, configuration D of Simonyan and Zisserman, arXiv:1409.1556.

The paper's dropout is omitted, so that all strategies compute the same numbers.
Shapes: B batch, H height, W width, C channels, F features.
"""

from __future__ import annotations

import jax
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads.flops import conv2d, dense
from jaxbench.workloads.models.conv import conv
from jaxbench.workloads.models.pool import average_to, check_pooled, dense_sizes, max_pool

# The channels of each stage's convolutions as multiples of config.width; a 2x2 max-pool ends a stage.
STAGES = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))


class VGG16(nnx.Module):
    """Thirteen 3x3 convolutions, five max-pools, three dense layers. `config`: size, classes, width, hidden, pooled."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        check_pooled(config.size // 2 ** len(STAGES), config)
        self.convolutions = nnx.List(
            conv(inputs, outputs, kernel=3, bias=True, rngs=rngs) for _, inputs, outputs in _convolutions(config)
        )
        *hidden, logits = dense_sizes(config, config.width * STAGES[-1][-1])
        self.hidden = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in hidden)
        self.logits = nnx.Linear(*logits, rngs=rngs)
        self.pooled = config.pooled

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        convolutions = iter(self.convolutions)
        for stage in STAGES:
            for _ in stage:
                x_BHWC = nnx.relu(next(convolutions)(x_BHWC))
            x_BHWC = max_pool(x_BHWC, 2, stride=2)
        x_BF = average_to(x_BHWC, self.pooled).reshape(x_BHWC.shape[0], -1)
        for layer in self.hidden:
            x_BF = nnx.relu(layer(x_BF))
        return self.logits(x_BF)


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image."""
    convolutions = [conv2d(side, side, kernel=3, inputs=i, outputs=o) for side, i, o in _convolutions(config)]
    return convolutions + [dense(i, o) for i, o in dense_sizes(config, config.width * STAGES[-1][-1])]


def _convolutions(config: ConfigDict) -> list[tuple[int, int, int]]:
    """(side, inputs, outputs) of each convolution."""
    convolutions, channels = [], 3
    for halved, stage in enumerate(STAGES):
        for multiple in stage:
            convolutions.append((config.size // 2**halved, channels, config.width * multiple))
            channels = config.width * multiple
    return convolutions
