# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""LU, QR, Cholesky and singular value decomposition: XLA against NumPy and SciPy (2 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.kernels.linalg import LINALG

SIDES = (64, 128, 256, 512, 1024)


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # jit, numpy (qr, cholesky, svd), scipy (lu)
    return config


def build(config: ConfigDict) -> CaseSet:
    return LINALG.chosen("linalg", config, SIDES)
