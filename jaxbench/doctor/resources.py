# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The other resources of a run: memory, disk space for results, and the timer."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np

from jaxbench.doctor.finding import Finding, Result, check, good_if, graded, number, read, worst

# (good from, bad below): below 1 GB even the smoke preset has no room for its worker processes.
MEMORY_BYTES, DISK_BYTES = (4e9, 1e9), (2e9, 100e6)
SWAPPED = 0.01  # share of memory that may be swapped out
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63 for "no limit"
READINGS = 20_000
TIMER_S = (1e-6, 1e-4)  # (good up to, bad above): the shortest timed blocks last a few milliseconds


def examine(folder: Path, root: Path = Path("/")) -> list[Finding]:
    """The findings on memory, disk and timer. folder: where results would be written; it need not exist."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    readings = np.array([time.perf_counter() for _ in range(READINGS)])
    return [memory(root), room(shutil.disk_usage(existing).free), resolution(readings, root)]


def container(root: Path) -> tuple[int, int] | None:
    """(limit, in use) of the container's memory in bytes, from cgroup v2, else v1; None if there is no limit."""
    cgroup = root / "sys" / "fs" / "cgroup"
    for folder, limit, usage in ((cgroup, "max", "current"), (cgroup / "memory", "limit_in_bytes", "usage_in_bytes")):
        limit_bytes = number(folder / f"memory.{limit}")
        if limit_bytes is not None and limit_bytes < _UNLIMITED:
            return limit_bytes, number(folder / f"memory.{usage}") or 0
    return None


@check("memory", "how much memory is free")
def memory(root: Path) -> Result | None:
    """The available memory (the kernel's estimate, or less in a container), and how much is swapped out."""
    lines = (line.split() for line in read(root / "proc" / "meminfo").splitlines())
    info = {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if words[2:] == ["kB"]}
    if not {"MemTotal", "MemAvailable"} <= info.keys():
        return None
    total, free, limit, owner = info["MemTotal"], info["MemAvailable"], container(root), "memory"
    swapped = info.get("SwapTotal", 0) - info.get("SwapFree", 0)
    state = good_if(swapped <= SWAPPED * total)
    if limit is not None and limit[0] < total:
        total, free, owner = limit[0], min(free, max(0, limit[0] - limit[1])), "the container's memory"
    message = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB of {owner} are available, {swapped / 1e9:.1f} are swapped out."
    advice = "Free memory, or use small models and batches (--preset=smoke): each worker process needs half a GB."
    numbers = {"memory_bytes": total, "available_memory_bytes": free, "swap_used_bytes": swapped}
    return worst([state, graded(free, *MEMORY_BYTES)]), message, advice, numbers


@check("disk")
def room(free: int) -> Result:
    message = f"{free / 1e9:.1f} GB are free where results are written."
    advice = "Free disk space: a run writes up to 100 MB, and a training its checkpoints."
    return graded(free, *DISK_BYTES), message, advice, {"free_bytes": float(free)}


@check("timer")
def resolution(readings: np.ndarray, root: Path = Path("/")) -> Result:
    """The clock's smallest nonzero step, and the cost of a reading: the median difference of consecutive readings.

    readings: (n,) seconds, taken as fast as possible. root: the name of the clock source is read below it.
    """
    steps = np.diff(readings)
    if (steps < 0).any() or not (steps > 0).any():
        message = "The clock runs backwards." if (steps < 0).any() else "The clock stands still."
        return "bad", message, "Choose another clock source: nothing can be timed with this one.", {}
    step, cost = float(steps[steps > 0].min()), float(np.median(steps))
    source = read(root / "sys" / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource")
    message = f"The clock{f' ({source})' if source else ''} moves in steps of {1e9 * step:.0f} ns, "
    message += f"and a reading costs {1e9 * cost:.0f} ns."
    advice = "Choose another clock source (clocksource=tsc if the processor has a stable one), or longer blocks."
    return graded(max(step, cost), *TIMER_S), message, advice, {"timer_step_s": step, "timer_reading_s": cost}
