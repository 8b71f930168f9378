# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""STREAM's copy, scale, add and triad, for arrays from the first-level cache to main memory (2 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.kernels.elementwise import STREAM

ELEMENTS = [2**i for i in range(10, 27, 2)]  # of each array: 4 KiB to 256 MiB in float32


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # jit, numpy
    return config


def build(config: ConfigDict) -> CaseSet:
    return STREAM.chosen("stream", config, ELEMENTS)
