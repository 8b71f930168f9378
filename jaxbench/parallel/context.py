# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Context parallelism: every device has its part of each sequence (see workloads/positions.py and models/attention.py).

Keys and values travel round a ring in every attention; gradients are averaged as in data parallelism.
"""

from __future__ import annotations

import jax

from jaxbench.parallel import sharded_step
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Raises UserError for a model without positions, or that do not divide."""
    return sharded_step.build(workload, devices, {"context": len(devices)})
