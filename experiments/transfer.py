# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Copies between host and device and between devices by size, and each pair of devices at the largest (1 min)."""

from __future__ import annotations

from ml_collections import ConfigDict

from jaxbench.workloads import CaseSet, TransferWorkload
from jaxbench.workloads.cases import TRANSFERS, choose, sizes, typed

AUTO = (*(2**10 * 16**i for i in range(5)), 2**28)  # 1 KiB .. 64 MiB, 256 MiB
DTYPES = ("float32", "bfloat16", "float16", "int32", "int8")


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.measures = "cases"
    config.dtypes = "float32"
    return config


def build(config: ConfigDict) -> CaseSet:
    payloads = sizes("sizes", config.sizes, AUTO)
    dtypes = choose("dtypes", config.dtypes, DTYPES)
    return CaseSet(
        name="transfer",
        view="transfer",
        cases=tuple(
            TransferWorkload(op=op, payload_bytes=payload, dtype=dtype)
            for op in choose("ops", config.ops, TRANSFERS)
            for dtype in dtypes
            for payload in payloads
        ),
        typed=typed(config.sizes),
    )
