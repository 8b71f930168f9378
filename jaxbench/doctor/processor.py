# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which cores this process may use, and whether their clock stands still. Each reads below `root`, so that a test can
fabricate a machine. What the cores are worth is measured in `core_contention.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from jaxbench.doctor.finding import Finding, State, good_if, judged, number, read
from jaxbench.machine import cores

THROTTLED_GOOD = 0.01  # share of the quota's periods in which the container had to wait
SLOW = 0.7  # of the highest clock, while one core works


def spin(seconds: float = 0.3) -> None:
    """Works, so that a sleeping core's clock rises before it is read."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def cpus(root: Path = Path("/")) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def affinity() -> set[int] | None:
    """The logical CPUs this process may run on; None where the system does not say (macOS)."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def parse_list(text: str) -> set[int]:
    """ "0-2,5" -> {0, 1, 2, 5}: how Linux writes sets of CPUs."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def examine(root: Path = Path("/"), allowed: set[int] | None = None, work: Callable[[], None] = spin) -> list[Finding]:
    allowed = affinity() if allowed is None else allowed
    work()
    folders = [cpus(root) / f"cpu{cpu}" for cpu in sorted(allowed or {0})]
    return [visible(root, allowed), quota(root, allowed), threads(root, allowed), *clock(root, folders)]


def visible(root: Path, allowed: set[int] | None) -> Finding:
    """The CPUs online against those of the affinity mask: physical cores count, for two threads of one share it."""
    total = len(parse_list(read(cpus(root) / "online"))) or os.cpu_count() or 1
    if allowed is None:
        said = f"{total} logical CPUs are visible, and this system does not say which of them this process may use."
        return Finding("cores", "unknown", said, "Processes cannot be pinned here: expect more noise.", {"cpus": total})
    physical = len(cores.physical_cores(allowed, cpus(root)))
    said = f"{physical} physical core{'s' * (physical > 1)} to measure on: the affinity mask grants {len(allowed)} of "
    said += f"{total} logical CPUs."
    advice = "Nothing can be scaled over one core: grant more (docker --cpuset-cpus, taskset, srun -c)."
    state = good_if(physical > 1)
    return judged("cores", state, said, advice, cpus=total, allowed_cpus=len(allowed), physical_cores=physical)


def quota(root: Path, allowed: set[int] | None) -> Finding:
    """A quota stops every process of the container for the rest of a period (100 ms) once its time is used up."""
    cgroup = root / "sys" / "fs" / "cgroup"
    if not cgroup.is_dir():
        return Finding("quota", "unknown", "This system has no control groups, so a CPU quota is not visible.")
    limit = cores.quota(cgroup)
    if limit is None:
        return Finding("quota", "good", "No CPU quota is visible from here.")
    words = (read(cgroup / "cpu.stat") or read(cgroup / "cpu" / "cpu.stat")).split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    share = counts.get("nr_throttled", 0) / counts["nr_periods"] if counts.get("nr_periods") else None
    said = f"The container may use {limit:g} cores' worth of CPU time"
    said += "." if share is None else f", and had to wait in {100 * share:.1f} % of its periods."
    advice = "A quota pauses all cores at once: grant whole cores (docker --cpuset-cpus) in place of --cpus."
    calm = share is not None and share <= THROTTLED_GOOD and limit >= len(allowed or ())
    known = {} if share is None else {"throttled_share": share}
    return judged("quota", good_if(calm), said, advice, quota_cores=limit, **known)


def threads(root: Path, allowed: set[int] | None) -> Finding:
    """Whether a core has a second hardware thread on which something outside this process's mask can run."""
    name, lists = "hyper-threads", (f"cpu{cpu}/topology/thread_siblings_list" for cpu in allowed or ())
    siblings = [parse_list(read(cpus(root) / path)) for path in lists]
    if not siblings or not all(siblings):
        return Finding(name, "unknown", "The system does not say which logical CPUs share a core.")
    most, outside = max(map(len, siblings)), sorted(set().union(*siblings) - (allowed or set()))
    if outside:
        said = f"{len(outside)} CPUs share a core with ours and are not ours (CPU {outside[0]} is one)."
        advice = "Ask for whole cores, or switch SMT off: others run on them."
        return Finding(name, "doubtful", said, advice, {"threads_per_core": most, "outside_cpus": len(outside)})
    said = f"{most} hardware threads a core; jaxbench uses one of each."
    if most == 1:
        said = "Each logical CPU is shown as a core of its own; a virtual machine may hide that two are one."
    return Finding(name, "good", said, "", {"threads_per_core": most})


def clock(root: Path, folders: list[Path]) -> list[Finding]:
    """Governor, frequency just after work, turbo. folders: of our CPUs."""
    found = {text for folder in folders if (text := read(folder / "cpufreq" / "scaling_governor"))}
    advice = "Set it to performance (cpupower frequency-set -g performance): the clock rises only after load."
    governor = Finding(
        "governor", "unknown", "The system does not say what sets the clock (usual in virtual machines)."
    )
    if found:
        governor = judged(
            "governor",
            good_if(found == {"performance"}),
            f"The clock's governor is {', '.join(sorted(found))}.",
            advice,
        )
    return [governor, frequency(folders), turbo(root)]


def frequency(folders: list[Path]) -> Finding:
    """The fastest core now against the highest clock that the processor has."""
    files = ("scaling_cur_freq", "cpuinfo_max_freq", "scaling_max_freq")  # kHz
    now, top, cap = (max(number(folder / "cpufreq" / name) or 0 for folder in folders) for name in files)
    if not now or not top:
        return Finding("clock", "unknown", "The system does not say how fast the cores run.")
    said, numbers = f"A working core runs at {now / 1e6:.2f} of at most {top / 1e6:.2f} GHz", {"clock_hz": 1e3 * now}
    numbers |= {"max_clock_hz": 1e3 * top, **({"cap_hz": 1e3 * cap} if 0 < cap < top else {})}
    said += f", and is capped at {cap / 1e6:.2f} GHz." if "cap_hz" in numbers else "."
    state = good_if(now / top >= SLOW or "cap_hz" in numbers)
    return judged("clock", state, said, "Check cooling, power supply and power profile.", **numbers)


def turbo(root: Path) -> Finding:
    """With turbo, one busy core is clocked higher than many: the base of a scaling curve is too fast."""
    for name, on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        value = number(cpus(root) / name)
        if value is not None and value != on:
            return Finding("turbo", "good", "Turbo is off, so the clock does not depend on how many cores work.")
        if value is not None:
            said = "Turbo is on: one busy core is clocked higher than many, and scaling looks worse than it is."
            how = f"echo {1 - on} > /sys/devices/system/cpu/{name}"
            return Finding("turbo", "doubtful", said, f"For scaling curves switch it off ({how}).")
    return Finding("turbo", "unknown", "The system does not say whether turbo is on.")


def throttles(root: Path = Path("/")) -> int | None:
    """How often the cores were slowed for heat since boot, all counters added; None where nothing counts."""
    counts = [number(path) for path in cpus(root).glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None


def heat(before: int | None, after: int | None) -> Finding:
    """Whether the machine was slowed for heat while it was examined."""
    if before is None or after is None:
        return Finding("heat", "unknown", "The system does not count how often heat slows it.")
    numbers = {"throttles": after - before, "throttles_since_boot": after}
    said = f"Heat slowed the cores {after - before} times during this examination, {after} times since boot."
    state: State = "bad" if after > before else good_if(not after)
    return judged("heat", state, said, "Improve the cooling, or lower the clock until this stops.", **numbers)
