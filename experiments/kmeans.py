# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""k-means: 64 centers of 28 columns; a step is one of Lloyd's iterations over all rows (1 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import kmeans


def get_config() -> ConfigDict:
    return ConfigDict({"batch": 65536, "accelerator_batch": 2**22, "model": {"clusters": 64, "columns": 28}})


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"clusters": 8, "columns": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return kmeans.workload("kmeans", **config.model)
