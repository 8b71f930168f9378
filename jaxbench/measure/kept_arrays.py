# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The arrays that a process keeps from one visit of a point to the next, while no step needs their memory."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from jaxbench.core.program import TrainState
from jaxbench.core.workload import Batch
from jaxbench.measure import memory

FREE_STEPS = 4  # while states are kept, this many times the memory of the largest step stays free


@dataclass(frozen=True)
class Held:
    """The state that a point keeps from one visit to the next.

    steps: all steps that made it, in `visits` visits. counted: the steps that it counted itself.
    """

    state: TrainState
    steps: int = 0
    visits: int = 0
    counted: int = 0


class KeptArrays:
    """Of all points of a process.

    Attributes:
      states, batches: by point, on its devices.
      enabled: False from the moment at which a step might need their memory.
    """

    def __init__(self, device: jax.Device, devices: int):
        """device: of this process, which has `devices` of them."""
        self._device = device
        self._devices = devices if device.platform == "cpu" else 1  # fake devices share the host's memory
        self.states: dict[str, Held] = {}
        self.batches: dict[str, Batch] = {}
        self.enabled = True

    def leave_room(self, step_bytes: int) -> None:
        """step_bytes: of a device, for the largest step that the process has prepared."""
        free = FREE_STEPS * self._devices * step_bytes
        self.enabled = self.enabled and memory.room(self._device) >= free

    def drop(self) -> None:
        """The next visits make them again."""
        self.states.clear()
        self.batches.clear()
