# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The bubble of a pipeline, from the formula for its schedule."""

from __future__ import annotations

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.levers import ACCUMULATE, MESH, SCHEDULE

CHUNKS = {"interleaved": 2}  # V, the chunks of blocks per stage; 1 for all other schedules


def idle(stages: float, parts: float, chunks: int = 1) -> float:
    """The idle share of all slots of a schedule: (K - 1) / (V M + K - 1) (Huang et al., arXiv:1811.06965)."""
    return (stages - 1) / (chunks * parts + stages - 1)


def stages(point: MeasuredPoint) -> int:
    """K, the number of stages: the size of the mesh axis `stage`; 1 without that axis."""
    for axis in MESH.of(point.levers).split(","):
        name, _, size = axis.partition("=")
        if name == "stage":
            return int(size)
    return point.devices if point.strategy == "pipeline" else 1


def micro_batches(point: MeasuredPoint) -> int:
    """M, the number of micro-batches."""
    return ACCUMULATE.of(point.levers)


def chunks(point: MeasuredPoint) -> int:
    """V, the chunks of blocks per stage."""
    return CHUNKS.get(SCHEDULE.of(point.levers), 1)


def of(point: MeasuredPoint) -> float:
    """The share of time that a stage of this point waits for work; 0 without stages."""
    return idle(stages(point), micro_batches(point), chunks(point))
