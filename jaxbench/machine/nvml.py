# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""NVIDIA's management library, through the package nvidia-ml-py: the clocks, power, heat and energy of GPUs.

A question that a GPU does not answer is None: a virtual GPU denies its counters, and none of them is 0 for that reason.
Source: NVIDIA, NVML API Reference (device queries, clocks event reasons).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SM, MEMORY, TEMPERATURE_GPU = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU
MODULE = "pynvml"


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """One GPU at one moment; None where it gives no answer.

    reasons: the bits of what lowers its clocks (`records.power`). joules: since the driver was loaded. power_w: since
    Ampere, except GA100, the mean of the last second, so the joules of a short block are more exact.
    """

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: int | None = None
    joules: float | None = None


class Nvml:
    """NVML, started, and the GPUs that it has. handles: by number. Close it at the end."""

    def __init__(self, module: Any):
        """Raises module.NVMLError if NVML does not start."""
        self._module = module
        module.nvmlInit()
        try:
            self.handles = [module.nvmlDeviceGetHandleByIndex(index) for index in range(module.nvmlDeviceGetCount())]
        except module.NVMLError:
            module.nvmlShutdown()
            raise

    @classmethod
    def opened(cls) -> Nvml | None:
        """None without the package, without a driver, or if NVML does not start."""
        try:
            module = importlib.import_module(MODULE)
        except ImportError:
            return None
        try:
            return cls(module)
        except module.NVMLError:
            return None

    def ask(self, question: str, *given: Any) -> Any:
        """The answer to `nvmlDeviceGet` + question; None if this GPU, driver or package does not have it, or if the
        GPU is lost."""
        try:
            return getattr(self._module, f"nvmlDeviceGet{question}")(*given)
        except (self._module.NVMLError, AttributeError):
            return None

    def set_power_limit(self, index: int, watts: float) -> str:
        """Sets the limit of a GPU. Returns why that is not possible, as the driver says it; "" if it was set."""
        try:
            self._module.nvmlDeviceSetPowerManagementLimit(self.handles[index], round(1e3 * watts))
        except self._module.NVMLError as error:
            return str(error)
        return ""

    def read(self, index: int) -> GpuReading:
        """The state of a GPU now."""
        handle = self.handles[index]
        milliwatts, millijoules = self.ask("PowerUsage", handle), self.ask("TotalEnergyConsumption", handle)
        return GpuReading(
            sm_mhz=self.ask("ClockInfo", handle, SM),
            memory_mhz=self.ask("ClockInfo", handle, MEMORY),
            power_w=None if milliwatts is None else milliwatts / 1e3,
            temperature_c=self.ask("Temperature", handle, TEMPERATURE_GPU),
            reasons=self.ask("CurrentClocksEventReasons", handle),
            joules=None if millijoules is None else millijoules / 1e3,
        )

    def default_mhz(self, index: int) -> float | None:
        """The clock of the multiprocessors that a GPU is rated for; a boost may be higher."""
        default: float | None = self.ask("DefaultApplicationsClock", self.handles[index], SM)
        return default if default is not None else self.ask("MaxClockInfo", self.handles[index], SM)

    def close(self) -> None:
        self._module.nvmlShutdown()


def visible(count: int, uuids: Mapping[str, int], environment: Mapping[str, str] = os.environ) -> list[int]:
    """NVML's numbers of the GPUs that CUDA shows to a process, in CUDA's order. NVML itself shows all of them.

    count: of NVML's GPUs. uuids: their numbers by id.
    """
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return [*range(count)]
    found: list[int] = []
    for word in filter(None, map(str.strip, text.split(","))):
        numbers = [int(word)] if word.isdigit() else [at for uuid, at in uuids.items() if uuid.startswith(word)]
        if len(numbers) != 1 or not 0 <= numbers[0] < count:
            break  # CUDA ignores an unknown device and all after it
        found += numbers
    return found
