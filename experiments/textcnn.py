# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Convolutions over bytes of text, the baseline for the lstm on the same lines of Python's own sources (1 min).

    make run EXP=textcnn
    make train EXP=textcnn                                       # to 95 % accuracy on lines of unseen files
    make train EXP=textcnn ARGS=--config.data.path=reviews.csv   # columns text and label, or one folder a class

Expect it to reach its target in one or two epochs; the lstm needs several for a lower one.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.data import text
from jaxbench.workloads.flops import training
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.models import textcnn
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch = 64
    config.model = ConfigDict({"length": 64, "embedding": 32, "filters": 100, "classes": 5})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 1e-3})
    config.train = ConfigDict({"batch": 64, "epochs": 10, "target": 0.95})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"length": 8, "embedding": 4, "filters": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = from_nnx(partial(textcnn.Classifier, config.model))
    example = {
        "tokens": Field((config.model.length,), jnp.int32, classes=textcnn.VOCAB),
        "label": Field((), jnp.int32, classes=config.model.classes),
    }
    return TrainWorkload(
        name="textcnn",
        init=model.init,
        loss=classification(model, inputs="tokens"),
        predict=prediction(model, inputs="tokens"),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=training([0.0, *textcnn.layer_flops(config.model)]),  # the embedding needs its gradient
        unit="texts",
        data=lambda: text.load(
            config.data.path, seed=config.seed, length=config.model.length, classes=config.model.classes
        ),
        **tolerance(config.optimizer.name),
    )
