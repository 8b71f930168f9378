# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two kernels, an element-wise chain and bias + GELU + softmax: op by op, with barriers, and fused (1 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.kernels.elementwise import FUSION

ELEMENTS = [10**i for i in range(4, 8)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # op_by_op, barriers, fused
    return config


def build(config: ConfigDict) -> CaseSet:
    return FUSION.chosen("fusion", config, ELEMENTS)
