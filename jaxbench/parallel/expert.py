# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Expert parallelism: data parallelism whose devices share out the experts of a mixture (see models/mixture.py).

Each position's activations travel to the device of their expert and back: two all-to-alls a mixture in the forward pass
and two in the backward pass.
"""

from __future__ import annotations

import jax

from jaxbench.parallel import sharded_step
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload


def build(workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Returns the Program over `devices`. Raises UserError for a model without experts, or that do not divide."""
    return sharded_step.build(workload, devices, {"expert": len(devices)})
