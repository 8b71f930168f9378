# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data parallelism by `jit` with automatic sharding: the compiler finds and places the gradient's all-reduce.

The step is written for the whole batch. The batch arrives split over "data" and the state replicated; XLA's partitioner
sees that the gradient of a replicated parameter is a sum over devices.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType

from jaxbench.core.program import Program
from jaxbench.core.workload import TrainWorkload
from jaxbench.parallel import data_parallel

AXIS = data_parallel.AXIS
WRITTEN_OUT = data_parallel.WRITTEN_OUT


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`."""
    return data_parallel.by_compiler(workload, devices, AxisType.Auto)
