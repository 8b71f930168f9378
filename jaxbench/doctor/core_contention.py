# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a core is worth while all others work too: the most that any scaling on this machine's cores can reach.

One process a core multiplies small matrices that fit its cache, alone or all at once, and shares nothing with the
others: no data, no lock, no framework. What they lose together is the machine's (two cores that are one, a clock that
falls, a neighbour on the same host), and no training step can scale better. Alone and together take turns.

Each also says how much CPU time it got of the time that passed: what is missing was given to another process.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.intervals import Estimate, estimate
from jaxbench.doctor.child import python
from jaxbench.doctor.finding import Finding, graded, judged
from jaxbench.machine.cores import physical_cores

SIZE = 256  # three matrices of float32 are 768 KiB
BLOCK_S = 0.2
SAMPLED = 8  # this many cores are also timed alone, spread over the machine: on a large one, all would take minutes
DRAWS = 2000
# (good up to, bad above): lost share of a core's speed, missing share of the CPU time, the slowest core's lag.
LOSS = (0.05, 0.30)
MISSING = (0.03, 0.20)
UNEVEN = (0.10, 0.50)
_QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Rates:
    """Products per second of the sampled cores, (rounds, sampled), alone and together; and the CPU time over the wall
    time of every core while all work, (rounds, cores)."""

    alone: np.ndarray
    together: np.ndarray
    cpu_share: np.ndarray


class Silent(Exception):
    """A worker died, or did not answer in time."""


def work(core: int) -> None:
    """Multiplies for as many seconds as a line of standard input says, and answers: products per second, CPU share."""
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
    """A process that works, pinned to one core."""
    words, environment = python("-m", "jaxbench.doctor.core_contention", str(core)), {**os.environ, **_QUIET}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, env=environment, bufsize=0, **pipes)  # type: ignore[call-overload]


def ask(workers: Sequence[subprocess.Popen[bytes]], seconds: float, limit_s: float = 60.0) -> np.ndarray:
    """These workers at the same time. Returns (workers, 2): products per second and CPU share. Raises Silent."""
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


def spread(count: int, most: int = SAMPLED) -> list[int]:
    """At most `most` of `count` places, evenly spread, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


def measure(cores: Sequence[int], seconds: float) -> Rates:
    """Takes turns for about `seconds`, three rounds at least. Raises Silent."""
    sampled = spread(len(cores))
    rounds = int(np.clip(seconds / ((len(sampled) + 1) * BLOCK_S), 3, 20))
    workers = [worker(core) for core in cores]
    alone, together, share = [], [], []
    try:
        ask(workers, BLOCK_S / 4)  # until all have started
        for _ in range(rounds):
            alone.append([ask([workers[place]], BLOCK_S)[0, 0] for place in sampled])
            all_at_once = ask(workers, BLOCK_S)
            together.append(all_at_once[sampled, 0])
            share.append(all_at_once[:, 1])
    finally:
        for each in workers:
            each.kill()
            each.communicate()
    return Rates(np.array(alone), np.array(together), np.array(share))


def worth(rates: Rates) -> Estimate:
    """Median over rounds of (mean rate together / mean rate alone), with its 95 % bootstrap interval over rounds."""
    share = rates.together.mean(axis=1) / rates.alone.mean(axis=1)
    random = np.random.default_rng(0)
    draws = np.median(random.choice(share, (DRAWS, len(share))), axis=1)
    return estimate(float(np.median(share)), draws, rounds=len(share))


def examine(seconds: float = 5.0) -> list[Finding]:
    cores = physical_cores()
    try:
        rates = measure(cores, seconds)
    except Silent:
        said = "A process that only multiplies matrices died or did not answer within 60 s."
        return [Finding("cores granted", "unknown", said, "Look for a limit on processes or memory (ulimit -a).")]
    return [granted(rates), *([side_by_side(rates)] if len(cores) > 1 else []), *evenness(rates)]


def granted(rates: Rates) -> Finding:
    """CPU time over wall time, of all cores added, while one process works on each."""
    count = rates.cpu_share.shape[1]
    got = float(np.median(rates.cpu_share.sum(axis=1)))
    said = f"Of {count} cores, all at work, {got:.2f} were really granted."
    advice = "Others use these cores, or a quota pauses them: see other load and quota."
    return judged("cores granted", graded(1 - got / count, *MISSING), said, advice, granted_cores=got, cores=count)


def side_by_side(rates: Rates) -> Finding:
    found = worth(rates)
    percent = f"{100 * found.value:.0f} % [{100 * found.lo:.0f}, {100 * found.hi:.0f}]"
    said = f"A core beside busy ones does {percent} of what it does alone ({len(rates.alone)} rounds): no program can "
    said += "scale more efficiently."
    advice = "Read scaling against this ceiling; look at turbo, hyper-threads and other load."
    numbers = {"core_worth": found.value, "core_worth_lo": found.lo, "core_worth_hi": found.hi}
    numbers |= {"rounds": len(rates.alone)}
    return judged("cores side by side", graded(1 - found.value, *LOSS), said, advice, **numbers)


def evenness(rates: Rates) -> list[Finding]:
    """The slowest of the sampled cores against the fastest, each alone: big and little ones, or a busy neighbour."""
    if rates.alone.shape[1] < 2:
        return []
    speed = np.median(rates.alone, axis=0)
    ratio = float(speed.min() / speed.max())
    said = f"Alone, the slowest core does {100 * ratio:.0f} % of what the fastest does."
    advice = "Devices on unequal cores wait for the slowest: pin to equal ones (taskset)."
    return [judged("equal cores", graded(1 - ratio, *UNEVEN), said, advice, slowest_core_share=ratio)]


if __name__ == "__main__":
    work(int(sys.argv[1]))
