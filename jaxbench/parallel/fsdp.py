# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallelism, ZeRO stage 3: each device keeps its shard of everything.

Parameters are gathered where they are used, in the forward pass and again in the backward pass.
"""

from __future__ import annotations

import jax

from jaxbench.parallel import sharded_step
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Raises UserError for an optimizer that a step cannot call."""
    return sharded_step.build(workload, devices, {"fsdp": len(devices)})
