# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The speed of a core while all other cores work too: an upper bound on scaling efficiency on this machine's cores.

One process per core multiplies small matrices that fit the core's cache. The processes take turns: each alone, then all
at the same time. They share no data, no lock and no framework, so any slowdown is contention in the machine: two
logical cores on one physical core, a lower clock, a neighbour on the same host. No training step can scale better.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbench.analysis.intervals import Estimate, estimate, widened
from jaxbench.doctor.finding import Finding, Result, check, graded
from jaxbench.machine.cores import physical_cores
from jaxbench.machine.manifest import ONE_THREAD

SIZE = 256  # rows of each matrix: three float32 matrices take 768 KiB
BLOCK_S = 0.2
SAMPLED = 8  # this many cores, evenly spread, are also timed alone; timing every core of a large machine takes minutes
DRAWS = 2000
# (good up to, bad above): lost share of a core's speed, missing share of the CPU time, the slowest core's lag.
LOSS, MISSING, UNEVEN = (0.05, 0.30), (0.03, 0.20), (0.10, 0.50)
COMMAND = [sys.executable, "-P", "-m", "jaxbench.doctor.core_contention"]  # and the number of a core


@dataclass(frozen=True)
class CoreRates:
    """Speeds of the cores.

    Attributes:
      alone, together: (rounds, sampled) products per second of the sampled cores.
      cpu_share: (rounds, cores) CPU time over wall time of every core while all work.
    """

    alone: np.ndarray
    together: np.ndarray
    cpu_share: np.ndarray


class Silent(Exception):
    """A worker died, or did not answer in time."""


def work(core: int) -> None:
    """Reads seconds from each line of standard input, multiplies for that long, and writes a line to standard output:
    products per second and CPU share."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    a = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
    for line in sys.stdin:
        done, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < float(line):
            a @ a
            done += 1
        passed = time.perf_counter() - start
        sys.stdout.write(f"{done / passed} {(time.process_time() - cpu) / passed}\n")
        sys.stdout.flush()


def worker(core: int) -> subprocess.Popen[bytes]:
    """A process that runs `work`, pinned to one core."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*COMMAND, str(core)], env={**os.environ, **ONE_THREAD}, bufsize=0, **pipes)


def ask(workers: Sequence[subprocess.Popen[bytes]], seconds: float, limit_s: float = 60.0) -> np.ndarray:
    """Runs these workers at the same time for `seconds`. Returns (workers, 2): products per second and CPU share.

    Raises Silent if a worker died or did not answer within `limit_s` seconds.
    """
    answers = []
    try:
        for each in workers:
            each.stdin.write(f"{seconds}\n".encode())  # type: ignore[union-attr]
        for each in workers:
            if not select.select([each.stdout], [], [], limit_s)[0]:  # type: ignore[type-var]
                raise Silent
            rate, share = each.stdout.readline().split()  # type: ignore[union-attr]
            answers.append((float(rate), float(share)))
    except (OSError, ValueError) as error:
        raise Silent from error
    return np.array(answers)


def spread(count: int) -> list[int]:
    """At most SAMPLED of `count` indices, evenly spread, including the first and the last."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, SAMPLED))})


def measure(cores: Sequence[int], seconds: float) -> CoreRates:
    """Alternates alone and together for about `seconds`, for 3 to 20 rounds. Raises Silent."""
    sampled = spread(len(cores))
    rounds = int(np.clip(seconds / ((len(sampled) + 1) * BLOCK_S), 3, 20))
    workers = [worker(core) for core in cores]
    alone, together = [], []
    try:
        ask(workers, BLOCK_S / 4)  # returns when all workers have started
        for _ in range(rounds):
            alone.append([ask([workers[index]], BLOCK_S)[0, 0] for index in sampled])
            together.append(ask(workers, BLOCK_S))
    finally:
        for each in workers:
            each.kill()
            each.communicate()
    rates, share = np.moveaxis(np.array(together), -1, 0)
    return CoreRates(np.array(alone), rates[:, sampled], share)


def worth(rates: CoreRates) -> Estimate:
    """Median over rounds of (mean rate together / mean rate alone), with its 95 % bootstrap interval over rounds."""
    share = rates.together.mean(axis=1) / rates.alone.mean(axis=1)
    draws = np.median(np.random.default_rng(0).choice(share, (DRAWS, len(share))), axis=1)
    value = float(np.median(share))
    return estimate(value, widened(value, draws, len(share)), rounds=len(share))


def examine(seconds: float = 5.0) -> list[Finding]:
    try:
        rates = measure(physical_cores(), seconds)
    except Silent:
        message = "A process that only multiplies matrices died or did not answer within 60 s."
        return [Finding("cores granted", "unknown", message, "Look for a limit on processes or memory (ulimit -a).")]
    several = rates.alone.shape[1] > 1
    return [granted(rates), *([side_by_side(rates), evenness(rates)] if several else [])]


@check("cores granted")
def granted(rates: CoreRates) -> Result:
    """CPU time over wall time, summed over all cores, while one process works on each. Other programs got the rest."""
    count, total = rates.cpu_share.shape[1], float(np.median(rates.cpu_share.sum(axis=1)))
    message = f"With all {count} cores at work, the system granted the CPU time of {total:.2f}."
    advice = "Others use these cores, or a quota pauses them: see other load and quota."
    return graded(1 - total / count, *MISSING), message, advice, {"granted_cores": total, "cores": count}


@check("cores side by side")
def side_by_side(rates: CoreRates) -> Result:
    share, rounds = worth(rates), len(rates.alone)
    percent = f"{100 * share.value:.0f} % [{100 * share.lo:.0f}, {100 * share.hi:.0f}]"
    message = f"With all cores busy, a core runs at {percent} of its speed alone ({rounds} rounds)"
    advice = "Compare scaling efficiencies with this ceiling; check turbo, hyper-threads and other load."
    numbers = {"core_worth": share.value, "core_worth_lo": share.lo, "core_worth_hi": share.hi, "rounds": rounds}
    return graded(1 - share.value, *LOSS), f"{message}: no program can scale more efficiently.", advice, numbers


@check("equal cores")
def evenness(rates: CoreRates) -> Result:
    """The slowest sampled core over the fastest, each alone. Cores of two sizes or a busy neighbour make it small."""
    speed = np.median(rates.alone, axis=0)
    ratio = float(speed.min() / speed.max())
    message = f"Alone, the slowest core runs at {100 * ratio:.0f} % of the speed of the fastest."
    advice = "Devices on unequal cores wait for the slowest: pin to equal ones (taskset)."
    return graded(1 - ratio, *UNEVEN), message, advice, {"slowest_core_share": ratio}


if __name__ == "__main__":
    work(int(sys.argv[1]))
