# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How repeatable the same work is on this machine, and the smallest difference that it can therefore resolve.

The work is the reference kernel: a square float32 matrix product, timed call by call in a child process. Single calls
are not independent, because a disturbance (a clock step, a new process) affects neighbouring calls alike. Means over
blocks of half a second are nearly independent, and their scatter includes that correlation (Flyvbjerg and Petersen
1989, doi:10.1063/1.457480). The power formula uses these means as its units.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from jaxbench.digits import digits
from jaxbench.doctor.finding import Finding, Result, check, graded
from jaxbench.statistics.bootstrap import Estimate

BLOCK_S, MINUTE_S, MIN_BLOCKS = 0.5, 60.0, 5
CONFIDENCE, POWER = 0.95, 0.80
START_LIMIT_S = 120.0
# Relative (good up to, bad above).
SCATTER, DRIFT, RESOLVABLE = (0.05, 0.50), (0.01, 0.10), (0.01, 0.05)
CALL_S = 0.010  # intended length of a call: long compared with its launch, short compared with disturbances
MIN_CALL_S, WARM_UP_S = 0.004, 0.5
SMALLEST, LARGEST, STEP = 256, 16384, 64  # rows


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


def run(platform: str, seconds: float) -> dict[str, Any]:
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
        return min(call(a) for _ in range(3))

    rows = rows_for(seconds_of)
    a = jax.random.normal(jax.random.key(0), (rows, rows), jnp.float32)
    began, took, start = [], [], time.perf_counter() + WARM_UP_S
    while (now := time.perf_counter() - start) < seconds:
        began.append(now)
        took.append(call(a))
    timed = sum(now < 0 for now in began)
    return {"rows": rows, "device_kind": device.device_kind, "began_s": began[timed:], "took_s": took[timed:]}


def measure(platform: str, seconds: float, command: Sequence[str] | None = None) -> dict[str, Any]:
    """`run` in a child, which may crash or hang. Raises SubprocessError, or ValueError for an invalid answer."""
    words = command or [sys.executable, "-P", "-m", "jaxbench.doctor.stability", platform, str(seconds)]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    child = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(words, timeout=START_LIMIT_S + seconds, check=True, env=child, **pipes)
    return json.loads((done.stdout.splitlines() or [""])[-1])


def block_means(began_s: np.ndarray, took_s: np.ndarray) -> np.ndarray:
    """(blocks,): the mean duration of the calls that began in each block of wall time.

    began_s, took_s: (n,) seconds, in order. An incomplete last block and blocks without a call are left out.
    """
    block = np.floor(began_s / BLOCK_S).astype(int)
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


def autocorrelation(blocks: np.ndarray) -> float:
    """The correlation of neighbouring blocks (lag 1). It is near 0 if blocks are long enough to be independent."""
    deviation = blocks - blocks.mean()
    total = float(deviation @ deviation)
    return float(deviation[:-1] @ deviation[1:]) / total if total > 0 else 0.0


def examine(platform: str, seconds: float, command: Sequence[str] | None = None) -> list[Finding]:
    try:
        answer = measure(platform, seconds, command)
    except (subprocess.SubprocessError, ValueError) as error:
        last = (str(getattr(error, "stderr", None) or "").strip() or str(error)).splitlines()[-1][:300]
        message = f"The reference kernel did not run: {last}"
        return [Finding("reference kernel", "bad", message, "Nothing can be measured until it runs.")]
    return judge(answer)


def judge(answer: dict[str, Any]) -> list[Finding]:
    """The findings on scatter, drift and resolution. answer: the result of `run`."""
    began, took = (np.array(answer[key], dtype=float) for key in ("began_s", "took_s"))
    if len(took) < 2:
        return [Finding("reference kernel", "unknown", "The reference kernel ran at most once.", "Give it more time.")]
    shape = f"{answer['rows']} x {answer['rows']} float32 on {answer['device_kind']}"
    return [scatter(took, shape), drift(took), resolution(block_means(began, took))]


@check("reference kernel")
def scatter(took: np.ndarray, shape: str) -> Result:
    """CV of single calls (standard deviation over mean), and p99 over the median."""
    median, cv = float(np.median(took)), float(took.std(ddof=1) / took.mean())
    tail = float(np.quantile(took, 0.99)) / median
    message = f"A matrix product of {shape} takes {digits(1e3 * median)} ms: CV {100 * cv:.2g} %, "
    message += f"p99 {tail:.2f} x the median ({len(took)} calls)."
    numbers = {"kernel_s": median, "kernel_cv": cv, "kernel_p99_over_median": tail, "kernel_calls": len(took)}
    advice = "Single times scatter: trust medians over many rounds, and look at other load."
    return graded(cv, *SCATTER), message, advice, numbers


@check("drift")
def drift(took: np.ndarray) -> Result:
    """The median of the second half of the calls over the median of the first half, minus 1."""
    half = len(took) // 2
    change = float(np.median(took[half:]) / np.median(took[:half]) - 1)
    direction = "slower" if change > 0 else "faster"
    message = f"From its first to its second half the kernel became {100 * abs(change):.2g} % {direction}."
    advice = "The machine changes while it works (heat, other load): give runs more rounds."
    return graded(abs(change), *DRIFT), message, advice, {"kernel_drift": change}


@check("resolution", "enough to estimate its resolution: the kernel needs more time")
def resolution(blocks: np.ndarray) -> Result | None:
    delta = resolvable(blocks)
    if not delta.known:
        return None
    percent, low, high = (f"{100 * value:.2g}" for value in (delta.value, delta.lo, delta.hi))
    message = f"In a minute, this machine can distinguish two arms that differ by {percent} % [{low}, {high}] "
    message += "(95 % confidence, 80 % power)."
    numbers = {"resolvable": delta.value, "resolvable_lo": delta.lo, "resolvable_hi": delta.hi, "blocks": len(blocks)}
    numbers |= {"block_autocorrelation": autocorrelation(blocks)}
    return graded(delta.value, *RESOLVABLE), message, "Half the difference needs four times the time.", numbers


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], float(sys.argv[2]))) + "\n")
