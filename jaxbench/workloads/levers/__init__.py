# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers as transformations: a TrainWorkload in, one that trains in another way out. Strategies see nothing of it."""

from __future__ import annotations

import dataclasses

from jaxbench.catalog import hardware
from jaxbench.errors import UserError
from jaxbench.levers import DEFAULTS
from jaxbench.workloads.base import TrainWorkload
from jaxbench.workloads.levers import accumulate, freeze, precision


def apply(workload: TrainWorkload, levers: dict[str, str], *, platform: str, device_kind: str) -> TrainWorkload:
    """`workload` with the levers precision, freeze and accumulate; an absent one is at its default.

    Precision comes first and freezing wraps it: so frozen parameters, put back among the others, are cast as they are.
    How often the loss is called says nothing about it: accumulate is last.

    Args:
      workload: of a config whose lever `remat` is what `levers` says.
      platform, device_kind: of the devices it will run on, as `jax.Device` has them.

    Raises:
      UserError: a lever that this model or these devices do not have.
    """
    levers = {**DEFAULTS, **levers}
    _require_remat(workload, levers["remat"], platform)
    _require_precision(levers["precision"], platform, device_kind)
    workload = precision.apply(workload, levers["precision"])
    workload = freeze.apply(workload, levers["freeze"])
    if levers["reduction"].endswith(":bfloat16"):
        workload = dataclasses.replace(
            workload,
            tolerance=5e-3,
            tolerance_reason="sums of gradients in bfloat16 keep 8 bits",
        )
    return accumulate.apply(workload, int(levers["accumulate"]))


def _require_remat(workload: TrainWorkload, remat: str, platform: str) -> None:
    if remat != "none" and not workload.blocks:
        raise UserError(
            f"--config.lever.remat={remat} recomputes like blocks in a row and '{workload.name}' has none: use none."
        )
    if remat == "offload" and platform == "cpu":
        raise UserError(
            f"--config.lever.remat={remat} moves activations to the host's memory, where a CPU has them: use block."
        )


def _require_precision(name: str, platform: str, device_kind: str) -> None:
    peak = hardware.find(device_kind)
    older = peak is not None and "tf32_tflops" not in dict(peak.tflops) and "bf16_tflops" not in dict(peak.tflops)
    if name == "tf32" and (platform != "gpu" or older):
        raise UserError(
            f"--config.lever.precision={name} is of NVIDIA GPUs since Ampere, and this is a {platform} "
            f"('{device_kind}'): use float32 or bfloat16."
        )
