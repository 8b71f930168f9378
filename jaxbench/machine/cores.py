# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The processor cores this process may use, and the contention on them during a timed block.

No jax: a process is pinned before libraries size their thread pools. The counters of a block are read just before and
just after it, so reading costs the block nothing.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.machine import cpu_quota
from jaxbench.machine.cpu_quota import Quota

CPUS = Path("/sys/devices/system/cpu")
STAT = Path("/proc/stat")
TASKS = Path("/proc/self/task")


def physical_cores(allowed: set[int] | None = None, topology: Path = CPUS) -> list[int]:
    """One logical CPU of each physical core that this process may use, in order."""
    # Two hardware threads share the arithmetic units of their core, so two "devices" on them would be as fast as one.
    seen: dict[frozenset[int], int] = {}
    for cpu in sorted(affinity() if allowed is None else allowed):
        seen.setdefault(siblings(cpu, topology), cpu)  # siblings identify their core, so the first thread of each stays
    return sorted(seen.values())


def siblings(cpu: int, topology: Path = CPUS) -> frozenset[int]:
    """The hardware threads of a CPU's core, including the CPU; only the CPU if the system does not report them."""
    try:
        ranges = (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip().split(",")
        ends = [[int(end) for end in each.split("-")] for each in ranges]  # "0,64", or "0-1"
    except (OSError, ValueError):
        return frozenset({cpu})
    return frozenset(number for each in ends for number in range(each[0], each[-1] + 1))


def available_cores() -> int:
    """The number of devices that can have their own core: physical cores in the affinity mask, at most the quota."""
    cores, limit = len(physical_cores()), cpu_quota.limit()
    return cores if limit is None else max(1, min(cores, int(limit)))  # a part of a core would pause its device


def last_level_cache_bytes() -> int | None:
    """The sum of the last-level caches of the CPUs of this process; None if the system does not report them."""
    caches: dict[tuple[int, str], int] = {}
    try:
        for cpu in affinity():
            for index in (CPUS / f"cpu{cpu}" / "cache").glob("index*"):
                level, shared = (int((index / "level").read_text()), (index / "shared_cpu_list").read_text().strip())
                if (index / "type").read_text().strip() != "Instruction":
                    # CPUs that share a cache have the same key, so each cache counts once.
                    caches[level, shared] = _cache_size((index / "size").read_text().strip())
    except (OSError, ValueError):
        return None
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last) or None


def affinity() -> set[int]:
    """The CPUs that this process may use; all where the OS cannot pin."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _cache_size(text: str) -> int:
    """ "32768K" -> bytes."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def free_cores(seconds: float = 0.2, sleep: Callable[[float], object] = time.sleep) -> list[int]:
    """`physical_cores`, the least loaded first, as observed for `seconds`; in order if the system reports no loads."""
    before = cpu_times()  # counted in ticks of 10 ms, so 0.2 s show a load to within 5 %
    sleep(seconds)
    after = cpu_times()

    def loaded(core: int) -> int:
        pairs = [(before[cpu], after[cpu]) for cpu in siblings(core) if cpu in before and cpu in after]
        taken_s = sum(b.busy_s + b.steal_s - a.busy_s - a.steal_s for a, b in pairs)
        # Rounded to tenths of a CPU, so that an idle machine always gives the same order.
        return round(10 * taken_s / seconds)

    return sorted(physical_cores(), key=loaded)  # the sort is stable: equally loaded cores keep their order


def pin_to_cores(count: int, order: Sequence[int] = ()) -> bool:
    """Pins this process to `count` physical cores, or to all if there are fewer. False: the OS cannot pin.

    order: the cores to take first, as from `free_cores`; the other cores of this process follow.
    """
    if not hasattr(os, "sched_setaffinity"):
        return False
    mine = physical_cores()
    chosen = [core for core in order if core in mine]
    os.sched_setaffinity(0, [*chosen, *(core for core in mine if core not in chosen)][:count])
    return True


@dataclass(frozen=True, kw_only=True)
class LoadCounters:
    """Counters since some fixed time.

    Attributes:
      cpu_s: processor time of this process, all threads, in user and system mode.
      switches: involuntary context switches of the threads of this process.
      system_s: the part of cpu_s in system mode. waits: voluntary context switches. faults: page faults without a disk.
      busy_s, steal_s: summed over the CPUs that this process may use: the seconds in which any process ran, and in
        which the hypervisor ran another machine. None if the system does not report them. steal_s is None also while it
        is 0 on every CPU since the system started: there is no hypervisor, or it does not report steal.
      cpus: the number of CPUs that this process may use.
      quota: the CPU quota of this process; None without one.
      threads: the threads of this process, those that wait included; None if the system does not report them.
    """

    cpu_s: float
    switches: int
    busy_s: float | None
    steal_s: float | None
    cpus: int
    system_s: float = 0.0
    waits: int = 0
    faults: int = 0
    quota: Quota | None = None
    threads: int | None = None


@dataclass(frozen=True, kw_only=True)
class CpuTime:
    """Seconds of one CPU since the system started. busy: in any process or interrupt."""

    busy_s: float
    steal_s: float


def cpu_times(stat: Path = STAT) -> dict[int, CpuTime]:
    """The times of every CPU, by number, in steps of a clock tick (10 ms). {} if the system does not report them."""
    try:
        lines = stat.read_text().splitlines()
        tick = 1 / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return {}
    times = {}
    for line in lines:
        name, _, counts = line.partition(" ")
        if not (name.startswith("cpu") and name[3:].isdigit()):
            continue
        # proc(5). Old kernels have fewer columns, so zeros follow. Guest time is already part of user and nice.
        user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (*map(int, counts.split()), *8 * (0,))
        times[int(name[3:])] = CpuTime(busy_s=(user + nice + system + irq + softirq) * tick, steal_s=steal * tick)
    return times if any(time.busy_s for time in times.values()) else {}  # a sandbox may show zeros only


def load_before() -> LoadCounters:
    """The counters, those of this process last: call it just before a block starts."""
    # Reading /proc/stat takes time of this process, which here and below must not count as the block's.
    return _load(*_system_load())


def load_after() -> LoadCounters:
    """The counters, those of this process first: call it just after a block has ended."""
    own = _own_load()
    return _load(*_system_load(), own=own)


def _load(
    busy_s: float | None, steal_s: float | None, cpus: int, own: tuple[float, resource.struct_rusage] | None = None
) -> LoadCounters:
    """The counters of this process and its CPUs, for a difference over a round."""
    # Before this process' own counters, because these take time, too.
    limit, running = cpu_quota.read(), threads()
    cpu_s, used = own or _own_load()
    return LoadCounters(
        cpu_s=cpu_s,
        switches=used.ru_nivcsw,
        busy_s=busy_s,
        steal_s=steal_s,
        cpus=cpus,
        system_s=used.ru_stime,
        waits=used.ru_nvcsw,
        faults=used.ru_minflt,
        quota=limit,
        threads=running,
    )


def threads(tasks: Path = TASKS) -> int | None:
    """The threads of this process, those that wait included; None if the system does not report them."""
    try:
        return len(os.listdir(tasks))
    except OSError:
        return None


def _own_load() -> tuple[float, resource.struct_rusage]:
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF)


def _system_load() -> tuple[float | None, float | None, int]:
    """(busy seconds, steal seconds, number) of the CPUs that this process may use."""
    allowed, times = affinity(), cpu_times()
    if not allowed <= times.keys():
        return None, None, len(allowed)
    mine = [times[cpu] for cpu in allowed]
    # Steal of 0 everywhere says nothing: most machines have no hypervisor, and some hypervisors report none.
    reported = any(time.steal_s for time in times.values())
    steal_s = sum(time.steal_s for time in mine) if reported else None
    return sum(time.busy_s for time in mine), steal_s, len(allowed)


def first_gpus(count: int) -> dict[str, str]:
    """Variables for a process that sees only the first GPUs of this one, because a trainer may use all that it sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    first = ",".join(visible.split(",")[:count])
    # By default a JAX process takes three quarters of a GPU's memory at its start, so no second one would fit.
    return {"CUDA_VISIBLE_DEVICES": first, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
