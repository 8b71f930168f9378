# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: every device sees every example, and has its part of each product (workloads/models/tensor_parallel.py).

Two all-reduces of the activations a block in the forward pass and two in the backward pass.
"""

from __future__ import annotations

import jax

from jaxbench.parallel import sharded_step
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device], *, sequence: bool = False) -> Program:
    """Returns the Program over `devices`. sequence: with positions split between the products.

    Raises UserError for a model without heads or hidden units to split, or with numbers that do not divide.
    """
    return sharded_step.build(workload, devices, {"tensor": len(devices)}, sequence=sequence)
