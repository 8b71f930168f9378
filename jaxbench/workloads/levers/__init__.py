# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers that transform a TrainWorkload so that it trains in another way. Strategies do not see them.

A lever that transforms workloads has a function (workload, value) -> workload in `TRANSFORMS`. A lever that not every
model and device supports has a function (workload, value, platform, device kind) in `REQUIREMENTS`, which raises
UserError. Both are keyed by the name of the declaration in `jaxbench.levers`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from jaxbench.core.workload import TrainWorkload
from jaxbench.errors import UserError
from jaxbench.levers import LEVERS, Reduction
from jaxbench.levers import remat as remats
from jaxbench.workloads.levers import freeze, precision


def accumulate(workload: TrainWorkload, micro_batches: int) -> TrainWorkload:
    """Gradient accumulation over equal parts of the batch, one after the other: only one part's activations are live.

    micro_batches: the number of parts, which must divide every device's examples. `jaxbench.core.program.gradients`
    implements it, because it splits each device's share of the batch, and a workload is independent of devices.
    """
    return dataclasses.replace(workload, micro_batches=micro_batches)


def _reduced(workload: TrainWorkload, reduction: Reduction | None) -> TrainWorkload:
    """The workload with the tolerance for the number format in which its gradients are summed."""
    if reduction is None or reduction.dtype is None:
        return workload
    reason = f"sums of gradients in {reduction.dtype} keep 8 bits"
    return dataclasses.replace(workload, tolerance=5e-3, tolerance_reason=reason)


def _require_blocks(workload: TrainWorkload, remat: str, platform: str, device_kind: str) -> None:
    """Raises UserError for a model without blocks to recompute or names to select, and for offloading on a CPU."""
    if remat != "none" and not workload.blocks:
        raise UserError(
            f"--config.lever.remat={remat} recomputes identical blocks and '{workload.name}' has none: use none."
        )
    if remats.named(remat) is not None and not workload.named:
        raise UserError(
            f"--config.lever.remat={remat} selects activations by name and '{workload.name}' names none: use gpt, or "
            f"{', '.join(remats.KINDS)}."
        )
    if remats.offloads(remat) and platform == "cpu":
        raise UserError(
            f"--config.lever.remat={remat} moves activations to host memory, where a CPU already has them: use block."
        )


TRANSFORMS: dict[str, Callable[[TrainWorkload, Any], TrainWorkload]] = {
    "precision": precision.apply, "freeze": freeze.apply, "accumulate": accumulate, "reduction": _reduced,
}  # fmt: skip
REQUIREMENTS = {"precision": precision.require, "remat": _require_blocks}
# The levers that a workload depends on: those that transform it, and those that the model reads itself.
CHANGES = tuple(name for name, lever in LEVERS.items() if name in TRANSFORMS or lever.changes == "workload")


def apply(workload: TrainWorkload, levers: Mapping[str, str], *, platform: str, device_kind: str) -> TrainWorkload:
    """`workload` with its levers applied in the order of `LEVERS`; an absent lever has its default.

    Freezing is applied after precision, so frozen parameters, merged with the others, are cast too.

    Args:
      workload: built from a config with the same lever `remat` as `levers`.
      platform, device_kind: those of the devices that it will run on, as in `jax.Device`.

    Raises:
      UserError: this model or these devices do not support a lever.
    """
    for name in CHANGES:
        value = LEVERS[name].of(levers)
        if name in REQUIREMENTS:
            REQUIREMENTS[name](workload, value, platform, device_kind)
        if name in TRANSFORMS:
            workload = TRANSFORMS[name](workload, value)
    return workload
