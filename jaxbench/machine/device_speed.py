# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How fast each accelerator is right now: the wall time of a small product on one device after the other.

A device that throttles, that another process uses, or that is of another kind takes longer than the others. It runs
between timed blocks, while the devices are idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

SIDE = 2048  # rows of a square float32 matrix: a product takes 0.3 to 2 ms on accelerators of 2018 to 2024
REPEATS = 3  # the fastest counts, because the first one may find a low clock, and the host may be interrupted


@dataclass(frozen=True)
class DeviceSpeeds:
    """One reading. names: of the devices, with their kinds. product_s: wall seconds of the product on each."""

    names: tuple[str, ...]
    product_s: tuple[float, ...]


class DeviceProbe:
    """Reads the speed of some devices. The caller makes sure that they are idle.

    clock: seconds. multiply: computes a product on the device of its argument, (side, side), and returns it.
    """

    def __init__(
        self,
        devices: Sequence[jax.Device],
        *,
        side: int = SIDE,
        clock: Callable[[], float] = time.perf_counter,
        multiply: Callable[[jax.Array], jax.Array] | None = None,
    ):
        """Compiles and runs the product once on each device."""
        self._names = tuple(f"{device.platform} {device.id} ({device.device_kind})" for device in devices)
        matrix = np.full((side, side), 1 / side, np.float32)
        self._matrices = [jax.device_put(matrix, device) for device in devices]
        self._clock = clock
        self._multiply = multiply or jax.jit(lambda x: x @ x)
        self()

    def __call__(self) -> DeviceSpeeds:
        return DeviceSpeeds(self._names, tuple(self._product_s(matrix) for matrix in self._matrices))

    def _product_s(self, matrix: jax.Array) -> float:
        times = []
        for _ in range(REPEATS):
            start = self._clock()
            jax.block_until_ready(self._multiply(matrix))
            times.append(self._clock() - start)
        return min(times)
