# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cores that this process may use, their other users, and whether their clock is constant.

Everything is read below `root`, so that a test can fabricate a machine. `core_contention.py` measures the cores' speed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from jaxbench.doctor.finding import Finding, Result, State, check, good_if, graded, number, read, worst
from jaxbench.machine import cores

ROOT = Path("/")
WATCH_S = 1.0
# (good up to, bad above): the share of CPU time that other programs use, and the share that a hypervisor takes away.
OTHERS, STEAL = (0.05, 0.25), (0.01, 0.05)
THROTTLED_GOOD = 0.01  # good up to this share of the quota's periods in which the container was paused
SLOW = 0.7  # doubtful below this share of the highest clock that the system allows, while one core works
TURBO_ON = {"intel_pstate/no_turbo": 0, "cpufreq/boost": 1}  # by file: the value that means "on"
Times = dict[int, cores.CpuTime]  # by CPU


def sleep() -> float:
    """Sleeps for WATCH_S. Returns the seconds that have passed."""
    start = time.perf_counter()
    time.sleep(WATCH_S)
    return time.perf_counter() - start


def cpus(root: Path = ROOT) -> Path:
    return root / "sys" / "devices" / "system" / "cpu"


def cpu_times(root: Path = ROOT) -> Times:
    return cores.cpu_times(root / "proc" / "stat")


def affinity() -> set[int] | None:
    """The logical CPUs this process may run on; None where the system does not report them (macOS)."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def other_load(root: Path = ROOT, allowed: set[int] | None = None, watch: Callable[[], float] = sleep) -> list[Finding]:
    """Watches other load for a second. Call it first: later, this process's own work is in the counters."""
    before, wall_s, after = cpu_times(root), watch(), cpu_times(root)
    boot_s = float((read(root / "proc" / "uptime") or "nan").split()[0])
    return [others(before, after, wall_s, allowed or affinity()), steal(before, after, wall_s, boot_s)]


@check("other load", "other load")
def others(before: Times, after: Times, wall_s: float, allowed: set[int] | None, own_s: float = 0.0) -> Result | None:
    """The CPU time used between two readings, minus `own_s`: the seconds that doctor's own processes used.

    Other load on our CPUs is lost time. On other CPUs it costs memory bandwidth, cache and clock, so it is at most
    doubtful.
    """
    busy_s = {cpu: after[cpu].busy_s - before[cpu].busy_s for cpu in after if cpu in before}
    ours = [seconds for cpu, seconds in busy_s.items() if allowed is None or cpu in allowed]
    if not ours:
        return None
    total, here = (max(0.0, sum(seconds) - own_s) / wall_s for seconds in (busy_s.values(), ours))
    numbers = {"busy_cpus": total, "busy_share": total / len(busy_s), "our_busy_share": here / len(ours)}
    message = f"Other programs keep {total:.2f} of {len(busy_s)} CPUs busy, {here:.2f} of our {len(ours)}."
    state = worst([graded(here / len(ours), *OTHERS), good_if(total / len(busy_s) <= OTHERS[0])])
    return state, message, "Stop other programs (see top), which cause scatter and drift.", numbers


@check("steal", "what a hypervisor takes")
def steal(before: Times, after: Times, wall_s: float, boot_s: float) -> Result | None:
    """The stolen share now and since boot, because a neighbour on the host may pause during the watched second."""
    if not any(time.steal_s for time in after.values()):  # a hypervisor that reports steal has taken some since boot
        return None
    taken, since_boot = ([times[cpu].steal_s for cpu in after if cpu in times] for times in (before, after))
    now, ever = (sum(since_boot) - sum(taken)) / wall_s / len(after), sum(since_boot) / boot_s / len(after)
    message = f"The hypervisor takes {100 * now:.1f} % of CPU time now, {100 * ever:.2f} % since boot."
    advice = "Neighbours on the host compete: use a dedicated host."
    numbers = {"steal_share": now, "steal_share_since_boot": ever}
    return worst(graded(share, *STEAL) for share in (now, ever)), message, advice, numbers


def examine(root: Path = ROOT, allowed: set[int] | None = None) -> list[Finding]:
    """The findings on cores, quota and clock. Call it right after all cores worked: an idle core's clock is low."""
    allowed = affinity() if allowed is None else allowed
    return [visible(root, allowed), quota(root, allowed), clock(root, allowed)]


@check("cores", "which CPUs this process may use, so it cannot be pinned: expect more noise")
def visible(root: Path, allowed: set[int] | None) -> Result | None:
    """How many physical cores this process may use, and whether CPUs outside its affinity mask share them."""
    if allowed is None:
        return None
    total = len(list(cpus(root).glob("cpu[0-9]*/topology"))) or os.cpu_count() or 1
    siblings = {cores.siblings(cpu, cpus(root)) for cpu in allowed}
    physical, outside = len(siblings), len(frozenset().union(*siblings) - allowed)
    message = f"This process may use {physical} physical core{'s' * (physical > 1)} ({len(allowed)} of {total} logical "
    message += f"CPUs by its affinity mask){f', and {outside} others share a core with ours' * bool(outside)}."
    advice = "Grant more, and whole cores (docker --cpuset-cpus, taskset, srun -c): one core shows no scaling."
    numbers = {"cpus": total, "allowed_cpus": len(allowed), "physical_cores": physical, "outside_cpus": outside}
    return good_if(physical > 1 and not outside), message, advice, numbers


@check("quota", "a CPU quota: it has no control groups")
def quota(root: Path, allowed: set[int] | None) -> Result | None:
    """The container's CPU quota. Once it is used up, every process pauses for the rest of the period (100 ms)."""
    cgroup = root / "sys" / "fs" / "cgroup"
    limit = cores.quota(cgroup)
    if limit is None:
        return ("good", "No CPU quota is visible from here.", "", {}) if cgroup.is_dir() else None
    words = (read(cgroup / "cpu.stat") or read(cgroup / "cpu" / "cpu.stat")).split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    share = counts.get("nr_throttled", 0) / counts["nr_periods"] if counts.get("nr_periods") else None
    message = f"The container may use the CPU time of {limit:g} cores"
    message += "." if share is None else f", and was paused in {100 * share:.1f} % of its periods."
    advice = "A quota pauses all cores together: grant whole cores (docker --cpuset-cpus) instead of --cpus."
    state = good_if(share is not None and share <= THROTTLED_GOOD and limit >= len(allowed or ()))
    return state, message, advice, {"quota_cores": limit, **({} if share is None else {"throttled_share": share})}


@check("clock", "the clock of its cores (usual in virtual machines)")
def clock(root: Path, allowed: set[int] | None) -> Result | None:
    """The governor, turbo, and the clock of the fastest core right after work. With turbo, one busy core has a higher
    clock than many busy cores, so the base of a scaling curve is too fast."""
    folders = [cpus(root) / f"cpu{cpu}" / "cpufreq" for cpu in sorted(allowed or {0})]
    files = ("scaling_cur_freq", "cpuinfo_max_freq", "scaling_max_freq")  # kHz
    now, top, cap = (max(number(folder / name) or 0 for folder in folders) for name in files)
    governors = sorted({text for folder in folders if (text := read(folder / "scaling_governor"))})
    switches = {on == number(cpus(root) / name) for name, on in TURBO_ON.items() if read(cpus(root) / name)}
    parts = [(governors == ["performance"], f"the governor is {', '.join(governors)}")] if governors else []
    parts += [(not any(switches), f"turbo is {'on' if any(switches) else 'off'}")] if switches else []
    if now and top:
        speed = f"a working core runs at {now / 1e6:.2f} of at most {top / 1e6:.2f} GHz"
        parts.append((now >= SLOW * min(top, cap or top), speed))
    advice = f"Fix the clock: cpupower frequency-set -g performance, no turbo ({', '.join(TURBO_ON)}), cooling."
    numbers = {"clock_hz": 1e3 * now, "max_clock_hz": 1e3 * top, "cap_hz": 1e3 * cap} if now and top else {}
    message = f"Clock: {', '.join(text for _, text in parts)}."
    return (good_if(all(good for good, _ in parts)), message, advice, numbers) if parts else None


def throttles(root: Path = ROOT) -> int | None:
    """How often heat has slowed the cores since boot, summed over all counters; None without counters."""
    counts = [number(path) for path in cpus(root).glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    return sum(count or 0 for count in counts) if counts else None


@check("heat", "how often heat slows it")
def heat(before: int | None, after: int | None) -> Result | None:
    """Whether heat slowed the machine during the examination."""
    if before is None or after is None:
        return None
    message = f"Heat slowed the cores {after - before} times during this examination, {after} times since boot."
    state: State = "bad" if after > before else good_if(not after)
    numbers = {"throttles": after - before, "throttles_since_boot": after}
    return state, message, "Improve the cooling, or lower the clock until this stops.", numbers
