# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory that this process really uses, against which the compiler's figures are tested; and a limit on it."""

from __future__ import annotations

import ctypes
import math
import re
import resource
from pathlib import Path
from typing import Any

import jax

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_MACHINE = Path("/proc/meminfo")
USABLE = 0.8  # share of the available memory: the run's other processes grow too
SPARED = 2**30  # bytes: a small process has little to return, and would have to fault each page in again


class Unfit(Exception):
    """No device here can compute the reference. The message gives the reason, as the end of a sentence."""


def require(compiled: Any, platform: str) -> None:
    """Raises Unfit if a program compiled for a CPU needs more than USABLE of the machine's available memory."""
    # Linux would grant the memory and later kill the process. An accelerator reports the error itself. Compiling is
    # enough to know the need, so nothing is allocated for a program that is too large.
    available, sizes = _in_kib(_MACHINE, "MemAvailable"), compiled.memory_analysis()
    if platform != "cpu" or available is None or sizes is None:
        return
    needed = sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
    if needed > USABLE * available:
        gib = f"{needed / 2**30:.1f} of the {available / 2**30:.1f} GiB available"
        raise Unfit(f"the one-device reference needs {gib}")


class PeakMemory:
    """The peak memory, in bytes, above what was in use when this object was made.

    On a CPU this is the resident memory of the process; Linux can reset its peak. An accelerator counts its
    allocations, and its peak covers the whole life of the process, including autotuning and initialization. That peak
    belongs to the step only if it grew while the step ran.
    """

    def __init__(self, device: jax.Device):
        self._device, self._on_cpu = device, device.platform == "cpu"
        if self._on_cpu and _FORGET.exists():
            _FORGET.write_text("5")  # resets the peak to the current resident memory
        self._before = _process_bytes("VmRSS") if self._on_cpu else self._stat("bytes_in_use")
        self._earlier: int | None = None

    def step_begins(self, held: object) -> None:
        """Call this before the step. held: its arguments, which an accelerator waits for."""
        if not self._on_cpu:
            jax.block_until_ready(held)
            self._earlier = self._stat("peak_bytes_in_use")

    def peak_bytes(self) -> int | None:
        """None if the platform does not report it, or not for the step alone."""
        peak = _process_bytes("VmHWM") if self._on_cpu else self._stat("peak_bytes_in_use")
        if peak is None or self._before is None:
            return None
        if not self._on_cpu and (self._earlier is None or peak <= self._earlier):
            return None
        return max(0, peak - self._before)

    def _stat(self, name: str) -> int | None:
        """A number of the device's allocator; None if its backend does not report it."""
        return (self._device.memory_stats() or {}).get(name)


def available() -> float:
    """The bytes of host memory that processes may still allocate; infinite if the system does not report it."""
    free = _in_kib(_MACHINE, "MemAvailable")
    return math.inf if free is None else USABLE * free


def room(device: jax.Device) -> float:
    """The bytes that are free, of the host for a CPU and otherwise of the device; infinite if neither reports them."""
    if device.platform == "cpu":
        return available()
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats["bytes_in_use"] if {"bytes_limit", "bytes_in_use"} <= stats.keys() else math.inf


def give_back() -> None:
    """Returns this process's freed memory to the system, if the process holds more than `SPARED` bytes."""
    # A worker keeps freed memory for its next step (`messages.KEEP_MEMORY`). But when a new state is allocated inside
    # an old scratch buffer, the next scratch buffer no longer fits there. Without this call the process grew by one
    # scratch buffer in each round (ResNet-18, 64 images: 1 GiB). glibc keeps freed memory and has a call to return it;
    # on other systems this does nothing.
    if (_process_bytes("VmRSS") or 0) > SPARED and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def limit_growth(limit_bytes: int) -> None:
    """Limits this process to mapping `limit_bytes` more than now, for the rest of its life (Linux)."""
    mapped = _process_bytes("VmSize")
    if mapped is not None:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limit_bytes, mapped + limit_bytes))


def _process_bytes(name: str) -> int | None:
    return _in_kib(_STATUS, name)


def _in_kib(file: Path, name: str) -> int | None:
    """The bytes in a line "name: 12 kB"; None without that line."""
    match = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE) if file.exists() else None
    return 1024 * int(match[1]) if match else None
