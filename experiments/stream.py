# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""STREAM's copy, scale, add and triad, for arrays from the first-level cache to main memory (2 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose, sizes, typed
from jaxbench.workloads.kernels.stream import DTYPES, IMPLS, OPS, cases

ELEMENTS = [2**i for i in range(10, 27, 2)]  # of each array: 4 KiB to 256 MiB in float32


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # jit, numpy
    return config


def build(config: ConfigDict) -> CaseSet:
    impls = choose("impls", config.impls, IMPLS)
    return CaseSet(
        name="stream",
        view="stream",
        cases=tuple(
            case
            for op in choose("ops", config.ops, OPS)
            for dtype in choose("dtypes", config.dtypes, DTYPES)
            for elements in sizes("sizes", config.sizes, ELEMENTS)
            for case in cases(op, dtype, elements, impls)
        ),
        typed=typed(config.sizes),
    )
