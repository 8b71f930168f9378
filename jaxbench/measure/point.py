# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A point: one training step, or ablation, to measure; and which process measures it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from jaxbench.core.schema import OWN, StepPlace
from jaxbench.levers import TRAININGS
from jaxbench.machine import cores
from jaxbench.processes.gpu_sharing import sharing_of
from jaxbench.processes.messages import KEEP_MEMORY, Setup


@dataclass(frozen=True, kw_only=True)
class Point(StepPlace):
    """One training step, or ablation, to measure."""

    # These only choose the worker and are not sent to it. Its record takes the first two from the devices themselves.
    platform: str = ""
    processes: int = 1  # the number of processes that run it together
    part_of: int = 0  # of the ablation "alone", in which one device does its share of a step on n devices: n; else 0
    apart: bool = False  # of the ablation "processes": each of its trainings has cores of its own
    memory_share: float = 0.0  # the share of an accelerator's memory for each process; 0: JAX's default

    def to_json(self) -> dict[str, Any]:
        """The fields of the point, as in its record."""
        not_sent = ("platform", "processes", "part_of", "apart", "memory_share")
        return {name: value for name, value in asdict(self).items() if name not in not_sent}

    def worker(self) -> tuple[str, Setup]:
        """(the name of the process that measures it, the setup of that process).

        A CPU process keeps one device count, pinned to the same number of cores. An accelerator belongs to one process
        at a time, so one worker measures every count on a part of the devices. Trainings that share devices have
        separate processes.
        """
        suffix, environment = sharing_of(self.levers, self.memory_share)
        setup = Setup(
            platform=self.platform,
            devices=self.devices,
            processes=self.processes,
            trainings=TRAININGS.of(self.levers).at_once,
            environment=environment,
        )
        if self.strategy == OWN and self.platform == "gpu" and self.processes == 1:
            return f"gpu{self.devices}", replace(setup, environment=cores.first_gpus(self.devices))
        if self.platform != "cpu":
            return self.platform + suffix, setup
        if self.part_of > self.devices:  # the program is built for all n devices, and one of them runs, on one core
            one_core = Setup(platform="cpu", devices=self.part_of, cores=1, environment=KEEP_MEMORY)
            return f"cpu1of{self.part_of}", one_core
        if self.apart:
            return f"cpu{self.devices}x{setup.trainings}", replace(setup, environment=KEEP_MEMORY, own_cores=True)
        name = f"cpu{self.devices}" + (f"-{self.processes}processes" if self.processes > 1 else suffix)
        return name, replace(setup, environment=KEEP_MEMORY)

    @property
    def text(self) -> str:
        """For people: "jit_auto, strong, 4 devices, precision=bfloat16"."""
        words = f"{self.strategy}, {self.scaling}, {self.devices} device{'s' if self.devices > 1 else ''}"
        words += f", {self.point.rpartition('/')[2]}" if self.explains else ""
        return f"{words}, {self.arm}" if self.arm else words
