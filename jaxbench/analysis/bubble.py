# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The bubble of a pipeline, by the closed form of its schedule."""

from __future__ import annotations

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.levers.accumulate import ACCUMULATE
from jaxbench.levers.mesh import MESH
from jaxbench.levers.schedule import SCHEDULE

CHUNKS = {"interleaved": 2}  # of blocks a stage: all other schedules have 1


def idle(stages: float, parts: float, chunks: int = 1) -> float:
    """The idle share of a schedule, of all slots: (K - 1) / (V M + K - 1) (Huang et al., arXiv:1811.06965)."""
    return (stages - 1) / (chunks * parts + stages - 1)


def stages(point: MeasuredPoint) -> int:
    """K, the size of its mesh axis `stage`; 1 without one."""
    for axis in MESH.of(point.levers).split(","):
        name, _, size = axis.partition("=")
        if name == "stage":
            return int(size)
    return point.devices if point.strategy == "pipeline" else 1


def micro_batches(point: MeasuredPoint) -> int:
    """M."""
    return ACCUMULATE.of(point.levers)


def chunks(point: MeasuredPoint) -> int:
    """V."""
    return CHUNKS.get(SCHEDULE.of(point.levers), 1)


def of(point: MeasuredPoint) -> float:
    """The share of time in which a stage of this point waits for work; 0 without stages."""
    return idle(stages(point), micro_batches(point), chunks(point))
