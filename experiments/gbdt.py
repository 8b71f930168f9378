# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees by histograms of 256 bins: a step is one level of one tree of depth 6 (1 min).

    make run EXP=gbdt
    python -m benchmarks.tree_peers        # beside LightGBM and XGBoost, where they are installed

The table is drawn in the shape of Higgs: 28 columns, two classes. Devices exchange the histograms, whatever the rows.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import tables, trees


def get_config() -> ConfigDict:
    model = {"depth": 6, "rate": 0.1, "l2": 1e-5, "min_hessian": 1e-4, "loss": "logistic"}
    return ConfigDict({"batch": 65536, "accelerator_batch": 2**21, "model": model})


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.depth = 3
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return trees.workload("gbdt", trees.Settings(columns=tables.COLUMNS, **config.model))
