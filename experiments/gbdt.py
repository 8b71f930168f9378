# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees by histograms of 256 bins: a step is one level of one tree of depth 6 (1 min).

    make run EXP=gbdt
    make train EXP=gbdt                    # a whole training, to a target accuracy
    make train EXP=gbdt ARGS="--config.model.table=digits --config.train.batch=1024 --config.train.target=0.9"
    python -m benchmarks.sums_peers        # compare with LightGBM and XGBoost, if installed

The table is drawn in the shape of Higgs: 28 columns, two classes. Devices exchange histograms, for any number of rows.
Training also takes scikit-learn's breast_cancer, digits, iris and wine, and a .csv file (--config.data.path=mine.csv).
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import adapt, trees


def get_config() -> ConfigDict:
    # trees: 0 measures one level in the middle of a training; n > 0 measures a training of n trees from the start
    tree = {"depth": 6, "rate": 0.1, "l2": 1e-5, "min_hessian": 1e-4, "loss": "logistic"}
    model = {**tree, "trees": 0, "table": adapt.DRAWN}
    train = {"batch": 8192, "epochs": 40, "target": 0.77}
    return ConfigDict({"batch": 65536, "accelerator_batch": 2**21, "model": model, "train": train})


def for_training(config: ConfigDict) -> ConfigDict:
    config.model.trees = 50
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.depth = 3
    return config


def build(config: ConfigDict) -> TrainWorkload:
    model = dict(config.model)
    count, table = model.pop("trees"), model.pop("table")
    if count:
        rows = adapt.load(table, config.data.path, seed=config.seed)
        return trees.training("gbdt", rows, rounds=count, seed=config.seed, **model)
    if table != adapt.DRAWN or config.data.path:
        raise UserError("a table is for a whole training: use jaxbench train, or add --config.model.trees=50.")
    return trees.workload("gbdt", trees.TreeSettings(columns=adapt.COLUMNS, **model))
