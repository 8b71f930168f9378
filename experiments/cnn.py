# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A LeNet-class convolutional classifier of 28x28 images (1 min).

Axes: B examples, H x W pixels, C channels, F features.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads import Field, Partition, TrainWorkload, classification, from_nnx, make_optimizer, prediction
from jaxbench.workloads.data import load
from jaxbench.workloads.flops import conv2d, dense, training
from jaxbench.workloads.models import sharded_layers
from jaxbench.workloads.models.image_layers import column_zeros, convolution, max_pool
from jaxbench.workloads.optimizers import tolerance

SIZE, CLASSES = 28, 10


class LeNet(nnx.Module):
    """`depth` stages of (5x5 convolution, ReLU, 2x2 max-pool), the width doubling, then two dense layers."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        widths = [config.width * 2**i for i in range(config.depth)]
        pairs = zip([1, *widths], widths, strict=False)
        self.convolutions = nnx.List(
            nnx.Conv(i, o, (5, 5), padding=2, conv_general_dilated=convolution, rngs=rngs) for i, o in pairs
        )
        self.hidden = nnx.Linear(flat_features(config), config.hidden, rngs=rngs)
        self.logits = nnx.Linear(config.hidden, CLASSES, rngs=rngs)

    def __call__(self, x_BHWC):
        # Under tensor parallelism, `own_examples` to `apply_dense` split the work. Otherwise they are the plain layers.
        x_BHWC = sharded_layers.own_examples(x_BHWC)
        for layer in self.convolutions:
            x_BHWC = max_pool(nnx.relu(layer(x_BHWC)), 2)
        x_BF = sharded_layers.all_examples(x_BHWC.reshape(x_BHWC.shape[0], -1))
        return sharded_layers.apply_dense([self.hidden, self.logits], x_BF)


def flat_features(config: ConfigDict) -> int:
    """The features of an image after the last stage, which halved its sides `depth` times."""
    side = SIZE // 2**config.depth
    return side * side * config.width * 2 ** (config.depth - 1)


def partition(config: ConfigDict) -> Partition:
    """How tensor parallelism splits the model (see `sharded_layers`). Other strategies do not read it.

    Each device computes the convolutions of its own examples, and its part of the dense layers for all examples.
    """
    dense_sizes = [("hidden", flat_features(config), config.hidden), ("logits", config.hidden, CLASSES)]
    return sharded_layers.dense_partition(dense_sizes, convolutions="convolutions/*")


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each layer, one image."""
    flops, channels = [], 1
    for i in range(config.depth):
        side, width = SIZE // 2**i, config.width * 2**i
        flops.append(conv2d(side, side, kernel=5, inputs=channels, outputs=width))
        channels = width
    return [*flops, dense(flat_features(config), config.hidden), dense(config.hidden, CLASSES)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 128, 8192
    config.model = ConfigDict({"width": 16, "depth": 2, "hidden": 128})
    config.optimizer = ConfigDict({"name": "sgd", "learning_rate": 0.1})
    config.train = ConfigDict({"batch": 32, "epochs": 30, "target": 0.97})  # for `jaxbench train`: an accuracy
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    """The same computation with a small model, for the preset smoke and the tests."""
    config.model.update({"width": 4, "hidden": 32})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(LeNet, config.model))
    return TrainWorkload(
        name="cnn",
        init=model.init,
        loss=classification(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((SIZE, SIZE, 1)), "label": Field((), jnp.int32, classes=CLASSES)},
        flops_per_example=training(layer_flops(config.model)),
        padding_flops_per_example=column_zeros(SIZE, SIZE, kernel=5, outputs=config.model.width),
        unit="images",
        # For trainings, and for the lever `input`. All other timed steps get the synthetic batch of `example`.
        data=lambda: load(config.data.path, seed=config.seed),
        partition=partition(config.model),
        **tolerance(config.optimizer.name),
    )
