# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A perceptron with one hidden layer, 784-128-10: the least work per byte of data (1 min).

make run EXP=mlp ARGS=--config.strategy=tensor    # pairs of layers split by columns, then by rows, as in Megatron
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer, prediction
from jaxbench.workloads.base import Partition
from jaxbench.workloads.data import load
from jaxbench.workloads.flops import dense, training
from jaxbench.workloads.models.tensor_parallel import column, row, summed
from jaxbench.workloads.optimizers import tolerance

SIZE, CLASSES = 28, 10


class Perceptron(nnx.Module):
    """Flatten, `depth` hidden layers of `width` with ReLU, logits."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        sizes = layer_sizes(config)
        self.layers = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in sizes)

    def __call__(self, x_BHWC):
        x_BF = x_BHWC.reshape(x_BHWC.shape[0], -1)
        for number, layer in enumerate(self.layers):
            x_BF = nnx.relu(x_BF) if number else x_BF
            x_BF = (row if number % 2 else column)(layer, x_BF)
        return x_BF


def layer_sizes(config: ConfigDict) -> list[tuple[int, int]]:
    widths = [SIZE * SIZE, *[config.width] * config.depth, CLASSES]
    return list(zip(widths[:-1], widths[1:], strict=True))


def partition(config: ConfigDict) -> Partition:
    """How pairs of layers are split over devices: the first by its outputs, the second by its inputs.

    A last layer without a partner is replicated. The forward pass sums the output of each pair over devices; the
    backward pass sums the gradient of each pair's input, except the image.
    """
    sizes = layer_sizes(config)
    axes: dict[str, tuple[str | None, ...]] = {}
    pairs = range(0, len(sizes) - 1, 2)
    for first in pairs:
        axes[f"layers/{first}/kernel"], axes[f"layers/{first}/bias"] = (None, "hidden"), ("hidden",)
        axes[f"layers/{first + 1}/kernel"] = ("hidden", None)
    numbers = sum(sizes[first + 1][1] for first in pairs) + sum(sizes[first][0] for first in pairs[1:])
    return Partition(axes=axes, collective_bounds=summed(numbers))


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 8192, 262144
    config.model = ConfigDict({"width": 128, "depth": 1})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 1e-3})
    config.train = ConfigDict({"batch": 100, "epochs": 60, "target": 0.95})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"width": 32})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(Perceptron, config.model))
    return TrainWorkload(
        name="mlp",
        init=model.init,
        loss=classification(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((SIZE, SIZE, 1)), "label": Field((), jnp.int32, classes=CLASSES)},
        flops_per_example=training([dense(i, o) for i, o in layer_sizes(config.model)]),
        unit="images",
        data=lambda: load(config.data.path, seed=config.seed),
        partition=partition(config.model),
        **tolerance(config.optimizer.name),
    )
