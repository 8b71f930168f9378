# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Regression on a table in the shape of Higgs: ridge by the normal equations, or logistic by L-BFGS (1 min).

make run EXP=regression ARGS=--config.model.kind=logistic
make train EXP=regression ARGS=--config.model.kind=logistic    # scikit-learn's breast_cancer, to a target accuracy
make train EXP=regression ARGS="--config.data.path=mine.csv --config.train.batch=500"    # the class comes last
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import adapt, regression

KINDS = {"ridge": regression.ridge, "logistic": regression.logistic}


def get_config() -> ConfigDict:
    model = {"kind": "ridge", "l2": 1e-3, "table": ""}
    train = {"batch": 448, "epochs": 200, "target": 0.95}  # of 455 rows of breast_cancer
    return ConfigDict({"batch": 262144, "accelerator_batch": 2**23, "model": model, "train": train})


def for_training(config: ConfigDict) -> ConfigDict:
    config.model.table = "breast_cancer"
    return config


def build(config: ConfigDict) -> TrainWorkload:
    if config.model.kind not in KINDS:
        raise UserError(f"--config.model.kind={config.model.kind} is unknown: use {' or '.join(KINDS)}.")
    kind, l2 = KINDS[config.model.kind], config.model.l2
    if adapt.given(config):
        table = adapt.load(config.model.table, config.data.path, seed=config.seed)
        return regression.training(kind, "regression", table, l2=l2, seed=config.seed)
    return kind("regression", columns=adapt.COLUMNS, l2=l2, draw=adapt.higgs_like)
