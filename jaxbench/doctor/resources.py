# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The other resources of a run: memory, a disk to write to, a clock to time with, a port for its processes."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

import numpy as np

from jaxbench.doctor.finding import Finding, good_if, graded, judged, number, read

# (good from, bad below): below 1 GB even the smoke preset has no room for its worker processes.
MEMORY_BYTES, DISK_BYTES = (4e9, 1e9), (2e9, 100e6)
SWAPPED = 0.01  # share of memory that may be swapped out
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63 for "no limit"
WRITTEN_BYTES, SLOW_BYTES_PER_S = 8 * 2**20, 20e6
READINGS = 20_000
# Clocks that are read through a device instead of a register: slow and coarse.
SLOW_SOURCES = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
TIMER_S = (1e-6, 1e-4)  # good up to, bad above: the shortest blocks of a run last some milliseconds
HOST, ECHOES = "127.0.0.1", 200


def examine(folder: Path, root: Path = Path("/")) -> list[Finding]:
    """folder: where results would be written."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    readings = np.array([time.perf_counter() for _ in range(READINGS)])
    disk = [room(shutil.disk_usage(existing).free), speed(existing)]
    return [memory(root), swap(root), *disk, source(root), resolution(readings), port()]


def _meminfo(root: Path) -> dict[str, int]:
    """/proc/meminfo in bytes; empty where it is missing."""
    lines = (line.split() for line in read(root / "proc" / "meminfo").splitlines())
    return {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if words[2:] == ["kB"]}


def container(root: Path) -> tuple[int, int] | None:
    """(limit, in use) of the container's memory, bytes, by cgroup v2, then v1; None when it has no limit."""
    cgroup = root / "sys" / "fs" / "cgroup"
    for folder, limit, usage in ((cgroup, "max", "current"), (cgroup / "memory", "limit_in_bytes", "usage_in_bytes")):
        limit_bytes = number(folder / f"memory.{limit}")
        if limit_bytes is not None and limit_bytes < _UNLIMITED:
            return limit_bytes, number(folder / f"memory.{usage}") or 0
    return None


def _scarce(value: float, limits: tuple[float, float]) -> tuple[float, float, float]:
    """The arguments of `graded` for a number that should be large."""
    return -value, -limits[0], -limits[1]


def memory(root: Path) -> Finding:
    """The memory that can be used now: the kernel's estimate, or less where the container's limit is lower."""
    info, limit, owner = _meminfo(root), container(root), "memory"
    if not {"MemTotal", "MemAvailable"} <= info.keys():
        return Finding("memory", "unknown", "The system does not report how much memory is free.")
    total, free = info["MemTotal"], info["MemAvailable"]
    if limit is not None and limit[0] < total:
        total, free, owner = limit[0], min(free, max(0, limit[0] - limit[1])), "the container's memory"
    message = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB of {owner} are available."
    advice = "Free memory, or use small models and batches (--preset=smoke): each worker process needs half a GB."
    numbers = {"memory_bytes": total, "available_memory_bytes": free}
    return judged("memory", graded(*_scarce(free, MEMORY_BYTES)), message, advice, **numbers)


def swap(root: Path) -> Finding:
    info = _meminfo(root)
    if "SwapTotal" not in info:
        return Finding("swap", "unknown", "The system does not report whether it swaps.")
    used = info["SwapTotal"] - info.get("SwapFree", 0)
    state = good_if(used <= SWAPPED * info.get("MemTotal", 0))
    message = f"{used / 1e9:.1f} GB of memory are swapped out."
    advice = "Swapped memory waits for the disk when it is used: free memory, then swapoff -a."
    return judged("swap", state, message, advice, swap_used_bytes=used, swap_bytes=info["SwapTotal"])


def room(free: int) -> Finding:
    message = f"{free / 1e9:.1f} GB are free where results are written."
    advice = "Free disk space: a run writes up to 100 MB, and a training its checkpoints."
    return judged("disk", graded(*_scarce(free, DISK_BYTES)), message, advice, free_bytes=float(free))


def speed(folder: Path) -> Finding:
    """Writes a few MB and waits until they are on the disk, as each round of a run does at its end."""
    data = os.urandom(WRITTEN_BYTES)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            start = time.perf_counter()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            return judge_speed(len(data) / (time.perf_counter() - start))
    except OSError as error:
        message = f"'{folder}' cannot be written ({error.strerror})."
        return Finding("disk speed", "bad", message, "Start jaxbench in a folder that you may write to.")


def judge_speed(rate: float) -> Finding:
    message, state = f"The disk writes {rate / 1e6:.0f} MB/s (8 MB, fsync).", good_if(rate >= SLOW_BYTES_PER_S)
    advice = "Write to a local disk: checkpoints wait for it."
    return judged("disk speed", state, message, advice, write_bytes_per_s=rate)


def source(root: Path) -> Finding:
    name = read(root / "sys" / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource")
    if not name:
        return Finding("clock source", "unknown", "The system does not report its clock source.")
    advice = "It is slow to read: boot with clocksource=tsc if the processor has a stable one."
    return judged("clock source", good_if(name not in SLOW_SOURCES), f"The clock source is {name}.", advice)


def resolution(readings: np.ndarray) -> Finding:
    """The smallest step that is not zero, and the median difference of two readings, the cost of one.

    readings: (n,) seconds, taken one after the other as fast as possible.
    """
    steps = np.diff(readings)
    if (steps < 0).any() or not (steps > 0).any():
        message = "The clock runs backwards." if (steps < 0).any() else "The clock stands still."
        return Finding("timer", "bad", message, "Choose another clock source: nothing can be timed with this one.")
    step, cost = float(steps[steps > 0].min()), float(np.median(steps))
    message = f"time.perf_counter moves in steps of {1e9 * step:.0f} ns, and a reading costs {1e9 * cost:.0f} ns."
    advice = "Choose another clock source, or longer blocks."
    return judged("timer", graded(max(step, cost), *TIMER_S), message, advice, timer_step_s=step, timer_reading_s=cost)


def port() -> Finding:
    """Whether a port can be opened and connected to, as processes of one run do: sends single bytes there and back."""
    took = []
    try:
        with socket.create_server((HOST, 0)) as server, socket.create_connection(server.getsockname(), 20) as client:
            with server.accept()[0] as other:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for _ in range(ECHOES):
                    start = time.perf_counter()
                    client.sendall(b"x")
                    other.sendall(other.recv(1))
                    client.recv(1)
                    took.append(time.perf_counter() - start)
    except OSError as error:  # a TimeoutError is one
        advice = f"Allow TCP on {HOST} (sandbox, firewall): runs on several machines need it."
        return Finding("loop-back port", "bad", f"No port on {HOST} can be used ({error.strerror or error}).", advice)
    message = f"A port on {HOST} works; the round trip of a byte takes {1e6 * float(np.median(took)):.0f} us."
    return Finding("loop-back port", "good", message, "", {"round_trip_s": float(np.median(took))})
