# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Facts that distinguish machines with the same name: every processor of a cloud may be called "AMD EPYC".

`records/identity.py` compares them. No jax.
"""

from __future__ import annotations

import contextlib
import os
import platform as os_platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxbench.machine import cores, load

PROC, CPUS = Path("/proc"), cores.CPUS
# Each library that may multiply reads its number of threads from one of these. Set them before NumPy is imported.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
SIDE = 384  # square float32 matrices: about 1 ms, and all three fit in a cache of 2 MiB
BUDGET_S = 0.2
BUSY = 0.1  # share of the core that other processes may use during the measurement
_FIELDS = {  # names in /proc/cpuinfo: x86, else ARM
    "vendor": ("vendor_id", "CPU implementer"), "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"), "stepping": ("stepping", "CPU revision"),
}  # fmt: skip
# The other flags of an x86 processor depend on the kernel and the hypervisor.
_INSTRUCTIONS = re.compile(
    r"(mmx|sse|ssse|3dnow|avx|amx|fma|f16c|bmi|abm|adx|aes|vaes|sha|pclmul|vpclmul|gfni|popcnt|movbe|cx16|erms|fsrm)"
)


def identity() -> dict[str, Any]:
    """The facts of this machine, the kernel, and the speed at which one core multiplies. None: unknown."""
    return {**processor(), "kernel": os_platform.release() or None, **reference_product()}


def processor(proc: Path = PROC, cpus: Path = CPUS) -> dict[str, Any]:
    """Vendor, family, model, stepping, instruction sets, caches and nominal frequency of the first usable core."""
    core = next(iter(cores.physical_cores(topology=cpus)), 0)
    facts = _cpuinfo(proc / "cpuinfo", core)
    known: dict[str, Any] = {
        name: next((facts[field] for field in fields if field in facts), None) for name, fields in _FIELDS.items()
    }
    flags = facts.get("flags", "").split()
    found = sorted(flag for flag in flags if _INSTRUCTIONS.match(flag)) or sorted(facts.get("Features", "").split())
    return {
        **known,
        "instruction_sets": found or None,
        "caches": _caches(cpus / f"cpu{core}" / "cache"),
        "nominal_hz": _nominal_hz(cpus / f"cpu{core}" / "cpufreq", facts),
    }


def _cpuinfo(path: Path, core: int) -> dict[str, str]:
    """The fields of one core; {} without such a file. Fields before the first core count for all."""
    facts: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "processor" and value.isdigit() and int(value) > core:
                break
            facts[name] = value
    return facts


def _caches(folder: Path) -> str | None:
    """The caches of one core, "L1 Data 32K, L1 Instruction 32K, L2 Unified 1024K"; None if not reported."""
    found = []
    with contextlib.suppress(OSError):
        for index in sorted(folder.glob("index*")):
            level, sort, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            found.append(f"L{level} {sort} {size}")
    return ", ".join(found) or None


def _nominal_hz(folder: Path, facts: dict[str, str]) -> float | None:
    """The nominal frequency of the processor, not the current one.

    A virtual machine has no cpufreq. There the BogoMIPS of an x86 processor are twice the rate of its time stamp
    counter.
    """
    for name in ("base_frequency", "cpuinfo_max_freq"):
        with contextlib.suppress(OSError, ValueError):
            return 1e3 * int((folder / name).read_text())
    with contextlib.suppress(ValueError):
        return 1e6 * float(facts.get("bogomips", "")) / 2
    return None


def _multiplication() -> tuple[Callable[[], Any], str]:
    """(a function without arguments that computes one reference product, the library that computes it)."""
    import numpy as np

    a, b = np.random.default_rng(0).random((2, SIDE, SIDE), np.float32)
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out), f"numpy {np.__version__}"


def reference_product(
    multiply: Callable[[], Any] | None = None,
    *,
    processor_s: Callable[[], float] = time.process_time,
    wall_s: Callable[[], float] = time.perf_counter,
    taken: Callable[[int], float] | None = None,
) -> dict[str, Any]:
    """`product_s`: the minimum processor time of one float32 product on one core, over as many as fit BUDGET_S.

    None, because the time would be meaningless, if this process cannot be pinned, or if other processes used more than
    BUSY of the core during the measurement. `product_by`: the library that multiplies. Call this in a process with
    ONE_THREAD set for the library.

    taken: core -> the seconds of it used by others so far, as far as this process's own clocks do not show them: stolen
      by the hypervisor, or spent on the core's other hardware threads.
    """
    by = ""
    if multiply is None:
        multiply, by = _multiplication()
    if not hasattr(os, "sched_setaffinity"):
        return {"product_s": None, "product_by": by}
    taken = _taken if taken is None else taken
    allowed, core = os.sched_getaffinity(0), cores.physical_cores()[0]
    os.sched_setaffinity(0, {core})
    try:
        multiply()  # the first one starts the library and fills the caches
        best, begun, own, others = float("inf"), wall_s(), processor_s(), taken(core)
        while wall_s() - begun < BUDGET_S:
            before = processor_s()
            multiply()
            best = min(best, processor_s() - before)
        wall, used, lost = wall_s() - begun, processor_s() - own, taken(core) - others
    finally:
        os.sched_setaffinity(0, allowed)
    # Wall time without processor time of this process went to others on the core; `lost` went to the hypervisor or to
    # other hardware threads.
    quiet = wall - used <= BUSY * wall and lost <= BUSY * wall
    return {"product_s": best if quiet else None, "product_by": by}


def _taken(core: int, stat: Path = load.STAT, cpus: Path = CPUS) -> float:
    """Seconds, since the start of the system, that were stolen from a core or spent on its other hardware threads."""
    times = load.cpu_times(stat)
    shared = [times[cpu] for cpu in cores.siblings(core, cpus) - {core} if cpu in times]
    stolen_s = times[core].steal_s if core in times else 0.0
    return stolen_s + sum(each.busy_s + each.steal_s for each in shared)
