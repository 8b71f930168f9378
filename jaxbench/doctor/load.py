# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Other load on this machine: /proc/stat over a second in which this process sleeps, and the load average."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxbench.doctor.finding import Finding, graded, judged, read, worst
from jaxbench.doctor.processor import affinity

WATCH_S = 1.0
# Share of CPU time (good up to, bad above) that others use, and that a hypervisor takes away.
OTHERS, STEAL = (0.05, 0.25), (0.01, 0.05)


def ticks(root: Path) -> dict[int, np.ndarray]:
    """(busy, idle, stolen) clock ticks since boot, by CPU; empty where /proc/stat is missing (macOS)."""
    by_cpu = {}
    for line in read(root / "proc" / "stat").splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and len(words) >= 8:
            # The guest times that follow are already included in user time.
            user, nice, system, idle, waiting, irq, soft, steal = map(int, words[:8])
            by_cpu[int(name[3:])] = np.array([user + nice + system + irq + soft, idle + waiting, steal])
    return by_cpu


def examine(
    root: Path = Path("/"), allowed: set[int] | None = None, wait: Callable[[float], None] = time.sleep
) -> list[Finding]:
    """Watches for a second. Call it first: later this process's own work is in the load average."""
    allowed = affinity() if allowed is None else allowed
    before = ticks(root)
    wait(WATCH_S)
    after = ticks(root)
    spent = {cpu: after[cpu] - before[cpu] for cpu in after if cpu in before}
    ours = [each for cpu, each in spent.items() if allowed is None or cpu in allowed]
    if not ours or np.sum(ours) <= 0:
        return [Finding("other load", "unknown", "This system does not report other load.")]
    everywhere = list(spent.values())
    return [others(everywhere, ours, read(root / "proc" / "loadavg")), stolen(everywhere, [*after.values()])]


def _shares(spent: list[np.ndarray]) -> np.ndarray:
    total = np.sum(spent, axis=0)
    return total / total.sum()


def others(everywhere: list[np.ndarray], ours: list[np.ndarray], averages: str) -> Finding:
    """All CPU time while this process slept was used by others.

    On our CPUs that is lost time. On other CPUs it costs memory bandwidth, cache and clock, so it is at most doubtful.
    """
    share, here = float(_shares(everywhere)[0]), float(_shares(ours)[0])
    numbers = {"busy_cpus": share * len(everywhere), "busy_share": share, "our_busy_share": here}
    message = f"Other programs keep {share * len(everywhere):.2f} of {len(everywhere)} CPUs busy"
    if len(ours) < len(everywhere):
        message += f", {here * len(ours):.2f} of our {len(ours)}"
    if averages:
        numbers["load_average"] = float(averages.split()[0])
        message += f" (load average {numbers['load_average']:.2f})"
    state = graded(here, *OTHERS)
    state = "doubtful" if state == "good" and share > OTHERS[0] else state
    return judged("other load", state, f"{message}.", "Stop other programs (see top) before measuring.", **numbers)


def own_s() -> float:
    """CPU seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])


def meanwhile(before: dict[int, np.ndarray], after: dict[int, np.ndarray], spent_s: float) -> list[Finding]:
    """The load of others while our own work ran. spent_s: CPU seconds of that work, which are subtracted."""
    spent = [after[cpu] - before[cpu] for cpu in after if cpu in before]
    total = np.sum(spent)
    if total <= 0:
        return []
    share = max(0.0, float(np.sum(spent, axis=0)[0] - spent_s * os.sysconf("SC_CLK_TCK"))) / float(total)
    busy = share * len(spent)
    message = f"While the reference kernel ran, other programs kept {busy:.2f} of {len(spent)} CPUs busy."
    advice = "Stop other programs (see top) and run doctor again: they may cause the scatter and the drift."
    return [judged("load meanwhile", graded(share, *OTHERS), message, advice, busy_share=share, busy_cpus=busy)]


def stolen(watched: list[np.ndarray], boot: list[np.ndarray]) -> Finding:
    """Now, and since boot: a neighbour on the host may pause during the second that is watched."""
    now, since_boot = (float(_shares(spent)[2]) for spent in (watched, boot))
    state = worst(graded(share, *STEAL) for share in (now, since_boot))
    message = f"The hypervisor takes {100 * now:.1f} % of CPU time now, {100 * since_boot:.2f} % since boot."
    advice = "Neighbours on the host compete: use a dedicated host."
    return judged("steal", state, message, advice, steal_share=now, steal_share_since_boot=since_boot)
