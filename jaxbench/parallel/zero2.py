# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 2: as stage 1, and the gradients of each micro-batch leave only this device's shard of their mean."""

from __future__ import annotations

import jax

from jaxbench.parallel import zero
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Raises UserError as `zero.build` does."""
    return zero.build(workload, devices, stage=2)
