# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A random forest: a step grows one level of 16 independent trees (1 min).

    make run EXP=forest
    make train EXP=forest                  # 64 trees of scikit-learn's breast_cancer, to a target accuracy
    make train EXP=forest ARGS="--config.data.path=mine.csv --config.train.batch=500"    # the class comes last

The table of a run is drawn in the shape of Higgs: 28 columns, two classes. Each tree has its own bootstrap of the rows,
and each node considers five randomly drawn columns. Devices exchange the histograms of all trees.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import adapt, forest


def get_config() -> ConfigDict:
    # rounds: number of rounds in a training; each grows all the trees
    model = {"count": 16, "rounds": 4, "depth": 6, "tried": 5, "min_rows": 1e-3, "table": ""}
    train = {
        "batch": 455,
        "epochs": 24,
        "target": 0.95,
    }  # all training rows of breast_cancer; 4 x 6 levels
    return ConfigDict({"batch": 8192, "accelerator_batch": 2**19, "model": model, "train": train})


def for_training(config: ConfigDict) -> ConfigDict:
    config.model.table = "breast_cancer"
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"count": 2, "depth": 3})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = dict(config.model)
    name, rounds = model.pop("table"), model.pop("rounds")
    if adapt.given(config):
        table = adapt.load(name, config.data.path, seed=config.seed)
        return forest.training("forest", table, rounds=rounds, seed=config.seed, **model)
    return forest.workload("forest", **model)
