# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Contention during a timed block: processor time and context switches of this process, other processes, steal.

The counters are read just before and just after a block, so reading costs the block nothing. No jax.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")


@dataclass(frozen=True, kw_only=True)
class LoadCounters:
    """Counters since some fixed time.

    Attributes:
      cpu_s: processor time of this process, all threads, in user and system mode.
      switches: involuntary context switches of the threads of this process.
      busy_s, steal_s: summed over the CPUs that this process may use: the seconds in which any process ran, and in
        which the hypervisor ran another machine. None if the system does not report them. steal_s is None also while it
        is 0 on every CPU since the system started: there is no hypervisor, or it does not report steal.
      cpus: the number of CPUs that this process may use.
    """

    cpu_s: float
    switches: int
    busy_s: float | None
    steal_s: float | None
    cpus: int


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


def before() -> LoadCounters:
    """The counters, those of this process last: call it just before a block starts."""
    return _sample(*_system())


def after() -> LoadCounters:
    """The counters, those of this process first: call it just after a block has ended."""
    own = _own()
    return _sample(*_system(), own=own)


def _sample(
    busy_s: float | None, steal_s: float | None, cpus: int, own: tuple[float, int] | None = None
) -> LoadCounters:
    cpu_s, switches = own or _own()
    return LoadCounters(cpu_s=cpu_s, switches=switches, busy_s=busy_s, steal_s=steal_s, cpus=cpus)


def _own() -> tuple[float, int]:
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _system() -> tuple[float | None, float | None, int]:
    """(busy seconds, steal seconds, number) of the CPUs that this process may use."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    times = cpu_times()
    if not allowed <= times.keys():
        return None, None, len(allowed)
    mine = [times[cpu] for cpu in allowed]
    # Steal of 0 everywhere says nothing: most machines have no hypervisor, and some hypervisors report none.
    reported = any(time.steal_s for time in times.values())
    steal_s = sum(time.steal_s for time in mine) if reported else None
    return sum(time.busy_s for time in mine), steal_s, len(allowed)
