# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much memory there is to measure in: of the machine, and of the container."""

from __future__ import annotations

import os
from pathlib import Path

from jaxbench.doctor.finding import Finding
from jaxbench.doctor.processor import read_number

LEAST_BYTES = 1e9  # below this even the smoke preset has no room for its worker processes
ENOUGH_BYTES = 4e9
SWAPPED = 0.01  # share of memory that may lie in swap
_UNLIMITED = 2**60  # cgroup v1 writes a number near 2**63 for "no limit"


def meminfo(root: Path) -> dict[str, int]:
    """/proc/meminfo in bytes; empty where it is missing."""
    try:
        lines = (root / "proc" / "meminfo").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def limit(root: Path) -> tuple[int, int] | None:
    """(limit, in use) of the container, bytes, by cgroup v2, then v1; None when it has no limit."""
    cgroup = root / "sys" / "fs" / "cgroup"
    pairs = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
    for most, used in pairs:
        bound = read_number(cgroup / most)
        if bound is not None and bound < _UNLIMITED:
            return bound, read_number(cgroup / used) or 0
    return None


def examine(root: Path = Path("/")) -> list[Finding]:
    found = meminfo(root)
    return [available(root, found), swap(found)]


def available(root: Path, found: dict[str, int]) -> Finding:
    """What can be used now: the kernel's own estimate, or less where the container's limit is nearer."""
    bound = limit(root)
    total, free = found.get("MemTotal"), found.get("MemAvailable")
    if total is None or free is None:
        size = _physical_bytes()
        said = "The system does not say how much memory is free" + (f", of {size / 1e9:.1f} GB." if size else ".")
        return Finding("memory", "unknown", said, "", {"memory_bytes": size} if size else {})
    said = ""
    if bound is not None and bound[0] < total:
        total, free = bound[0], min(free, max(0, bound[0] - bound[1]))
        said = " that the container may use"
    numbers = {"memory_bytes": total, "available_memory_bytes": free}
    said = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB of memory{said} are available."
    if free < LEAST_BYTES:
        return Finding("memory", "bad", said, "Free 1 GB at least: a worker process alone needs half of that.", numbers)
    if free < ENOUGH_BYTES:
        return Finding("memory", "doubtful", said, "Take small models and batches (--preset=smoke).", numbers)
    return Finding("memory", "good", said, "", numbers)


def swap(found: dict[str, int]) -> Finding:
    if "SwapTotal" not in found or "SwapFree" not in found:
        return Finding("swap", "unknown", "The system does not say whether it swaps.")
    used = found["SwapTotal"] - found["SwapFree"]
    numbers = {"swap_used_bytes": used, "swap_bytes": found["SwapTotal"]}
    if used > SWAPPED * found.get("MemTotal", 0):
        said = f"{used / 1e9:.1f} GB lie in swap: what is touched again waits for the disk."
        return Finding("swap", "doubtful", said, "Free memory, then swapoff -a, or wait until it is back.", numbers)
    said = f"{used / 1e9:.1f} GB lie in swap." if used else "Nothing lies in swap."
    return Finding("swap", "good", said, "", numbers)


def _physical_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
