# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether the clock of the cores stands still: governor, frequency under load, turbo, thermal throttling."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from jaxbench.doctor.finding import Finding
from jaxbench.doctor.processor import affinity, cpus, read_number

SLOW = 0.7  # of the highest frequency, while one core works


def spin(seconds: float = 0.3) -> None:
    """Works, so that a sleeping core's clock rises before it is read."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def examine(root: Path = Path("/"), allowed: set[int] | None = None, work: Callable[[], None] = spin) -> list[Finding]:
    ours = sorted((affinity() if allowed is None else allowed) or {0})
    folders = [cpus(root) / f"cpu{cpu}" for cpu in ours]
    work()
    return [governor(folders), frequency(folders), turbo(root)]


def governor(folders: list[Path]) -> Finding:
    found = set()
    for folder in folders:
        try:
            found.add((folder / "cpufreq" / "scaling_governor").read_text().strip())
        except OSError:
            continue
    if not found:
        return Finding(
            "governor", "unknown", "The system does not say who sets the clock (usual in a virtual machine)."
        )
    said = f"The clock's governor is {', '.join(sorted(found))}."
    if found == {"performance"}:
        return Finding("governor", "good", said)
    advice = "Set it to performance (cpupower frequency-set -g performance): the clock rises only after load."
    return Finding("governor", "doubtful", said, advice)


def frequency(folders: list[Path]) -> Finding:
    """The fastest core now, just after work, against the highest clock the processor has."""
    now, top, cap = (
        [read_number(folder / "cpufreq" / name) or 0 for folder in folders]
        for name in ("scaling_cur_freq", "cpuinfo_max_freq", "scaling_max_freq")
    )
    if not max(now) or not max(top):
        return Finding("clock", "unknown", "The system does not say how fast the cores run.")
    share = max(now) / max(top)
    said = f"A working core runs at {max(now) / 1e6:.2f} of at most {max(top) / 1e6:.2f} GHz."
    numbers = {"clock_hz": 1e3 * max(now), "most_clock_hz": 1e3 * max(top)}
    if max(cap) and max(cap) < max(top):
        said = f"{said[:-1]}, and is capped at {max(cap) / 1e6:.2f} GHz."
        return Finding("clock", "good", said, "", {**numbers, "cap_hz": 1e3 * max(cap)})
    if share < SLOW:
        return Finding("clock", "doubtful", said, "Check cooling, power supply and power profile.", numbers)
    return Finding("clock", "good", said, "", numbers)


def turbo(root: Path) -> Finding:
    """With turbo, one busy core is clocked higher than many: the base of a scaling curve is too fast."""
    off, boost = (read_number(cpus(root) / name) for name in ("intel_pstate/no_turbo", "cpufreq/boost"))
    if off is None and boost is None:
        return Finding("turbo", "unknown", "The system does not say whether turbo is on.")
    on = off == 0 if off is not None else boost == 1
    if not on:
        return Finding("turbo", "good", "Turbo is off, so the clock does not depend on how many cores work.")
    how = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
    if off is None:
        how = "echo 0 > /sys/devices/system/cpu/cpufreq/boost"
    said = "Turbo is on: one busy core is clocked higher than many, and scaling looks worse than it is."
    return Finding("turbo", "doubtful", said, f"For scaling curves switch it off ({how}).")


def throttles(root: Path = Path("/")) -> int | None:
    """How often the cores were slowed for heat since boot, all counters added; None where nothing counts."""
    counts = [read_number(path) for path in cpus(root).glob("cpu[0-9]*/thermal_throttle/*_throttle_count")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def heat(before: int | None, after: int | None) -> Finding:
    """Whether the machine was slowed for heat while it was examined."""
    if before is None or after is None:
        return Finding("heat", "unknown", "The system does not count how often heat slows it.")
    numbers = {"throttles": after - before, "throttles_since_boot": after}
    if after > before:
        said = f"Heat slowed the cores {after - before} times during this examination."
        return Finding("heat", "bad", said, "Improve the cooling, or lower the clock until this stops.", numbers)
    if after:
        said = f"Heat slowed the cores {after} times since boot, not now."
        return Finding("heat", "doubtful", said, "Watch it in a long run: doctor after it, too.", numbers)
    return Finding("heat", "good", "Heat has not slowed the cores since boot.", "", numbers)
