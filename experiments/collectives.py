# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Collectives by device count and mesh axis: latency of small payloads, bus bandwidth of large ones (4 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.errors import UserError
from jaxbench.workloads import CaseSet, CollectiveWorkload
from jaxbench.workloads.cases import COLLECTIVES, choose, gradient_sizes, sizes, typed

AUTO = tuple(2**10 * 4**i for i in range(11))  # 1 KiB .. 1 GiB
DTYPES = ("float32", "bfloat16", "float16", "int32", "int8")


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.dtypes = "float32"
    config.measure = ConfigDict({"block_s": 0.01})  # short, because there are many cases
    config.sizes_from = ""  # the name of a training experiment: the payloads are its gradients
    return config


def build(config: ConfigDict) -> CaseSet:
    ops = choose("ops", config.ops, COLLECTIVES, everything=("all_reduce",) if config.sizes_from else None)
    dtypes = choose("dtypes", config.dtypes, DTYPES)
    return CaseSet(
        name="collectives",
        view="collectives",
        cases=tuple(
            CollectiveWorkload(op=op, payload_bytes=payload, dtype=dtype)
            for op in ops
            for dtype in dtypes
            for payload in payloads(config)
        ),
        typed=bool(config.sizes_from) or typed(config.sizes),
    )


def payloads(config: ConfigDict) -> tuple[int, ...]:
    if not config.sizes_from:
        return sizes("sizes", config.sizes, AUTO)
    if config.sizes != "auto":
        raise UserError(
            f"--config.sizes={config.sizes} and --config.sizes_from={config.sizes_from} are both set: leave one out."
        )
    return tuple(gradient_sizes(config.sizes_from))
