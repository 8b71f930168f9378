# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 1: each device keeps and updates its shard of the optimizer's state.

Gradients are whole on each device while micro-batches are added up, and reduced once.
"""

from __future__ import annotations

import jax

from jaxbench.parallel import zero
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Raises UserError as `zero.build` does."""
    return zero.build(workload, devices, stage=1)
