# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The CPU quota of this process, and how long it was stopped because of it, from control groups of version 2 and 1.

A quota stops all threads of a group together, once they have used its CPU time of a period (usually 100 ms). Every
group above that of the process can have one, and the tightest counts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Quota:
    """A quota, and what the kernel has counted since its group began; None if the kernel does not tell.

    cores: the CPU seconds that the group may use per second. throttled_s: the seconds in which it was stopped.
    throttled_share: the share of its periods in which it was stopped.
    """

    cores: float
    throttled_s: float | None
    throttled_share: float | None


def read(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> Quota | None:
    """The tightest quota right now; None without any."""
    limits = {folder: cores for folder in _groups(mount, membership) if (cores := _limit(folder)) is not None}
    if not limits:
        return None
    tightest = min(limits, key=lambda folder: limits[folder])
    counts = _stat(tightest)
    share = counts.get("nr_throttled", 0) / counts["nr_periods"] if counts.get("nr_periods") else None
    # Version 2 counts microseconds, version 1 nanoseconds.
    units = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
    stopped_s = next((counts[name] * unit for name, unit in units.items() if name in counts), None)
    return Quota(limits[tightest], stopped_s, share)


def limit(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> float | None:
    """The tightest quota, in cores; None without any."""
    quota = read(mount, membership)
    return None if quota is None else quota.cores


@functools.cache
def _groups(mount: Path, membership: Path) -> tuple[Path, ...]:
    """The folders of this process' control groups that can hold a quota, its own first. A process changes its group
    only if somebody moves it, so they are looked for once."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        lines = []
    # Version 2 has one tree, "0::/a/b"; version 1 has one for each controller, "4:cpu,cpuacct:/a/b".
    trees = [
        (mount / "cpu" if "cpu" in names.split(",") else mount, path)
        for _, names, path in lines
        if not names or "cpu" in names.split(",")
    ]
    found: list[Path] = []
    for tree, path in [*trees, (mount, "/"), (mount / "cpu", "/")]:
        # In a container the path may be that of the host, which is not mounted here. Then only the root is.
        own = tree / path.strip("/")
        found += [folder for folder in (own, *own.parents) if folder == tree or tree in folder.parents]
    files = ("cpu.max", "cpu.cfs_quota_us")
    return tuple(folder for folder in dict.fromkeys(found) if any((folder / name).is_file() for name in files))


def _limit(folder: Path) -> float | None:
    """The quota of one group, in cores; None without one. Raises nothing: a group may end at any time."""
    try:
        if (folder / "cpu.max").is_file():
            allowed, period = (folder / "cpu.max").read_text().split()  # microseconds of CPU time in each period
            return None if allowed == "max" else int(allowed) / int(period)
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        return quota_us / int((folder / "cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


def _stat(folder: Path) -> dict[str, int]:
    """The numbers of `cpu.stat`, by name; {} if there is none."""
    try:
        words = (folder / "cpu.stat").read_text().split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=False))
    except (OSError, ValueError):
        return {}
