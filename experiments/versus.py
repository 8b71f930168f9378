# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sports car and the lorry: products and gradients of 1 to 4,096 rows in Python, NumPy and XLA, by place (4 min).

    make run EXP=versus

Latency is the time of one row, throughput the rows per second of a large batch. Expect plain Python to be ahead of
nothing, NumPy of XLA at one row, and an accelerator of a core from some size on. Data that do not stay on an
accelerator (jit+copies) move that size up.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import kernel_grid
from jaxbench.workloads.kernels import versus

ROWS = [8**i for i in range(5)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # python (at most 8 rows of product and mlp), numpy, jit, jit+copies
    config.cores = "1,all"
    return config


def build(config: ConfigDict) -> CaseSet:
    return kernel_grid("versus", versus, config, ROWS)
