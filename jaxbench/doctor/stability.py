# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How steadily this machine repeats the same work, and so the smallest difference that it can resolve.

The work is a square float32 matrix product, the reference kernel, timed call by call in a child process. Single calls
are not independent: a disturbance (a clock step, a new process) affects neighbouring calls alike. Means over blocks of
half a second are nearly independent, and their scatter contains that correlation (Flyvbjerg and Petersen 1989,
doi:10.1063/1.457480). They are the units of the power formula.
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

from jaxbench.analysis.intervals import Estimate
from jaxbench.digits import digits
from jaxbench.doctor.finding import Finding, Result, check, graded

BLOCK_S, MINUTE_S, MIN_BLOCKS = 0.5, 60.0, 5
CONFIDENCE, POWER = 0.95, 0.80
START_LIMIT_S = 120.0
# Relative: (good up to, bad above).
SCATTER, DRIFT, RESOLVABLE = (0.05, 0.50), (0.01, 0.10), (0.01, 0.05)
CALL_S = 0.010  # intended length of a call: long against its launch, short against disturbances
MIN_CALL_S, WARM_UP_S = 0.004, 0.5
SMALLEST, LARGEST, STEP = 256, 16384, 64  # rows


def rows_for(seconds_of: Callable[[int], float]) -> int:
    """The rows of matrices whose product takes about CALL_S: by doubling, then by the cube root, as n rows cost n ** 3.
    seconds_of: rows -> the seconds of a product."""
    rows = SMALLEST
    while (took := seconds_of(rows)) < MIN_CALL_S and rows < LARGEST:
        rows *= 2
    fitted = rows * (CALL_S / took) ** (1 / 3)
    return int(min(LARGEST, max(SMALLEST, STEP * round(fitted / STEP))))


def run(platform: str, seconds: float) -> dict[str, Any]:
    """Times products on one device of `platform` for `seconds`, in this process.

    Returns rows, device_kind, and for each call its begin (after the first one's) and its duration, in seconds.
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
    """`run` in a child, which may crash or hang. Raises SubprocessError, or ValueError for an answer that is none."""
    words = command or [sys.executable, "-P", "-m", "jaxbench.doctor.stability", platform, str(seconds)]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    child = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(words, timeout=START_LIMIT_S + seconds, check=True, env=child, **pipes)
    return json.loads((done.stdout.splitlines() or [""])[-1])


def block_means(began_s: np.ndarray, took_s: np.ndarray) -> np.ndarray:
    """Means over the calls that began in each block of wall time. Both (n,) seconds, in order; returns (blocks,).

    A last block that is not full is left out, and so are blocks in which no call began.
    """
    block = np.floor(began_s / BLOCK_S).astype(int)
    full = block < math.floor((began_s[-1] + took_s[-1]) / BLOCK_S + 1e-9)
    counts = np.bincount(block[full])
    sums = np.bincount(block[full], weights=took_s[full])
    return sums[counts > 0] / counts[counts > 0]


def resolvable(blocks: np.ndarray, *, block_s: float = BLOCK_S, total_s: float = MINUTE_S) -> Estimate:
    """The smallest relative difference of two arms, alternating by blocks for `total_s` in all, that can be detected.

    The two-sample formula (Cohen 1988, ch. 2; NIST e-Handbook 7.2.2.2) with Student's t in place of the normal, as
    docs/metrics/machine.md writes it out. A positive `autocorrelation` of the blocks makes it too large.

    Returns delta of `blocks`, (k,) means that count as independent, and the 95 % interval that comes from estimating s
    with k blocks (chi-squared); unknown below MIN_BLOCKS.
    """
    if len(blocks) < MIN_BLOCKS:
        return Estimate()
    dof, per_arm = len(blocks) - 1, total_s / 2 / block_s
    reach = special.stdtrit(2 * per_arm - 2, (1 + CONFIDENCE) / 2) + special.stdtrit(2 * per_arm - 2, POWER)
    delta = float(reach * blocks.std(ddof=1) * math.sqrt(2 / per_arm) / blocks.mean())
    lo, hi = (delta * math.sqrt(dof / special.chdtri(dof, 1 - tail)) for tail in (0.975, 0.025))
    return Estimate(value=delta, lo=lo, hi=hi)


def autocorrelation(blocks: np.ndarray) -> float:
    """Of neighbouring blocks (lag 1); near 0 when blocks are long enough to be independent."""
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
    """answer: of `run`."""
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
    """The median of the last half of the calls over the median of the first half, less 1."""
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
