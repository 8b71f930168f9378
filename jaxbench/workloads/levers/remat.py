# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The checks of the lever `remat`, which the model itself applies to its blocks (`models/blocks.py`)."""

from __future__ import annotations

from jaxbench.errors import UserError
from jaxbench.workloads.base import TrainWorkload


def require(workload: TrainWorkload, remat: str, platform: str, device_kind: str) -> None:
    """Raises UserError for a model without blocks, and for offload on a CPU."""
    if remat != "none" and not workload.blocks:
        raise UserError(
            f"--config.lever.remat={remat} recomputes identical blocks and '{workload.name}' has none: use none."
        )
    if remat == "offload" and platform == "cpu":
        raise UserError(
            f"--config.lever.remat={remat} moves activations to host memory, where a CPU already has them: use block."
        )
