# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a run needs besides cores: memory, a disk to write to, a clock to time with, a port for processes to meet at."""

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
SWAPPED = 0.01  # share of memory that may lie in swap
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63 for "no limit"
WRITTEN_BYTES, SLOW_BYTES_PER_S = 8 * 2**20, 20e6
READINGS = 20_000
# Sources that are read through a device instead of a register: slow, and coarse.
SLOW_SOURCES = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
TIMER_S = (1e-6, 1e-4)  # good up to, bad above: the shortest blocks of a run last some milliseconds
HOST, ECHOES = "127.0.0.1", 200


def examine(folder: Path, root: Path = Path("/")) -> list[Finding]:
    """folder: where results would be written."""
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    readings = np.array([time.perf_counter() for _ in range(READINGS)])
    disk = [room(shutil.disk_usage(place).free), speed(place)]
    return [memory(root), swap(root), *disk, source(root), resolution(readings), port()]


def _meminfo(root: Path) -> dict[str, int]:
    """/proc/meminfo in bytes; empty where it is missing."""
    lines = (line.split() for line in read(root / "proc" / "meminfo").splitlines())
    return {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if words[2:] == ["kB"]}


def container(root: Path) -> tuple[int, int] | None:
    """(limit, in use) of the container's memory, bytes, by cgroup v2, then v1; None when it has no limit."""
    cgroup = root / "sys" / "fs" / "cgroup"
    for folder, most, used in ((cgroup, "max", "current"), (cgroup / "memory", "limit_in_bytes", "usage_in_bytes")):
        limit = number(folder / f"memory.{most}")
        if limit is not None and limit < _UNLIMITED:
            return limit, number(folder / f"memory.{used}") or 0
    return None


def _scarce(value: float, limits: tuple[float, float]) -> tuple[float, float, float]:
    """A number that should be large, for `graded`."""
    return -value, -limits[0], -limits[1]


def memory(root: Path) -> Finding:
    """What can be used now: the kernel's own estimate, or less where the container's limit is nearer."""
    found, limit, whose = _meminfo(root), container(root), "memory"
    if not {"MemTotal", "MemAvailable"} <= found.keys():
        return Finding("memory", "unknown", "The system does not say how much memory is free.")
    total, free = found["MemTotal"], found["MemAvailable"]
    if limit is not None and limit[0] < total:
        total, free, whose = limit[0], min(free, max(0, limit[0] - limit[1])), "the container's memory"
    said = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB of {whose} are available."
    advice = "Free some, or take small models and batches (--preset=smoke): a worker process alone needs half a GB."
    state = graded(*_scarce(free, MEMORY_BYTES))
    return judged("memory", state, said, advice, memory_bytes=total, available_memory_bytes=free)


def swap(root: Path) -> Finding:
    found = _meminfo(root)
    if "SwapTotal" not in found:
        return Finding("swap", "unknown", "The system does not say whether it swaps.")
    used = found["SwapTotal"] - found.get("SwapFree", 0)
    state = good_if(used <= SWAPPED * found.get("MemTotal", 0))
    advice = "What is touched again waits for the disk: free memory, then swapoff -a."
    numbers = {"swap_used_bytes": used, "swap_bytes": found["SwapTotal"]}
    return judged("swap", state, f"{used / 1e9:.1f} GB of memory are swapped out.", advice, **numbers)


def room(free: int) -> Finding:
    said = f"{free / 1e9:.1f} GB are free where results are written."
    advice = "Make room: a run writes up to 100 MB, and a training its checkpoints."
    return judged("disk", graded(*_scarce(free, DISK_BYTES)), said, advice, free_bytes=float(free))


def speed(folder: Path) -> Finding:
    """Writes a few MB and waits until they are on the disk: each round of a run ends in such a write."""
    data = os.urandom(WRITTEN_BYTES)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            start = time.perf_counter()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            return judge_speed(len(data) / (time.perf_counter() - start))
    except OSError as error:
        said = f"'{folder}' cannot be written ({error.strerror})."
        return Finding("disk speed", "bad", said, "Start jaxbench in a folder that you may write to.")


def judge_speed(rate: float) -> Finding:
    said = f"The disk takes {rate / 1e6:.0f} MB/s ({WRITTEN_BYTES / 1e6:.0f} MB, fsync)."
    state = good_if(rate >= SLOW_BYTES_PER_S)
    return judged("disk speed", state, said, "Write to a local disk: checkpoints wait.", write_bytes_per_s=rate)


def source(root: Path) -> Finding:
    name = read(root / "sys" / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource")
    if not name:
        return Finding("clock source", "unknown", "The system does not say what it reads the time from.")
    state = good_if(name not in SLOW_SOURCES)
    advice = "That is slow: boot with clocksource=tsc if the processor has a stable one."
    return judged("clock source", state, f"The time is read from {name}.", advice)


def resolution(readings: np.ndarray) -> Finding:
    """`readings`: (n,) seconds, one after the other as fast as they can be taken.

    Smallest step that is not zero, and the median distance of two readings, which is what one reading costs.
    """
    steps = np.diff(readings)
    if (steps < 0).any() or not (steps > 0).any():
        said = "The clock runs backwards." if (steps < 0).any() else "The clock stands still."
        return Finding("timer", "bad", said, "Choose another clock source: nothing can be timed with this one.")
    step, cost = float(steps[steps > 0].min()), float(np.median(steps))
    said = f"time.perf_counter moves in steps of {1e9 * step:.0f} ns, and a reading costs {1e9 * cost:.0f} ns."
    advice = "Choose another clock source, or longer blocks."
    return judged("timer", graded(max(step, cost), *TIMER_S), said, advice, timer_step_s=step, timer_reading_s=cost)


def port() -> Finding:
    """Whether a port can be opened and met at, as processes of one run do: single bytes there and back."""
    took = []
    try:
        with socket.create_server((HOST, 0)) as server, socket.create_connection(server.getsockname(), 20) as ours:
            with server.accept()[0] as other:
                ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for _ in range(ECHOES):
                    start = time.perf_counter()
                    ours.sendall(b"x")
                    other.sendall(other.recv(1))
                    ours.recv(1)
                    took.append(time.perf_counter() - start)
    except OSError as error:  # a TimeoutError is one
        advice = f"Allow TCP on {HOST} (sandbox, firewall): the processes of a run on several machines meet so."
        return Finding("loop-back port", "bad", f"No port on {HOST} can be used ({error.strerror or error}).", advice)
    said = f"A port on {HOST} works; a byte is there and back in {1e6 * float(np.median(took)):.0f} us."
    return Finding("loop-back port", "good", said, "", {"round_trip_s": float(np.median(took))})
