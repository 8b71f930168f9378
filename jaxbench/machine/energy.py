# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The energy that this machine has used, from counters: RAPL of the processors, NVML of NVIDIA GPUs.

A counter that is missing, or that this process may not read, is left out; a reading names its counters. Nothing is
estimated.
Sources: Linux, Documentation/power/powercap/powercap.rst; NVIDIA, NVML API, nvmlDeviceGetTotalEnergyConsumption.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

_POWERCAP = Path("/sys/class/powercap")
_NVML = "libnvidia-ml.so.1"  # of NVIDIA's driver; called by ctypes, because nvidia-ml-py is an optional package


@dataclass(frozen=True)
class Counter:
    """joules: since an arbitrary moment. wraps_at: the value at which the counter restarts at 0; None: never."""

    joules: float
    wraps_at: float | None = None


Reading = dict[str, Counter]


def read() -> Reading:
    """Every counter that can be read, by name: "package-0", "GPU 0"; {} if there is none."""
    return {**packages(), **gpus()}


def packages(folder: Path = _POWERCAP) -> Reading:
    """RAPL's counters of processor packages. Their subdomains are left out, because the packages contain them."""
    found = {}
    for zone in sorted(folder.glob("intel-rapl:*")):
        if zone.name.count(":") != 1:
            continue  # "intel-rapl:0:1" is a subdomain of package 0
        try:
            name = (zone / "name").read_text().strip()
            joules, most = (float((zone / f).read_text()) / 1e6 for f in ("energy_uj", "max_energy_range_uj"))
        except (OSError, ValueError):
            continue  # since 2020 kernels let only root read it
        if name.startswith("package"):
            found[name] = Counter(joules, most)
    return found


def gpus() -> Reading:
    """NVML's counters of all GPUs that this process sees, from Volta on."""
    try:
        nvml = ctypes.CDLL(_NVML)
    except OSError:
        return {}
    if nvml.nvmlInit_v2():  # every function returns an error code; 0 is success
        return {}
    found, count = {}, ctypes.c_uint()
    if not nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        for index in range(count.value):
            device, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
                continue
            if not nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(millijoules)):
                found[f"GPU {index}"] = Counter(millijoules.value / 1e3)
    nvml.nvmlShutdown()
    return found


def between(before: Reading, after: Reading) -> dict[str, float]:
    """Joules for each counter that both readings have. A processor's counter may have wrapped once, not more often."""
    used = {}
    for name, start in before.items():
        if name not in after:
            continue
        joules = after[name].joules - start.joules
        if joules < 0 and start.wraps_at is not None:
            joules += start.wraps_at
        if joules >= 0:  # otherwise the counter was reset, and the difference means nothing
            used[name] = joules
    return used
