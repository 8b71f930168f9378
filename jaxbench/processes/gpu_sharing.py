# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Several trainings on one GPU: their memory, and NVIDIA's Multi-Process Service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxbench.config import Settings
from jaxbench.errors import UserError
from jaxbench.levers import TRAININGS, Arm
from jaxbench.records.manifest import Machine

USABLE = 0.9  # share of a GPU's memory, for all processes of the run together
PIPES, DEFAULT_PIPES = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"  # where the service and its clients meet
NO_PIPES = "/nonexistent"  # without the service, processes would take turns on the GPU


def require_sharable(settings: Settings, machine: Machine) -> None:
    """Raises UserError for trainings that cannot share the devices of this machine. machine: a manifest."""
    for arm in settings.arms:
        sharing, field = TRAININGS.of(arm.levers), f"--config.lever.trainings={arm.levers[TRAININGS.name]}"
        if sharing.mps and machine["platform"] != "gpu":
            raise UserError(
                f"{field} needs an NVIDIA GPU, which trainings share by its Multi-Process Service, and this run "
                f"measures on the {machine['platform']}: use {sharing.at_once}."
            )
        if sharing.mps and not (Path(os.environ.get(PIPES, DEFAULT_PIPES)) / "control").exists():
            raise UserError(f"{field} needs the Multi-Process Service: start it with nvidia-cuda-mps-control -d.")
        if sharing.at_once == 1:
            continue
        if machine["platform"] == "tpu":
            raise UserError(f"{field} is not possible on a TPU, where one process of a host owns all chips: use 1.")
        if "hosts" in machine:
            raise UserError(f"{field} is measured by processes of this machine: start it without a launcher.")
        if str(settings.mesh_processes).strip() != "1":
            raise UserError(
                f"{field} runs each training in one process, so --config.mesh.processes={settings.mesh_processes} has "
                "no place: leave it out."
            )


def memory_share(arms: Sequence[Arm], platform: str) -> float:
    """The share of a GPU's memory for each process. All get the same, because the processes of all arms live at once.

    0 leaves the choice to JAX: on other platforms, and if nothing is shared.
    """
    processes = {arm.levers[TRAININGS.name]: TRAININGS.of(arm.levers).at_once for arm in arms}
    return USABLE / sum(processes.values()) if platform == "gpu" and max(processes.values()) > 1 else 0.0


def sharing_of(levers: Mapping[str, str], share: float) -> tuple[str, dict[str, str]]:
    """(the end of the worker's name, its environment variables) for an arm with concurrent trainings.

    share: see `memory_share`.
    """
    sharing = TRAININGS.of(levers)
    name = (f"-{sharing.at_once}trainings" if sharing.at_once > 1 else "") + ("-mps" if sharing.mps else "")
    if not share:
        return name, {}
    pipes = os.environ.get(PIPES, DEFAULT_PIPES) if sharing.mps else NO_PIPES
    return name, {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share:.3f}", PIPES: pipes}
