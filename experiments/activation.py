# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ReLU, sigmoid, GELU and tanh of 1 to 10^8 numbers in a Python loop, NumPy and XLA (2 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.kernels.elementwise import ACTIVATION

ELEMENTS = [10**i for i in range(9)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # python (at most 10^4 numbers), numpy, jit
    return config


def build(config: ConfigDict) -> CaseSet:
    return ACTIVATION.chosen("activation", config, ELEMENTS, view="curves")
