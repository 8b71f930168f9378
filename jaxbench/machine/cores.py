# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The processor cores this process may use. No jax: a process is pinned before libraries size their thread pools."""

from __future__ import annotations

import os
from pathlib import Path


def physical_cores(allowed: set[int] | None = None, topology: Path = Path("/sys/devices/system/cpu")) -> list[int]:
    """One logical CPU of each physical core this process may run on, in order.

    Two hardware threads share the arithmetic units of their core, so two "devices" on them would be as fast as one.
    """
    seen: dict[str, int] = {}
    for cpu in sorted(_affinity() if allowed is None else allowed):
        try:
            siblings = (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
        except OSError:
            siblings = str(cpu)
        seen.setdefault(siblings, cpu)
    return sorted(seen.values())


def quota(cgroup: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The limit of a container's CPU time, in cores; None without a limit. Reads cgroup v2, then v1."""
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((cgroup / "cpu" / "cpu.cfs_quota_us").read_text())
        return quota_us / int((cgroup / "cpu" / "cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


def available_cores() -> int:
    """How many devices can have their own core: the physical cores in the affinity mask, limited by the quota."""
    cores, limit = len(physical_cores()), quota()
    return cores if limit is None else max(1, min(cores, int(limit)))


def last_level_cache_bytes(cpus: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """The sum of the last-level caches of the CPUs this process may use; None where the system does not report them."""
    caches: dict[tuple[int, str], int] = {}
    try:
        for cpu in _affinity():
            for index in (cpus / f"cpu{cpu}" / "cache").glob("index*"):
                level, shared = (int((index / "level").read_text()), (index / "shared_cpu_list").read_text().strip())
                if (index / "type").read_text().strip() != "Instruction":
                    caches[level, shared] = _cache_size((index / "size").read_text().strip())
    except (OSError, ValueError):
        return None
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last) or None


def _affinity() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _cache_size(text: str) -> int:
    """ "32768K" -> bytes."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def pin_to_cores(count: int) -> bool:
    """Pins this process to its first `count` physical cores, or to all if there are fewer. False: the OS cannot."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, physical_cores()[:count])
    return True
