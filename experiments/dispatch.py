# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of starting a program, pipelined and synchronous: an empty one and one of 8 comparisons (1 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose
from jaxbench.workloads.kernels.dispatch import DTYPES, IMPLS, OPS, cases


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # pipelined, sync
    config.measure = ConfigDict({"rounds": 10})
    return config


def build(config: ConfigDict) -> CaseSet:
    choose("dtypes", config.dtypes, DTYPES)
    if config.sizes != "auto":
        raise UserError(f"--config.sizes={config.sizes}: each program of dispatch has one size, so use auto.")
    impls = choose("impls", config.impls, IMPLS)
    programs = choose("ops", config.ops, OPS)
    return CaseSet(name="dispatch", view="dispatch", cases=tuple(case for op in programs for case in cases(op, impls)))
