# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How fast the cores are together, and how repeatable the same work is.

Cores: one process per core multiplies small matrices that fit the core's cache. The processes take turns: each alone,
then all at the same time. They share no data, no lock and no framework, so any slowdown is contention in the machine:
two logical cores on one physical core, a lower clock, a neighbour on the same host. No training step can scale better.

The reference kernel: a square float32 matrix product, timed call by call in a child process. Single calls are not
independent, because a disturbance (a clock step, a new process) affects neighbouring calls alike. Means over blocks of
half a second are nearly independent, and their scatter includes that correlation (Flyvbjerg and Petersen 1989,
doi:10.1063/1.457480). So they are the units of the smallest difference that the machine can resolve.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from jaxbench.analysis.quantities import percent
from jaxbench.digits import digits
from jaxbench.features.doctor.finding import DoctorFinding, Result, check, graded
from jaxbench.machine.cores import physical_cores
from jaxbench.machine.manifest import ONE_THREAD
from jaxbench.statistics.bootstrap import BootstrapSamples, Estimate, autocorrelation, estimate

SIZE = 256  # rows of each matrix: three float32 matrices take 768 KiB
TURN_S = 0.2
SAMPLED = 8  # this many cores, evenly spread, are also timed alone; timing every core of a large machine takes minutes
# (good up to, bad above): lost share of a core's speed, missing share of the CPU time, the slowest core's lag.
LOSS, MISSING, UNEVEN = (0.05, 0.30), (0.03, 0.20), (0.10, 0.50)
# And the number of a core. -P: a file of the current folder must not hide a module that NumPy imports.
COMMAND = [sys.executable, "-P", "-m", "jaxbench.features.doctor.speed"]
BLOCK_S, MINUTE_S, MIN_BLOCKS = 0.5, 60.0, 5
CONFIDENCE, POWER = 0.95, 0.80
START_LIMIT_S = 120.0
# Relative (good up to, bad above).
SCATTER, DRIFT, RESOLVABLE = (0.05, 0.50), (0.01, 0.10), (0.01, 0.05)
CALL_S = 0.010  # intended length of a call: long compared with its launch, short compared with disturbances
MIN_CALL_S, WARM_UP_S = 0.004, 0.5
SMALLEST, LARGEST, STEP = 256, 16384, 64  # rows
SILENT = DoctorFinding(
    "cores granted",
    "unknown",
    "A process that only multiplies matrices did not start, died or did not answer within 60 s.",
    "Look for a limit on processes or files (ulimit -a).",
)
ONCE = DoctorFinding("reference kernel", "unknown", "The reference kernel ran at most once.", "Give it more time.")
NOT_RUN, REPAIR = "The reference kernel did not run: {why}", "Nothing can be measured until it runs."


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
    """A worker did not start, died, or did not answer in time."""


def work(core: int) -> None:
    """Reads seconds from each line of standard input, multiplies for that long, and writes a line to standard output:
    products per second and CPU share."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    a = np.random.default_rng(0).random((SIZE, SIZE), np.float32)
    for line in sys.stdin:
        done, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < float(line):
            a @ a  # NumPy computes it although nobody reads it
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
            with selectors.DefaultSelector() as selector:  # select.select fails with the pipes of 500 cores
                selector.register(each.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
                if not selector.select(limit_s):
                    raise Silent
            rate, share = each.stdout.readline().split()  # type: ignore[union-attr]
            answers.append((float(rate), float(share)))
    except (OSError, ValueError) as error:
        raise Silent from error
    return np.array(answers)


def spread(count: int) -> list[int]:
    """At most SAMPLED of `count` indices, evenly spread, including the first and the last."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, SAMPLED))})


def measure_cores(cores: Sequence[int], seconds: float) -> CoreRates:
    """Alternates alone and together for about `seconds`, for 3 to 20 rounds. Raises Silent."""
    sampled = spread(len(cores))
    rounds = int(np.clip(seconds / ((len(sampled) + 1) * TURN_S), 3, 20))
    workers, alone, together = [], [], []
    try:
        for core in cores:
            workers.append(worker(core))
        ask(workers, TURN_S / 4)  # returns when all workers have started
        # In turns, so that a drift of the machine hits both alike.
        for _ in range(rounds):
            alone.append([ask([workers[index]], TURN_S)[0, 0] for index in sampled])
            together.append(ask(workers, TURN_S))
    except OSError as error:  # a limit on processes or files
        raise Silent from error
    finally:
        for each in workers:
            each.kill()
            each.communicate()
    rates, share = np.moveaxis(np.array(together), -1, 0)
    return CoreRates(np.array(alone), rates[:, sampled], share)


def worth(rates: CoreRates) -> Estimate:
    """Median over rounds of (mean rate together / mean rate alone), with its confidence interval over rounds."""
    share = rates.together.mean(axis=1) / rates.alone.mean(axis=1)
    units = range(len(share))
    return estimate(*BootstrapSamples(units).centre(share, np.arange(len(share)), units), rounds=len(share))


def contention(seconds: float = 5.0) -> list[DoctorFinding]:
    try:
        rates = measure_cores(physical_cores(), seconds)
    except Silent:
        return [SILENT]
    several = rates.alone.shape[1] > 1
    return [granted(rates), *([side_by_side(rates), evenness(rates)] if several else [])]


@check(
    "cores granted",
    says="With all {cores} cores at work, the system granted the CPU time of {granted_cores:.2f}.",
    advice="Others use these cores, or a quota pauses them: see other load and quota.",
)
def granted(rates: CoreRates) -> Result:
    """CPU time over wall time, summed over all cores, while one process works on each. Other programs got the rest."""
    count, total = rates.cpu_share.shape[1], float(np.median(rates.cpu_share.sum(axis=1)))
    return Result(graded(1 - total / count, *MISSING), {"granted_cores": total, "cores": count})


@check(
    "cores side by side",
    says="With all cores busy, a core runs at {speed} of its speed alone ({rounds} rounds): no program can scale more "
    "efficiently.",
    advice="Compare scaling efficiencies with this ceiling; check turbo, hyper-threads and other load.",
)
def side_by_side(rates: CoreRates) -> Result:
    share, rounds = worth(rates), len(rates.alone)
    numbers = {"core_worth": share.value, "core_worth_lo": share.lo, "core_worth_hi": share.hi, "rounds": rounds}
    # Many cores leave time for few rounds, and few have no interval.
    return Result(graded(1 - share.value, *LOSS), numbers, {"speed": percent(share, fine=False)})


@check(
    "equal cores",
    says="Alone, the slowest core runs at {percent:.0f} % of the speed of the fastest.",
    advice="Devices on unequal cores wait for the slowest: pin to equal ones (taskset).",
)
def evenness(rates: CoreRates) -> Result:
    """The slowest sampled core over the fastest, each alone. Cores of two sizes or a busy neighbour make it small."""
    speed = np.median(rates.alone, axis=0)  # alone, because together the slowest may just share a core
    ratio = float(speed.min() / speed.max())
    return Result(graded(1 - ratio, *UNEVEN), {"slowest_core_share": ratio}, {"percent": 100 * ratio})


def rows_for(seconds_of: Callable[[int], float]) -> int:
    """The size of square matrices, in rows, so that a product takes about CALL_S.

    seconds_of: rows -> seconds of a product. The size doubles until a product is long enough to time. A product costs
    rows ** 3, so the cube root then scales it to CALL_S.
    """
    rows = SMALLEST
    while (took := seconds_of(rows)) < MIN_CALL_S and rows < LARGEST:
        rows *= 2
    fitted = rows * (CALL_S / took) ** (1 / 3)
    return int(min(LARGEST, max(SMALLEST, STEP * round(fitted / STEP))))


def run_kernel(platform: str, seconds: float) -> dict[str, Any]:
    """Times products on one device of `platform` for `seconds`, in this process.

    Returns rows, device_kind, began_s and took_s: for each call its start, in seconds after the warm-up, and its
    duration.
    """
    import jax
    import jax.numpy as jnp

    from jaxbench.machine.start import start as start_devices

    device = start_devices(platform, 1)[0]
    multiply = jax.jit(lambda a, b: a @ b)

    def call(a: jax.Array) -> float:
        start = time.perf_counter()
        jax.block_until_ready(multiply(a, a))
        return time.perf_counter() - start

    def seconds_of(rows: int) -> float:
        a = jnp.ones((rows, rows), jnp.float32)
        call(a)  # compiles
        return min(call(a) for _ in range(3))  # the least disturbed one

    rows = rows_for(seconds_of)
    # Random, as in a training: products of equal numbers take less power, so the clock may stay higher.
    a = jax.random.normal(jax.random.key(0), (rows, rows), jnp.float32)
    began, took, start = [], [], time.perf_counter() + WARM_UP_S
    while (now := time.perf_counter() - start) < seconds:
        began.append(now)
        took.append(call(a))
    timed = sum(now < 0 for now in began)  # calls of the warm-up, which are not returned
    return {"rows": rows, "device_kind": device.device_kind, "began_s": began[timed:], "took_s": took[timed:]}


def measure_kernel(platform: str, seconds: float, command: Sequence[str] | None = None) -> dict[str, Any]:
    """`run_kernel` in a child, which may crash or hang. Raises SubprocessError, or ValueError for an invalid answer."""
    words = command or [*COMMAND, platform, str(seconds)]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    child = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(words, timeout=START_LIMIT_S + seconds, check=True, env=child, **pipes)
    return json.loads((done.stdout.splitlines() or [""])[-1])


def block_means(began_s: np.ndarray, took_s: np.ndarray) -> np.ndarray:
    """(blocks,): the mean duration of the calls that began in each block of wall time.

    began_s, took_s: (n,) seconds, in order. An incomplete last block and blocks without a call are left out.
    """
    block = np.floor(began_s / BLOCK_S).astype(int)
    # A little more, because rounding could drop a last block that ends exactly at its border.
    full = block < math.floor((began_s[-1] + took_s[-1]) / BLOCK_S + 1e-9)
    counts = np.bincount(block[full])
    sums = np.bincount(block[full], weights=took_s[full])
    return sums[counts > 0] / counts[counts > 0]


def resolvable(blocks: np.ndarray, *, block_s: float = BLOCK_S, total_s: float = MINUTE_S) -> Estimate:
    """The smallest detectable relative difference between two arms that alternate by blocks for `total_s` in total.

    It is the two-sample formula (Cohen 1988, ch. 2; NIST e-Handbook 7.2.2.2) with Student's t in place of the normal
    distribution; docs/metrics/machine.md has it in full. A positive `autocorrelation` of the blocks makes it too large.

    blocks: (k,) means, taken as independent. The 95 % interval covers the error of a standard deviation from k blocks
    (chi-squared). Unknown below MIN_BLOCKS.
    """
    if len(blocks) < MIN_BLOCKS:
        return Estimate()
    dof, per_arm = len(blocks) - 1, total_s / 2 / block_s
    reach = special.stdtrit(2 * per_arm - 2, (1 + CONFIDENCE) / 2) + special.stdtrit(2 * per_arm - 2, POWER)
    delta = float(reach * blocks.std(ddof=1) * math.sqrt(2 / per_arm) / blocks.mean())
    lo, hi = (delta * math.sqrt(dof / special.chdtri(dof, 1 - tail)) for tail in (0.975, 0.025))
    return Estimate(value=delta, lo=lo, hi=hi)


def stability(platform: str, seconds: float, command: Sequence[str] | None = None) -> list[DoctorFinding]:
    try:
        answer = measure_kernel(platform, seconds, command)
    except (subprocess.SubprocessError, ValueError) as error:
        last = (str(getattr(error, "stderr", None) or "").strip() or str(error)).splitlines()[-1][:300]
        return [DoctorFinding("reference kernel", "bad", NOT_RUN.format(why=last), REPAIR)]
    return kernel_findings(answer)


def kernel_findings(answer: dict[str, Any]) -> list[DoctorFinding]:
    """The findings on scatter, drift and resolution. answer: the result of `run_kernel`."""
    began, took = (np.array(answer[key], dtype=float) for key in ("began_s", "took_s"))
    if len(took) < 2:
        return [ONCE]
    shape = f"{answer['rows']} x {answer['rows']} float32 on {answer['device_kind']}"
    return [scatter(took, shape), drift(took), resolution(block_means(began, took))]


@check(
    "reference kernel",
    says="A matrix product of {shape} takes {ms} ms: CV {cv} %, p99 {kernel_p99_over_median:.2f} x the median "
    "({kernel_calls} calls).",
    advice="Single times scatter: trust medians over many rounds, and look at other load.",
)
def scatter(took: np.ndarray, shape: str) -> Result:
    """CV of single calls (standard deviation over mean), and p99 over the median."""
    median, cv = float(np.median(took)), float(took.std(ddof=1) / took.mean())
    tail = float(np.quantile(took, 0.99)) / median
    numbers = {"kernel_s": median, "kernel_cv": cv, "kernel_p99_over_median": tail, "kernel_calls": len(took)}
    facts = {"shape": shape, "ms": digits(1e3 * median), "cv": digits(100 * cv, 2)}
    return Result(graded(cv, *SCATTER), numbers, facts)


@check(
    "drift",
    says="From its first to its second half the kernel became {percent} % {direction}.",
    advice="The machine changes while it works (heat, other load): give runs more rounds.",
)
def drift(took: np.ndarray) -> Result:
    """The median of the second half of the calls over the median of the first half, minus 1."""
    half = len(took) // 2
    change = float(np.median(took[half:]) / np.median(took[:half]) - 1)
    facts = {"percent": digits(100 * abs(change), 2), "direction": "slower" if change > 0 else "faster"}
    return Result(graded(abs(change), *DRIFT), {"kernel_drift": change}, facts)


@check(
    "resolution",
    "enough to estimate its resolution: the kernel needs more time",
    says="In a minute, this machine can distinguish two programs that differ by {percent} % [{low}, {high}] "
    "(95 % confidence, 80 % power).",
    advice="Half the difference needs four times the time.",
)
def resolution(blocks: np.ndarray) -> Result | None:
    delta = resolvable(blocks)
    if not delta.known:
        return None
    names = {"percent": delta.value, "low": delta.lo, "high": delta.hi}
    numbers = {"resolvable": delta.value, "resolvable_lo": delta.lo, "resolvable_hi": delta.hi, "blocks": len(blocks)}
    numbers |= {"block_autocorrelation": autocorrelation(blocks)}
    facts = {name: f"{100 * value:.2g}" for name, value in names.items()}
    return Result(graded(delta.value, *RESOLVABLE), numbers, facts)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [core]:
            work(int(core))
        case [platform, seconds]:
            sys.stdout.write(json.dumps(run_kernel(platform, float(seconds))) + "\n")
