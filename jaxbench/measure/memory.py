# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much memory this process really takes, and a limit on it: what a compiler's figure is proven against."""

from __future__ import annotations

import ctypes
import re
import resource
from pathlib import Path
from typing import Any

import jax

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_MACHINE = Path("/proc/meminfo")
USABLE = 0.8  # of the memory that is left: other processes of a run grow too
SPARED = 2**30  # bytes: from a small process there is little to get, and each page would have to be fetched again


class Unfit(Exception):
    """No device here can give an answer to compare with; the message says why, as the end of a sentence."""


def require(compiled: Any, platform: str) -> None:
    """Raises Unfit where a program compiled for a CPU takes more than USABLE of the memory that its machine has left.

    A CPU would be given the memory and the process be ended for it; an accelerator says so itself.
    """
    left, sizes = _available(), compiled.memory_analysis()
    if platform != "cpu" or left is None or sizes is None:
        return
    needed = sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes
    if needed > USABLE * left:
        raise Unfit(f"one device's answer to the whole batch takes {needed / 2**30:.1f} GiB of {left / 2**30:.1f} left")


class Watch:
    """The highest memory, in bytes, above what was in use when the watch began.

    On a CPU it is the process's resident memory, whose peak Linux lets be forgotten. An accelerator counts what it has
    handed out, and its peak is of all the process's life, with the compiler's trials and initialisation: it is that of
    the step only where it grew while the step ran.
    """

    def __init__(self, device: jax.Device):
        self._device, self._on_cpu = device, device.platform == "cpu"
        if self._on_cpu and _FORGET.exists():
            _FORGET.write_text("5")  # the peak begins anew at what is resident now
        self._before = _status("VmRSS") if self._on_cpu else self._said("bytes_in_use")
        self._earlier: int | None = None

    def step_begins(self, held: Any) -> None:
        """To be called before the step. held: the arrays it is given, which are waited for on an accelerator."""
        if not self._on_cpu:
            jax.block_until_ready(held)
            self._earlier = self._said("peak_bytes_in_use")

    def peak_bytes(self) -> int | None:
        """None where the platform does not say, or does not say it of the step alone."""
        peak = _status("VmHWM") if self._on_cpu else self._said("peak_bytes_in_use")
        if peak is None or self._before is None:
            return None
        if not self._on_cpu and (self._earlier is None or peak <= self._earlier):
            return None
        return max(0, peak - self._before)

    def _said(self, name: str) -> int | None:
        return (self._device.memory_stats() or {}).get(name)


def give_back() -> None:
    """Gives the system what this process has freed, if it holds more than `SPARED` bytes.

    A worker keeps freed memory for its next step (`runner.plan.KEEP_MEMORY`). But another state, laid where the scratch
    of a step was, leaves no place for the next scratch: the process grew by one in each round (ResNet-18, 64 images: 1
    GiB). Only glibc keeps memory, and only it can be asked.
    """
    if (_status("VmRSS") or 0) > SPARED and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def limit_growth(limit_bytes: int) -> None:
    """Lets this process map at most `limit_bytes` more than it has mapped now, for the rest of its life (Linux)."""
    mapped = _status("VmSize")
    if mapped is not None:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + limit_bytes, mapped + limit_bytes))


def _available() -> int | None:
    """Bytes that processes of this machine can still take; None where nothing says so."""
    return _said_in(_MACHINE, "MemAvailable")


def _status(name: str) -> int | None:
    return _said_in(_STATUS, name)


def _said_in(file: Path, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", file.read_text(), re.MULTILINE) if file.exists() else None
    return 1024 * int(found[1]) if found else None
