# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two kernels, an element-wise chain and bias + GELU + softmax: op by op, with barriers, and fused (1 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose, sizes, typed
from jaxbench.workloads.kernels.fusion import DTYPES, IMPLS, OPS, cases

ELEMENTS = [10**i for i in range(4, 8)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # op_by_op, barriers, fused
    return config


def build(config: ConfigDict) -> CaseSet:
    impls = choose("impls", config.impls, IMPLS)
    return CaseSet(
        name="fusion",
        view="fusion",
        cases=tuple(
            case
            for op in choose("ops", config.ops, OPS)
            for dtype in choose("dtypes", config.dtypes, DTYPES)
            for elements in sizes("sizes", config.sizes, ELEMENTS)
            for case in cases(op, dtype, elements, impls)
        ),
        typed=typed(config.sizes),
    )
