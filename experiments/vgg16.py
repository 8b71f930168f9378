# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""VGG-16 on 224x224 images: 138 million parameters and 93 GFLOP an image, in few large convolutions (35 min).

make run EXP=vgg16
make run EXP=vgg16 ARGS=--config.batch=64   # for an accelerator: the default suits two cores
Nearly all of its time goes to 3x3 convolutions of many channels, so it comes closest to the machine's peak.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, evaluation, from_nnx, make_optimizer, prediction
from jaxbench.workloads.flops import training
from jaxbench.workloads.models.vgg import VGG16, layer_flops
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch = 2
    # pooled: the side of the average pool's output, which the dense layers read
    config.model = ConfigDict({"size": 224, "classes": 1000, "width": 64, "hidden": 4096, "pooled": 7})
    config.optimizer = ConfigDict({"name": "momentum", "learning_rate": 0.01})
    config.mesh = ConfigDict({"oversubscribe": False})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"size": 32, "classes": 10, "width": 4, "hidden": 32, "pooled": 1})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(VGG16, config.model))
    size, classes = config.model.size, config.model.classes
    return TrainWorkload(
        name="vgg16",
        init=model.init,
        loss=classification(model),
        evaluate=evaluation(model),
        predict=prediction(model),
        optimizer=make_optimizer(config.optimizer),
        example={"image": Field((size, size, 3)), "label": Field((), jnp.int32, classes=classes)},
        flops_per_example=training(layer_flops(config.model)),
        unit="images",
        **tolerance(config.optimizer.name),
    )
