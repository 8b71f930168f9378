# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An LSTM that classifies text bytewise, by default the kinds of lines in Python's own sources (2 min).

    make run EXP=lstm
    make train EXP=lstm                                          # to 85 % accuracy on lines of unseen files
    make train EXP=lstm ARGS=--config.data.path=reviews.csv      # columns text and label, or one folder per class

Expect a step far slower than its FLOPs suggest: its 64 products run in sequence. `textcnn` learns the task faster.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx, make_optimizer
from jaxbench.workloads.data import text
from jaxbench.workloads.flops import training
from jaxbench.workloads.losses import prediction
from jaxbench.workloads.models import lstm
from jaxbench.workloads.optimizers import tolerance


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 64, 4096
    config.model = ConfigDict({"length": 64, "embedding": 32, "width": 128, "classes": 5})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 2e-3})
    config.train = ConfigDict({"batch": 64, "epochs": 10, "target": 0.85})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"length": 8, "embedding": 4, "width": 8})
    return config


def build(
    config: ConfigDict, name: str = "lstm", classifier: Any = lstm.Classifier, layer_flops: Any = lstm.layer_flops
) -> TrainWorkload:
    model = from_nnx(partial(classifier, config.model))
    example = {
        "tokens": Field((config.model.length,), jnp.int32, classes=lstm.VOCAB),
        "label": Field((), jnp.int32, classes=config.model.classes),
    }
    return TrainWorkload(
        name=name,
        init=model.init,
        loss=classification(model, inputs="tokens"),
        predict=prediction(model, inputs="tokens"),
        optimizer=make_optimizer(config.optimizer),
        example=example,
        flops_per_example=training([0.0, *layer_flops(config.model)]),  # the embedding needs its gradient
        unit="texts",
        data=lambda: text.load_labelled(
            config.data.path, seed=config.seed, length=config.model.length, classes=config.model.classes
        ),
        **tolerance(config.optimizer.name),
    )
