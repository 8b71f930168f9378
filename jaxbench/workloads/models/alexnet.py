# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""AlexNet as in torchvision: "One weird trick for parallelizing convolutional neural networks", arXiv:1404.5997.

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
from jaxbench.workloads.models.conv import conv, out_side
from jaxbench.workloads.models.pool import average_to, check_pooled, classifier_partition, dense_sizes, max_pool

# (kernel, stride, padding, channels as a multiple of config.width, whether a 3x3 max-pool of stride 2 follows)
LAYERS = ((11, 4, 2, 1, True), (5, 1, 2, 3, True), (3, 1, 1, 6, False), (3, 1, 1, 4, False), (3, 1, 1, 4, True))


class AlexNet(nnx.Module):
    """Five convolutions, three max-pools, three dense layers. `config`: size, classes, width, hidden, pooled."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        check_pooled(_sides(config)[-1], config)
        widths = [3, *(config.width * multiple for *_, multiple, _ in LAYERS)]
        self.convolutions = nnx.List(
            conv(widths[i], widths[i + 1], kernel=k, stride=s, padding=p, bias=True, rngs=rngs)
            for i, (k, s, p, _, _) in enumerate(LAYERS)
        )
        *hidden, logits = dense_sizes(config, config.width * LAYERS[-1][3])
        self.hidden = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in hidden)
        self.logits = nnx.Linear(*logits, rngs=rngs)
        self.pooled = config.pooled

    def __call__(self, x_BHWC: jax.Array) -> jax.Array:
        x_BHWC = dense_layers.own_examples(x_BHWC)
        for convolution, (*_, pool) in zip(self.convolutions, LAYERS, strict=True):
            x_BHWC = nnx.relu(convolution(x_BHWC))
            x_BHWC = max_pool(x_BHWC, 3, stride=2) if pool else x_BHWC
        x_BF = average_to(x_BHWC, self.pooled).reshape(x_BHWC.shape[0], -1)
        return dense_layers.apply([*self.hidden, self.logits], dense_layers.all_examples(x_BF))


def partition(config: ConfigDict) -> Partition:
    return classifier_partition(config, config.width * LAYERS[-1][3])


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image."""
    flops, channels = [], 3
    for side, (kernel, _, _, multiple, _) in zip(_sides(config), LAYERS, strict=False):
        flops.append(conv2d(side, side, kernel=kernel, inputs=channels, outputs=config.width * multiple))
        channels = config.width * multiple
    return flops + [dense(i, o) for i, o in dense_sizes(config, config.width * LAYERS[-1][3])]


def _sides(config: ConfigDict) -> list[int]:
    """The side of each convolution's output, then the side of the last pool's output."""
    sides, side = [], config.size
    for kernel, stride, padding, _, pool in LAYERS:
        side = out_side(side, kernel=kernel, stride=stride, padding=padding)
        sides.append(side)
        side = out_side(side, kernel=3, stride=2, padding=0) if pool else side
    return [*sides, side]
