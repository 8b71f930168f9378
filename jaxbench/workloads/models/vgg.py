# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""VGG-16, configuration D of Simonyan and Zisserman, arXiv:1409.1556.

The paper's dropout is omitted, so all strategies compute the same numbers.
Shapes: B batch, H height, W width, C channels, F features.
"""

from __future__ import annotations

import jax
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads.base import Partition
from jaxbench.workloads.flops import conv2d, dense
from jaxbench.workloads.models import dense_layers
from jaxbench.workloads.models.conv import conv
from jaxbench.workloads.models.pool import average_to, check_pooled, classifier_partition, dense_sizes, max_pool

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
        convolutions, x_BHWC = iter(self.convolutions), dense_layers.own_examples(x_BHWC)
        for stage in STAGES:
            for _ in stage:
                x_BHWC = nnx.relu(next(convolutions)(x_BHWC))
            x_BHWC = max_pool(x_BHWC, 2, stride=2)
        x_BF = average_to(x_BHWC, self.pooled).reshape(x_BHWC.shape[0], -1)
        return dense_layers.apply([*self.hidden, self.logits], dense_layers.all_examples(x_BF))


def partition(config: ConfigDict) -> Partition:
    return classifier_partition(config, config.width * STAGES[-1][-1])


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
