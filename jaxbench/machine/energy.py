# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The energy that this machine has used, from counters: RAPL of the processors, NVML of NVIDIA GPUs.

A counter that is missing, or that this process may not read, is left out; a reading names its counters. Nothing is
estimated.
Sources: Linux, Documentation/power/powercap/powercap.rst; NVIDIA, NVML API, nvmlDeviceGetTotalEnergyConsumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxbench.machine.nvml import Nvml

_POWERCAP = Path("/sys/class/powercap")


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
    """NVML's counters of all GPUs that this machine has, from Volta on."""
    if (nvml := Nvml.opened()) is None:
        return {}
    try:
        joules = {f"GPU {index}": nvml.read(index).joules for index in range(len(nvml.handles))}
    finally:
        nvml.close()
    return {name: Counter(value) for name, value in joules.items() if value is not None}


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
