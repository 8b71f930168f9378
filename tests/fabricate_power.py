# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Run folders with readings of the devices' power, clocks and energy in each timed block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricate

from jaxbench.core.store import RunFolder

WATTS = 500.0


def folder(path: Path, *, scale: float = 1.0, clock: float = 1.0, **device: Any) -> Path:
    """A run on one and on two GPUs that each take WATTS. scale: of the counters over the true ones. clock: of two
    devices over that of one. device: further facts of each reading."""
    fabricate.run_folder(path, devices=(1, 2), scalings=("strong",), rounds=12, processes=3, noise=0.002)
    counts = {record.point: record.devices for record in RunFolder(path).records() if record.kind == "point"}

    def reading(number: int, devices: int, seconds: float) -> dict[str, Any]:
        return {
            "device": f"GPU {number}",
            "readings": 2,
            "sm_mhz": 2000.0 * (clock if devices == 2 else 1),
            "joules": scale * WATTS * seconds,
            "power_w": WATTS,
            "default_mhz": 1980.0,
            **device,
        }

    def add(line: dict[str, Any]) -> None:
        if line["kind"] == "round":
            devices, blocks = counts[line["point"]], (*line["block_s"], *line["double_block_s"])
            line["power"] = [[reading(number, devices, each) for number in range(devices)] for each in blocks]

    fabricate.edit(path, add)
    return path
