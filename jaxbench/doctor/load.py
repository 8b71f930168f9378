# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What else runs on this machine: /proc/stat over a second in which this process sleeps, and the load average."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jaxbench.doctor.finding import Finding, graded, worst
from jaxbench.doctor.processor import affinity

WATCH_S = 1.0
# Share of the CPUs' time that others may use, and share that a hypervisor may take away: good up to, bad above.
OTHERS = {"good": 0.05, "bad": 0.25}
STEAL = {"good": 0.01, "bad": 0.05}


@dataclass(frozen=True)
class Ticks:
    """CPU time in clock ticks, added over `cpus` CPUs."""

    busy: int = 0
    idle: int = 0
    steal: int = 0
    cpus: int = 0

    @property
    def total(self) -> int:
        return self.busy + self.idle + self.steal

    def plus(self, other: Ticks) -> Ticks:
        busy, idle, steal = self.busy + other.busy, self.idle + other.idle, self.steal + other.steal
        return Ticks(busy, idle, steal, self.cpus + other.cpus)

    def since(self, before: Ticks) -> Ticks:
        return Ticks(self.busy - before.busy, self.idle - before.idle, self.steal - before.steal, self.cpus)


def read(root: Path) -> dict[int, Ticks]:
    """Since boot, of each CPU; empty where /proc/stat is missing (macOS) or is not Linux's."""
    found = {}
    try:
        for line in (root / "proc" / "stat").read_text().splitlines():
            name, *words = line.split() or [""]
            if name.startswith("cpu") and name[3:].isdigit():
                # Guest time, which follows, is inside user time already.
                user, nice, system, idle, waiting, irq, soft, steal = (int(word) for word in words[:8])
                found[int(name[3:])] = Ticks(user + nice + system + irq + soft, idle + waiting, steal, 1)
    except (OSError, ValueError):
        return {}
    return found


def added(ticks: Iterable[Ticks]) -> Ticks:
    return functools.reduce(Ticks.plus, ticks, Ticks())


def average(root: Path) -> float | None:
    """The load average of one minute."""
    try:
        return float((root / "proc" / "loadavg").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.getloadavg()[0] if root == Path("/") else None
    except OSError:
        return None


def examine(
    root: Path = Path("/"), allowed: set[int] | None = None, wait: Callable[[float], None] = time.sleep
) -> list[Finding]:
    """Watches for a second. To be asked first: later this process's own work is in the load average."""
    allowed = affinity() if allowed is None else allowed
    before = read(root)
    wait(WATCH_S)
    after = read(root)
    now = {cpu: after[cpu].since(before[cpu]) for cpu in after if cpu in before}
    everywhere = added(now.values())
    ours = added(ticks for cpu, ticks in now.items() if allowed is None or cpu in allowed)
    if ours.total <= 0:
        return [_from_average(average(root))]
    return [others(everywhere, ours, average(root)), stolen(everywhere, added(after.values()))]


def others(everywhere: Ticks, ours: Ticks, one_minute: float | None) -> Finding:
    """What was busy while this process slept is someone else's.

    On our CPUs it takes their time. On others it takes memory bandwidth, cache and clock, which is a doubt at most.
    """
    share, here = everywhere.busy / everywhere.total, ours.busy / ours.total
    numbers = {"busy_cpus": share * everywhere.cpus, "busy_share": share, "our_busy_share": here}
    said = f"Others keep {share * everywhere.cpus:.2f} of {everywhere.cpus} CPUs busy"
    if ours.cpus < everywhere.cpus:
        said += f", {here * ours.cpus:.2f} of our {ours.cpus}"
    if one_minute is not None:
        numbers["load_average"] = one_minute
        said += f" (load average {one_minute:.2f})"
    state = graded(here, **OTHERS)
    if state == "good" and share > OTHERS["good"]:
        state = "doubtful"
    advice = "" if state == "good" else "Stop what else runs (see top) before measuring."
    return Finding("other load", state, f"{said}.", advice, numbers)


def own_s() -> float:
    """CPU seconds of this process and of the children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def meanwhile(before: dict[int, Ticks], after: dict[int, Ticks], spent_s: float) -> list[Finding]:
    """What others used while work of ours ran. `spent_s`: CPU seconds of that work, which are taken off."""
    ticks = added(after[cpu].since(before[cpu]) for cpu in after if cpu in before)
    if ticks.total <= 0:
        return []
    ours = spent_s * os.sysconf("SC_CLK_TCK")
    share = max(0.0, ticks.busy - ours) / ticks.total
    said = f"While the reference kernel ran, others kept {share * ticks.cpus:.2f} of {ticks.cpus} CPUs busy."
    state = graded(share, **OTHERS)
    advice = "" if state == "good" else "Stop what else runs (see top) and ask again: scatter and drift may be its."
    return [Finding("load meanwhile", state, said, advice, {"busy_share": share, "busy_cpus": share * ticks.cpus})]


def stolen(watched: Ticks, boot: Ticks) -> Finding:
    """Now, and since boot: a neighbour on the host need not be at work in the second that is watched."""
    now, ever = watched.steal / watched.total, boot.steal / boot.total
    state = worst([Finding("", graded(share, **STEAL), "") for share in (now, ever)])
    said = f"The hypervisor takes {100 * now:.1f} % of CPU time now, {100 * ever:.2f} % since boot."
    advice = "" if state == "good" else "Neighbours on the host compete: use a dedicated host."
    return Finding("steal", state, said, advice, {"steal_share": now, "steal_share_since_boot": ever})


def _from_average(one_minute: float | None) -> Finding:
    if one_minute is None:
        return Finding("other load", "unknown", "This system does not say how busy it is.")
    share = one_minute / (os.cpu_count() or 1)
    said = f"The load average is {one_minute:.2f}; this system does not say what is busy now."
    state = graded(share, **OTHERS)
    advice = "" if state == "good" else "Stop what else runs (see top) before measuring."
    return Finding("other load", state, said, advice, {"load_average": one_minute})
