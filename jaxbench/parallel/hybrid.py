# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of strategies: the mesh that `--config.lever.mesh=data=2,tensor=4` names, see `axes`."""

from __future__ import annotations

import jax

from jaxbench.parallel import pipeline, sharded_step
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(
    workload: TrainWorkload,
    devices: list[jax.Device],
    *,
    sizes: Sizes | None = None,
    schedule: str = "gpipe",
    sequence: bool = False,
) -> Program:
    """Returns the Program on the mesh of `sizes`; None: data parallelism. schedule: of a pipeline. sequence: of the
    axis tensor. Raises UserError for what the workload cannot be split over, and for axes that do not go together."""
    sizes = {"data": len(devices)} if sizes is None else sizes
    if "stage" in sizes:
        return pipeline.build(workload, devices, schedule=schedule, sizes=sizes)
    return sharded_step.build(workload, devices, sizes, sequence=sequence)
