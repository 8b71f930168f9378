# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ReLU, sigmoid, GELU and tanh of 1 to 10^8 numbers in a Python loop, NumPy and XLA (2 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose, sizes, typed
from jaxbench.workloads.kernels.activation import DTYPES, IMPLS, OPS, cases

ELEMENTS = [10**i for i in range(9)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # python (at most 10^4 numbers), numpy, jit
    return config


def build(config: ConfigDict) -> CaseSet:
    impls = choose("impls", config.impls, IMPLS)
    return CaseSet(
        name="activation",
        view="curves",
        cases=tuple(
            case
            for op in choose("ops", config.ops, OPS)
            for dtype in choose("dtypes", config.dtypes, DTYPES)
            for elements in sizes("sizes", config.sizes, ELEMENTS)
            for case in cases(op, dtype, elements, impls)
        ),
        typed=typed(config.sizes),
    )
