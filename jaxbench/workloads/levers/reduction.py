# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `reduction` of a workload: its tolerance, because sums in 16 bits agree less closely with one device."""

from __future__ import annotations

import dataclasses

from jaxbench.levers import Reduction
from jaxbench.workloads.base import TrainWorkload


def apply(workload: TrainWorkload, reduction: Reduction | None) -> TrainWorkload:
    """The workload with the tolerance for the number format of its gradients."""
    if reduction is None or reduction.dtype is None:
        return workload
    reason = f"sums of gradients in {reduction.dtype} keep 8 bits"
    return dataclasses.replace(workload, tolerance=5e-3, tolerance_reason=reason)
