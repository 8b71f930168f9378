# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the times are read from: the kernel's clock source, and the steps of `time.perf_counter`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jaxbench.doctor.finding import Finding, graded

READINGS = 20_000
# Sources that are read through a device instead of a register: slow, and coarse.
SLOW_SOURCES = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
COARSE_S, USELESS_S = 1e-6, 1e-4  # the shortest blocks of a run last some milliseconds


def examine(root: Path = Path("/"), clock: Callable[[], float] = time.perf_counter) -> list[Finding]:
    return [source(root), resolution(np.array([clock() for _ in range(READINGS)]))]


def source(root: Path) -> Finding:
    path = root / "sys" / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource"
    try:
        name = path.read_text().strip()
    except OSError:
        return Finding("clock source", "unknown", "The system does not say what it reads the time from.")
    if name in SLOW_SOURCES:
        said = f"The time is read from {name}, which is slow."
        return Finding("clock source", "doubtful", said, "Boot with clocksource=tsc if the processor has a stable one.")
    return Finding("clock source", "good", f"The time is read from {name}.")


def resolution(readings: np.ndarray) -> Finding:
    """`readings`: (n,) seconds, one after the other as fast as they can be taken.

    Smallest step that is not zero, and the median distance of two readings, which is what one reading costs.
    """
    steps = np.diff(readings)
    if (steps < 0).any() or not (steps > 0).any():
        said = "The clock runs backwards." if (steps < 0).any() else "The clock stands still."
        return Finding("timer", "bad", said, "Choose another clock source: nothing can be timed with this one.")
    smallest, cost = float(steps[steps > 0].min()), float(np.median(steps))
    said = f"time.perf_counter moves in steps of {1e9 * smallest:.0f} ns, and a reading costs {1e9 * cost:.0f} ns."
    numbers = {"timer_step_s": smallest, "timer_reading_s": cost}
    state = graded(max(smallest, cost), good=COARSE_S, bad=USELESS_S)
    advice = "" if state == "good" else "Choose another clock source, or longer blocks."
    return Finding("timer", state, said, advice, numbers)
