# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Vision Transformer S/16 on 224x224 images: almost nothing but large matrix products (16 min).

make run EXP=vit
make run EXP=vit ARGS=--config.lever.remat=none,sqrt,block,dots_saveable   # memory against time
"""

from __future__ import annotations

from functools import partial

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.models.image_models import ViT, image_classifier, vit_flops


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 4, 128
    config.model = ConfigDict({"size": 224, "patch": 16, "classes": 1000, "width": 384, "depth": 12, "heads": 6})
    config.optimizer = ConfigDict({"name": "adamw", "learning_rate": 1e-3})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"size": 32, "patch": 8, "classes": 10, "width": 32, "depth": 2, "heads": 2})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    constructor = partial(ViT, config.model, config.lever.remat)
    return image_classifier("vit", constructor, config, vit_flops(config.model), blocks=config.model.depth)
