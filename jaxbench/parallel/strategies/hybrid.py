# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Several strategies combined, on the mesh that `--config.lever.mesh=data=2,tensor=4` names (see `parallel.axes`)."""

from __future__ import annotations

import jax

from jaxbench.core.program import Program
from jaxbench.core.workload import TrainWorkload
from jaxbench.levers import GATHER, SCHEDULE
from jaxbench.parallel import sharded_step
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.strategies import pipeline

AXIS = None  # the user names the mesh


def build(
    workload: TrainWorkload,
    devices: list[jax.Device],
    sizes: Sizes,
    *,
    schedule: str = SCHEDULE.default,
    sequence: bool = False,
    ulysses: bool = False,
    gather: str = GATHER.default,
) -> Program:
    """Returns the Program on the mesh of `sizes`: a pipeline if that has the axis stage.

    Raises UserError for axes that the workload cannot be split over, or that cannot be combined.
    """
    if "stage" in sizes:
        return pipeline.build(workload, devices, sizes, schedule=schedule, sequence=sequence)
    return sharded_step.build(workload, devices, sizes, sequence=sequence, ulysses=ulysses, gather=gather)
