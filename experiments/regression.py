# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Regression on a table in the shape of Higgs: ridge by the normal equations, or logistic by L-BFGS (1 min).

make run EXP=regression ARGS=--config.model.kind=logistic
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import regression, tables

KINDS = {"ridge": regression.ridge, "logistic": regression.logistic}


def get_config() -> ConfigDict:
    return ConfigDict({"batch": 262144, "accelerator_batch": 2**23, "model": {"kind": "ridge", "l2": 1e-3}})


def build(config: ConfigDict) -> TrainWorkload:
    if config.model.kind not in KINDS:
        raise UserError(f"--config.model.kind={config.model.kind} is unknown: use {' or '.join(KINDS)}.")
    kind = KINDS[config.model.kind]
    return kind("regression", columns=tables.COLUMNS, l2=config.model.l2, draw=tables.higgs_like)
