# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""VGG-16 on 224x224 images: 138 million parameters and 93 GFLOP per image, in few large convolutions (35 min).

make run EXP=vgg16
Nearly all of its time goes to 3x3 convolutions of many channels, so it comes closest to the machine's peak.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.models.image_models import Layer, convnet

LAYERS = (
    *(Layer(1), Layer(1, 2), Layer(2), Layer(2, 2)),
    *(layer for multiple in (4, 8, 8) for layer in (Layer(multiple), Layer(multiple), Layer(multiple, 2))),
)


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 2, 64
    # pooled: the side of the average pool's output, which the dense layers read
    config.model = ConfigDict({"size": 224, "classes": 1000, "width": 64, "hidden": 4096, "pooled": 7})
    config.optimizer = ConfigDict({"name": "momentum", "learning_rate": 0.01})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"size": 32, "classes": 10, "width": 4, "hidden": 32, "pooled": 1})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return convnet("vgg16", LAYERS, config)
