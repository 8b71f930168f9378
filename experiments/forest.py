# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A random forest: a step grows one level of 16 trees that know nothing of each other (1 min).

The table is drawn in the shape of Higgs: 28 columns, two classes. Each tree has its own bootstrap of the rows, and each
node may be split by five columns, drawn anew. Devices exchange the histograms of all trees.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.sums import forest


def get_config() -> ConfigDict:
    model = {"count": 16, "depth": 6, "tried": 5, "min_rows": 1e-3}
    return ConfigDict({"batch": 8192, "accelerator_batch": 2**19, "model": model})


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"count": 2, "depth": 3})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return forest.workload("forest", **config.model)
