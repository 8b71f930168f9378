# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which cores this process may use: those it sees, its affinity mask, the quota of its container, its hyper-threads.

Each reads below `root`, so that a test can fabricate a machine. What the cores are worth is measured in `together.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

from jaxbench.doctor.finding import Finding
from jaxbench.machine import cores

THROTTLED_GOOD = 0.01  # share of the quota's periods in which the container had to wait


def cpus(root: Path = Path("/")) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def affinity() -> set[int] | None:
    """The logical CPUs this process may run on; None where the system does not say (macOS)."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def parse_list(text: str) -> set[int]:
    """ "0-2,5" -> {0, 1, 2, 5}: how Linux writes sets of CPUs."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def read_list(path: Path) -> set[int] | None:
    """None where the file is missing or says nothing legible."""
    try:
        return parse_list(path.read_text()) or None
    except (OSError, ValueError):
        return None


def read_number(path: Path) -> int | None:
    """None where the file is missing or holds no whole number ("max")."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def examine(root: Path = Path("/"), allowed: set[int] | None = None) -> list[Finding]:
    allowed = affinity() if allowed is None else allowed
    return [visible(root, allowed), quota(root, allowed), threads(root, allowed)]


def visible(root: Path, allowed: set[int] | None) -> Finding:
    """The cores online against those of the affinity mask: physical ones count, for two threads of one share it."""
    online = read_list(cpus(root) / "online")
    total = len(online) if online else os.cpu_count() or 1
    if allowed is None:
        said = f"{total} logical CPUs are visible, and this system does not say which of them this process may use."
        return Finding("cores", "unknown", said, "Processes cannot be pinned here: expect more noise.", {"cpus": total})
    physical = len(cores.physical_cores(allowed, cpus(root)))
    numbers = {"cpus": total, "allowed_cpus": len(allowed), "physical_cores": physical}
    said = f"{physical} physical {_plural('core', physical)} to measure on; "
    said += f"the affinity mask grants {len(allowed)} of {total} logical {_plural('CPU', total)}."
    if physical == 1:
        advice = "Nothing can be scaled over one core: grant more (docker --cpuset-cpus, taskset, srun -c)."
        return Finding("cores", "doubtful", said, advice, numbers)
    return Finding("cores", "good", said, "", numbers)


def quota(root: Path, allowed: set[int] | None) -> Finding:
    """A quota stops every process of the container for the rest of a period (100 ms) once its time is used up."""
    cgroup = root / "sys" / "fs" / "cgroup"
    if not cgroup.is_dir():
        return Finding("quota", "unknown", "This system has no control groups, so a CPU quota is not visible.")
    limit = cores.quota(cgroup)
    if limit is None:
        return Finding("quota", "good", "No CPU quota is visible from here.")
    share = _throttled(cgroup)
    said = f"The container may use {limit:g} cores' worth of CPU time"
    said += "." if share is None else f", and had to wait in {100 * share:.1f} % of its periods."
    numbers = {"quota_cores": limit, **({} if share is None else {"throttled_share": share})}
    advice = "A quota pauses all cores at once: grant whole cores (docker --cpuset-cpus) in place of --cpus."
    calm = share is not None and share <= THROTTLED_GOOD and limit >= len(allowed or ())
    return Finding("quota", "good" if calm else "doubtful", said, "" if calm else advice, numbers)


def _throttled(cgroup: Path) -> float | None:
    """The share of the quota's periods, since the container began, in which it ran out of time."""
    for path in (cgroup / "cpu.stat", cgroup / "cpu" / "cpu.stat"):
        try:
            lines = dict(line.split() for line in path.read_text().splitlines() if len(line.split()) == 2)
            periods = int(lines["nr_periods"])
            return int(lines["nr_throttled"]) / periods if periods else None
        except (OSError, KeyError, ValueError):
            continue
    return None


def threads(root: Path, allowed: set[int] | None) -> Finding:
    """Whether a core has a second hardware thread on which something outside this process's mask can run."""
    name = "hyper-threads"
    if allowed is None:
        return Finding(name, "unknown", "This system does not say which logical CPUs share a core.")
    siblings = {
        cpu: read_list(cpus(root) / f"cpu{cpu}" / "topology" / "thread_siblings_list") for cpu in sorted(allowed)
    }
    known = [found for found in siblings.values() if found]
    if len(known) < len(siblings):
        return Finding(name, "unknown", "The system does not say which logical CPUs share a core.")
    most = max(len(found) for found in known)
    numbers: dict[str, float] = {"threads_per_core": most}
    if most == 1:
        said = "Each logical CPU is shown as a core of its own; a virtual machine may hide that two are one."
        return Finding(name, "good", said, "", numbers)
    outside = sorted(set().union(*known) - allowed)
    if outside:
        numbers["outside_cpus"] = len(outside)
        said = f"{len(outside)} CPUs that share a core with ours are not ours (CPU {outside[0]} among them)."
        return Finding(name, "doubtful", said, "Ask for whole cores, or switch SMT off: others run on them.", numbers)
    return Finding(name, "good", f"{most} hardware threads a core; jaxbench uses one of each.", "", numbers)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
