# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ResNet-18 on 224x224 images, or on 32x32 ones with --config.model.stem=cifar (15 min).

make run EXP=resnet18
make run EXP=resnet18 ARGS="--config.model.stem=cifar --config.batch=32"
make train EXP=resnet18 ARGS="--config.model.stem=cifar --config.data.path=folder/with/cifar-10-batches-bin"
Batch statistics are those of each device's examples; with --config.model.statistics=global, of the global batch.
"""

from __future__ import annotations

from functools import partial

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.data import load
from jaxbench.workloads.models.image_models import ResNet, image_classifier, resnet_flops, stage_blocks

SIZES = {"imagenet": (224, 1000), "cifar": (32, 10)}  # image side and classes, where the config has 0


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 16, 128
    # size and classes: 0 stands for those of the stem, 224 and 1000 or 32 and 10
    config.model = ConfigDict({"stem": "imagenet", "size": 0, "classes": 0, "width": 64})
    config.model.update({"block": "basic", "blocks": "2,2,2,2", "statistics": "device"})
    config.optimizer = ConfigDict({"name": "momentum", "learning_rate": 0.02})
    config.train = ConfigDict({"batch": 128, "epochs": 30, "target": 0.9})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"stem": "cifar", "size": 16, "width": 8, "blocks": "1,1"})
    return config


def build(config: ConfigDict, name: str = "resnet18") -> TrainWorkload:
    config = ConfigDict(config)
    shape, (size, classes) = config.model, SIZES.get(config.model.stem, (0, 0))
    with config.unlocked():
        shape.update({"size": shape.size or size, "classes": shape.classes or classes})
    data = partial(load, config.data.path, seed=config.seed, size=(shape.size,) * 2, channels=3, classes=shape.classes)
    return image_classifier(
        name,
        partial(ResNet, shape, config.lever.remat),
        config,
        resnet_flops(shape),
        blocks=sum(stage_blocks(shape)),
        independent=shape.statistics == "device",
        data=data if shape.stem == "cifar" else None,
    )
