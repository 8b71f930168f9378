# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Clocks, power and energy of the devices during a timed block: before it, after it, and once a second inside it."""

from __future__ import annotations

import functools
import operator
import statistics
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxbench.machine import energy
from jaxbench.machine.energy import Counter
from jaxbench.machine.nvml import GpuReading, Nvml, visible
from jaxbench.records.power import DevicePower

EVERY_S = 1.0


@dataclass(frozen=True)
class Moment:
    """What all devices say at one moment, by name: "GPU 0", "package-0"."""

    gpus: Mapping[str, GpuReading]
    packages: Mapping[str, Counter]


class PowerMeter:
    """Reads the devices of this process around and during blocks. read: what they say now. every_s: between two
    readings inside a block. default_mhz: the clock that each GPU is rated for."""

    def __init__(
        self,
        read: Callable[[], Moment],
        *,
        default_mhz: Mapping[str, float | None] | None = None,
        every_s: float = EVERY_S,
    ):
        self._read, self._every_s, self._default_mhz = read, every_s, default_mhz or {}
        self._moments: list[Moment] = []
        self._begun, self._over = threading.Event(), threading.Event()
        # A waiting thread computes nothing, so a block that is shorter than `every_s` is not disturbed.
        threading.Thread(target=self._inside, name="power", daemon=True).start()

    def begin(self) -> None:
        """Before a block."""
        self._moments = [self._read()]
        self._over.clear()
        self._begun.set()

    def end(self) -> tuple[DevicePower, ...]:
        """After it: what each device did."""
        self._begun.clear()
        self._over.set()
        moments = [*self._moments, self._read()]
        of_gpus = [self._gpu(name, [moment.gpus[name] for moment in moments]) for name in moments[0].gpus]
        return (*of_gpus, *_packages(moments[0].packages, moments[-1].packages))

    def _inside(self) -> None:
        """Reads while a block runs, in a thread of its own."""
        while True:
            self._begun.wait()
            moments = self._moments
            while not self._over.wait(self._every_s):
                moments.append(self._read())

    def _gpu(self, name: str, readings: Sequence[GpuReading]) -> DevicePower:
        """The energy and the mean clocks of one GPU over its readings."""
        before, after = readings[0].joules, readings[-1].joules
        # Without two answers, or after a reset, nothing is known about the energy between them.
        known = before is not None and after is not None and after >= before
        reasons = [each.reasons for each in readings if each.reasons is not None]
        return DevicePower(
            device=name,
            readings=len(readings),
            sm_mhz=_mean(each.sm_mhz for each in readings),
            memory_mhz=_mean(each.memory_mhz for each in readings),
            power_w=_mean(each.power_w for each in readings),
            temperature_c=_mean(each.temperature_c for each in readings),
            reasons=functools.reduce(operator.or_, reasons) if reasons else None,
            joules_before=before,
            joules_after=after,
            joules=after - before if known and before is not None and after is not None else None,
            default_mhz=self._default_mhz.get(name),
        )


def of_this_process(platform: str, devices: int) -> PowerMeter | None:
    """The meter of the devices that this process uses; None if nothing can be read.

    devices: how many GPUs it uses, which are the first that CUDA shows.
    """
    if platform == "cpu":
        return PowerMeter(lambda: Moment({}, energy.packages())) if energy.packages() else None
    nvml = Nvml.opened() if platform == "gpu" else None
    if nvml is None:
        return None
    uuids = {_as_str(nvml.ask("UUID", handle)): index for index, handle in enumerate(nvml.handles)}
    numbers = visible(len(nvml.handles), uuids)[:devices]
    return meter_of(nvml, numbers) if numbers else None


def idle_w() -> dict[str, float]:
    """The power of each GPU that CUDA shows to this process, now; without those that do not say it."""
    if (nvml := Nvml.opened()) is None:
        return {}
    try:
        uuids = {_as_str(nvml.ask("UUID", handle)): index for index, handle in enumerate(nvml.handles)}
        watts = {f"GPU {index}": nvml.read(index).power_w for index in visible(len(nvml.handles), uuids)}
    finally:
        nvml.close()
    return {name: value for name, value in watts.items() if value is not None}


def meter_of(nvml: Nvml, numbers: Sequence[int], *, every_s: float = EVERY_S) -> PowerMeter:
    """The meter of these GPUs."""

    def read() -> Moment:
        return Moment({f"GPU {index}": nvml.read(index) for index in numbers}, energy.packages())

    default_mhz = {f"GPU {index}": nvml.default_mhz(index) for index in numbers}
    return PowerMeter(read, default_mhz=default_mhz, every_s=every_s)


def _packages(before: Mapping[str, Counter], after: Mapping[str, Counter]) -> list[DevicePower]:
    """The energy of each processor package between two readings."""
    used = energy.between(dict(before), dict(after))
    return [
        DevicePower(
            device=name,
            readings=2,
            joules_before=before[name].joules,
            joules_after=after[name].joules,
            joules=used.get(name),
        )
        for name in before
        if name in after
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _as_str(name: object) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
