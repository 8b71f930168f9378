# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cores this process may use, and whether their clock is constant. Everything is read below `root`, so that a test
can fabricate a machine. `core_contention.py` measures the cores' speed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from jaxbench.doctor.finding import Finding, State, good_if, judged, number, read
from jaxbench.machine import cores

THROTTLED_GOOD = 0.01  # share of the quota's periods in which the container was paused
SLOW = 0.7  # of the highest clock, while one core works


def spin(seconds: float = 0.3) -> None:
    """Works, so that a sleeping core's clock rises before it is read."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def cpus(root: Path = Path("/")) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def affinity() -> set[int] | None:
    """The logical CPUs this process may run on; None where the system does not report them (macOS)."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def parse_list(text: str) -> set[int]:
    """ "0-2,5" -> {0, 1, 2, 5}: how Linux writes sets of CPUs."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def examine(root: Path = Path("/"), allowed: set[int] | None = None, work: Callable[[], None] = spin) -> list[Finding]:
    allowed = affinity() if allowed is None else allowed
    work()
    folders = [cpus(root) / f"cpu{cpu}" for cpu in sorted(allowed or {0})]
    clock = [governor(folders), frequency(folders), turbo(root)]
    return [visible(root, allowed), quota(root, allowed), threads(root, allowed), *clock]


def visible(root: Path, allowed: set[int] | None) -> Finding:
    """The CPUs online and those of the affinity mask. Physical cores count: two threads of one core share it."""
    total = len(parse_list(read(cpus(root) / "online"))) or os.cpu_count() or 1
    if allowed is None:
        message = f"{total} logical CPUs are visible; this system does not report which of them this process may use."
        advice = "Processes cannot be pinned here: expect more noise."
        return Finding("cores", "unknown", message, advice, {"cpus": total})
    physical = len(cores.physical_cores(allowed, cpus(root)))
    message = f"This process may use {physical} physical core{'s' * (physical > 1)} ({len(allowed)} of {total} logical "
    message += "CPUs by its affinity mask)."
    advice = "One core shows no scaling: grant more (docker --cpuset-cpus, taskset, srun -c)."
    numbers = {"cpus": total, "allowed_cpus": len(allowed), "physical_cores": physical}
    return judged("cores", good_if(physical > 1), message, advice, **numbers)


def quota(root: Path, allowed: set[int] | None) -> Finding:
    """A quota pauses every process of the container for the rest of a period (100 ms) once its CPU time is used up."""
    cgroup = root / "sys" / "fs" / "cgroup"
    if not cgroup.is_dir():
        return Finding("quota", "unknown", "This system has no control groups, so a CPU quota is not visible.")
    limit = cores.quota(cgroup)
    if limit is None:
        return Finding("quota", "good", "No CPU quota is visible from here.")
    words = (read(cgroup / "cpu.stat") or read(cgroup / "cpu" / "cpu.stat")).split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    share = counts.get("nr_throttled", 0) / counts["nr_periods"] if counts.get("nr_periods") else None
    message = f"The container may use the CPU time of {limit:g} cores"
    message += "." if share is None else f", and was paused in {100 * share:.1f} % of its periods."
    advice = "A quota pauses all cores together: grant whole cores (docker --cpuset-cpus) instead of --cpus."
    state = good_if(share is not None and share <= THROTTLED_GOOD and limit >= len(allowed or ()))
    numbers = {} if share is None else {"throttled_share": share}
    return judged("quota", state, message, advice, quota_cores=limit, **numbers)


def threads(root: Path, allowed: set[int] | None) -> Finding:
    """Whether processes outside this process's mask can run on a second hardware thread of its cores."""
    name, lists = "hyper-threads", (f"cpu{cpu}/topology/thread_siblings_list" for cpu in allowed or ())
    siblings = [parse_list(read(cpus(root) / path)) for path in lists]
    if not siblings or not all(siblings):
        return Finding(name, "unknown", "The system does not report which logical CPUs share a core.")
    per_core, outside = max(map(len, siblings)), sorted(set().union(*siblings) - (allowed or set()))
    if outside:
        message = f"{len(outside)} CPUs outside the affinity mask share a core with ours (such as CPU {outside[0]})."
        advice = "Ask for whole cores, or switch SMT off: others run on them."
        return Finding(name, "doubtful", message, advice, {"threads_per_core": per_core, "outside_cpus": len(outside)})
    message = f"A core has {per_core} hardware threads; jaxbench uses one of each."
    if per_core == 1:
        message = "Each logical CPU appears as its own core; a virtual machine may hide that two share one."
    return Finding(name, "good", message, "", {"threads_per_core": per_core})


def governor(folders: list[Path]) -> Finding:
    """folders: of our CPUs."""
    names = {text for folder in folders if (text := read(folder / "cpufreq" / "scaling_governor"))}
    if not names:
        return Finding(
            "governor", "unknown", "The system does not report a clock governor (usual in virtual machines)."
        )
    advice = "Set it to performance (cpupower frequency-set -g performance): the clock rises only after load."
    message = f"The clock's governor is {', '.join(sorted(names))}."
    return judged("governor", good_if(names == {"performance"}), message, advice)


def frequency(folders: list[Path]) -> Finding:
    """The fastest core just after work, against the processor's highest clock."""
    files = ("scaling_cur_freq", "cpuinfo_max_freq", "scaling_max_freq")  # kHz
    now, top, cap = (max(number(folder / "cpufreq" / name) or 0 for folder in folders) for name in files)
    if not now or not top:
        return Finding("clock", "unknown", "The system does not report the clock of the cores.")
    capped = 0 < cap < top
    message = f"A working core runs at {now / 1e6:.2f} of at most {top / 1e6:.2f} GHz"
    message += f", and is capped at {cap / 1e6:.2f} GHz." if capped else "."
    numbers = {"clock_hz": 1e3 * now, "max_clock_hz": 1e3 * top, **({"cap_hz": 1e3 * cap} if capped else {})}
    advice = "Check cooling, power supply and power profile."
    return judged("clock", good_if(now / top >= SLOW or capped), message, advice, **numbers)


def turbo(root: Path) -> Finding:
    """With turbo, one busy core is clocked higher than many: the base of a scaling curve is too fast."""
    for name, on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        value = number(cpus(root) / name)
        if value is not None and value != on:
            return Finding("turbo", "good", "Turbo is off: the clock does not depend on how many cores work.")
        if value is not None:
            message = "Turbo is on: one busy core is clocked higher than many, and scaling looks worse than it is."
            how = f"echo {1 - on} > /sys/devices/system/cpu/{name}"
            return Finding("turbo", "doubtful", message, f"For scaling curves switch it off ({how}).")
    return Finding("turbo", "unknown", "The system does not report whether turbo is on.")


def throttles(root: Path = Path("/")) -> int | None:
    """How often heat slowed the cores since boot, summed over all counters; None without counters."""
    counts = [number(path) for path in cpus(root).glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None


def heat(before: int | None, after: int | None) -> Finding:
    """Whether heat slowed the machine during the examination."""
    if before is None or after is None:
        return Finding("heat", "unknown", "The system does not count how often heat slows it.")
    message = f"Heat slowed the cores {after - before} times during this examination, {after} times since boot."
    state: State = "bad" if after > before else good_if(not after)
    numbers = {"throttles": after - before, "throttles_since_boot": after}
    return judged("heat", state, message, "Improve the cooling, or lower the clock until this stops.", **numbers)
