# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Latency and throughput of products, gradients and trainings in Python, NumPy and XLA, on one core and all (10 min).

    make run EXP=versus
    make run EXP=versus ARGS=--config.ops=train_lstm    # only the time of a text classifier to its target

Latency is the time of one row, throughput the rows per second of 4,096. Expect plain Python to be the slowest, NumPy to
be faster than XLA at one row, and an accelerator to be faster than a core above some size. This size is larger for data
that do not stay on the accelerator (jit+copies). For the smallest and the largest size the report splits a call into
transfer, start and work.
"""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet
from jaxbench.workloads.cases import choose, sizes, typed
from jaxbench.workloads.kernels import to_target, versus

ROWS = [8**i for i in range(5)]


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.impls = "all"  # python (at most 8 rows of product and mlp), numpy, jit, jit+copies, waited, start
    config.cores = "1,all"
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    """For a smoke test: one job of each kind at the smallest and largest size, and one training to a target."""
    config.ops, config.sizes, config.cores = "product,lstm,train_lstm", "1,64", "1"
    return config


def build(config: ConfigDict) -> CaseSet:
    impls = choose("impls", config.impls, versus.IMPLS)
    (dtype,) = choose("dtypes", config.dtypes, versus.DTYPES)
    rows, cases = sizes("sizes", config.sizes, ROWS), []
    for op in choose("ops", config.ops, (*versus.OPS, *to_target.OPS)):
        if op in to_target.OPS:
            cases += [case for seed in range(to_target.SEEDS) for case in to_target.cases(op, dtype, seed, impls)]
            continue
        for size in rows:  # the parts of a call only at the smallest and largest size
            of_size = impls if size in (min(rows), max(rows)) else [i for i in impls if i not in versus.PARTS]
            cases += versus.cases(op, dtype, size, tuple(of_size))
    return CaseSet(name="versus", view="versus", cases=tuple(cases), typed=typed(config.sizes))
