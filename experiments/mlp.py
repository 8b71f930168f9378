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
from jaxbench.workloads.data import load
from jaxbench.workloads.flops import dense, training
from jaxbench.workloads.models import sharded_layers
from jaxbench.workloads.optimizers import tolerance

SIZE, CLASSES = 28, 10


class Perceptron(nnx.Module):
    """Flatten, `depth` hidden layers of `width` with ReLU, logits."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        sizes = layer_sizes(config)
        self.layers = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in sizes)

    def __call__(self, x_BHWC):
        x_BF = x_BHWC.reshape(x_BHWC.shape[0], -1)
        return sharded_layers.apply_dense(self.layers, x_BF)


def layer_sizes(config: ConfigDict) -> list[tuple[int, int]]:
    widths = [SIZE * SIZE, *[config.width] * config.depth, CLASSES]
    return list(zip(widths[:-1], widths[1:], strict=True))


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
    model, sizes = from_nnx(partial(Perceptron, config.model)), layer_sizes(config.model)
    return TrainWorkload(
        name="mlp",
        init=model.init,
        loss=classification(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((SIZE, SIZE, 1)), "label": Field((), jnp.int32, classes=CLASSES)},
        flops_per_example=training([dense(i, o) for i, o in sizes]),
        unit="images",
        data=lambda: load(config.data.path, seed=config.seed),
        partition=sharded_layers.dense_partition([(f"layers/{i}", *each) for i, each in enumerate(sizes)]),
        **tolerance(config.optimizer.name),
    )
