# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Convolutions over bytes of text, the baseline for the lstm on the same lines of Python's own sources (1 min).

    make run EXP=textcnn
    make train EXP=textcnn                                       # to 95 % accuracy on lines of unseen files
    make train EXP=textcnn ARGS=--config.data.path=reviews.csv   # columns text and label, or one folder per class

Expect it to reach its target in one or two epochs; the lstm needs several epochs for a lower target.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.models import textcnn

base = load_experiment("lstm")


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 160, 16384
    config.model = ConfigDict({"length": 64, "embedding": 32, "filters": 100, "classes": 5})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 1e-3})
    config.train = ConfigDict({"batch": 64, "epochs": 10, "target": 0.95})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"length": 8, "embedding": 4, "filters": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return base.build(config, "textcnn", textcnn)
