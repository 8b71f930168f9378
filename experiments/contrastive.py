# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CLIP's contrastive loss: work and gathered bytes by global batch, computed whole and in blocks (3 min).

    make run EXP=contrastive
    make train EXP=contrastive ARGS=--config.lever.remat=none     # until digits retrieve their captions

Each example is compared with the whole global batch. So a device gathers all features, its share of the similarity
matrix grows with the number of devices, and weak scaling is not flat as it is for `cnn`. With
`--config.lever.remat=block` both passes compute the matrix `--config.model.columns` columns at a time.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, from_nnx, make_optimizer
from jaxbench.workloads.data import images
from jaxbench.workloads.losses import contrastive, retrieval
from jaxbench.workloads.models import towers
from jaxbench.workloads.optimizers import tolerance

INPUTS = ("image", "caption")


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 1536, 8192
    config.model = ConfigDict({"size": 8, "length": 24, "embedding": 16, "hidden": 128, "width": 64, "columns": 256})
    config.model.update({"temperature": 0.07, "learned": True})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 3e-3})
    config.train = ConfigDict({"batch": 128, "epochs": 20, "target": 0.9})
    config.strategy = "shard_map"
    config.scaling = "weak"
    config.lever = ConfigDict({"remat": "none,block"})
    config.report = ConfigDict({"view": "contrastive", "overlay": ""})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"embedding": 4, "hidden": 16, "width": 16, "columns": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    shape = config.model
    model = from_nnx(partial(towers.Towers, shape))
    return TrainWorkload(
        name="contrastive",
        init=model.init,
        loss=contrastive(model, inputs=INPUTS, columns=shape.columns, remat=config.lever.remat),
        evaluate=retrieval(model, inputs=INPUTS),
        optimizer=make_optimizer(config.optimizer),
        example={
            "image": Field((shape.size, shape.size, 1)),
            "caption": Field((shape.length,), jnp.int32, classes=towers.BYTES),
            "label": Field((), jnp.int32, classes=len(images.NAMES)),
        },
        flops_per_example=towers.training_flops(shape),
        flops_per_pair=towers.pair_flops(shape),
        unit="pairs",
        blocks=1,
        data=lambda: images.load_captioned(config.data.path, seed=config.seed, size=shape.size, length=shape.length),
        **tolerance(config.optimizer.name),
    )
