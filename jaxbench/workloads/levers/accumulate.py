# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `accumulate`: gradient accumulation over equal parts of the batch, one after the other.

Only one part's activations are live at a time. `jaxbench.parallel.program.gradients` implements it, because it splits
each device's share of the batch, and a workload is independent of devices.
"""

from __future__ import annotations

import dataclasses

from jaxbench.workloads.base import TrainWorkload


def apply(workload: TrainWorkload, micro_batches: int) -> TrainWorkload:
    """The same workload in `micro_batches` parts, which must divide every device's examples."""
    return dataclasses.replace(workload, micro_batches=micro_batches)
