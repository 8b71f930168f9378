# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""AlexNet on 224x224 images: 61 million parameters, most of them in dense layers (15 min).

make run EXP=alexnet
Its gradient, 244 MB per update, is large relative to its work, so the cost of data parallelism shows here first.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.models.image_models import Layer, convnet

LAYERS = (
    Layer(1, 3, kernel=11, stride=4, padding=2),
    Layer(3, 3, kernel=5, padding=2),
    Layer(6),
    Layer(4),
    Layer(4, 3),
)


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 32, 256
    # pooled: the side of the average pool's output, which the dense layers read
    config.model = ConfigDict({"size": 224, "classes": 1000, "width": 64, "hidden": 4096, "pooled": 6})
    config.optimizer = ConfigDict({"name": "momentum", "learning_rate": 0.01})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"size": 63, "classes": 10, "width": 4, "hidden": 32, "pooled": 1})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return convnet("alexnet", LAYERS, config)
