# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How steadily this machine repeats the same work, and so the smallest difference that it can resolve.

Single calls are not independent: a disturbance (a clock step, a new process) affects neighbouring calls alike. Means
over blocks of half a second are nearly independent, and their scatter contains that correlation (Flyvbjerg and Petersen
1989, doi:10.1063/1.457480). They are the units of the power formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from jaxbench.analysis.intervals import Estimate
from jaxbench.doctor.child import Answer, ask, python
from jaxbench.doctor.finding import Finding, graded, judged

BLOCK_S, MINUTE_S, MIN_BLOCKS = 0.5, 60.0, 5
CONFIDENCE, POWER = 0.95, 0.80
START_LIMIT_S = 120.0
# Relative: (good up to, bad above).
SCATTER, DRIFT, RESOLVABLE = (0.05, 0.50), (0.01, 0.10), (0.01, 0.05)


def measure(platform: str, seconds: float, command: Sequence[str] | None = None) -> Answer:
    """Runs the reference kernel in a child; see `kernel.run` for the answer."""
    words = command or python("-m", "jaxbench.doctor.kernel", platform, str(seconds))
    return ask(words, limit_s=START_LIMIT_S + seconds, TF_CPP_MIN_LOG_LEVEL="2")


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

    delta = (t_0.975 + t_0.8) s sqrt(2 / n) / mean, with n = total_s / 2 / block_s blocks per arm, 2 n - 2 degrees of
    freedom, and s the standard deviation of the block means: at 95 % confidence (two-sided) a true difference of delta
    is detected with 80 % power. It is the two-sample formula (Cohen 1988, ch. 2; NIST e-Handbook 7.2.2.2), with
    Student's t in place of the normal. A positive `autocorrelation` of the blocks makes delta too large.

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


def examine(answer: Answer) -> list[Finding]:
    name = "reference kernel"
    if answer.value is None:
        message = f"The reference kernel did not run: {answer.reason}."
        return [Finding(name, "bad", message, "Nothing can be measured until it runs.")]
    began, took = (np.array(answer.value[key], dtype=float) for key in ("began_s", "took_s"))
    if len(took) < 2:
        return [Finding(name, "unknown", "The reference kernel ran at most once.", "Give it more time.")]
    shape = f"{answer.value['rows']} x {answer.value['rows']} float32 on {answer.value['device_kind']}"
    return [scatter(took, shape), drift(took), smallest(block_means(began, took))]


def scatter(took: np.ndarray, shape: str) -> Finding:
    """CV of single calls (standard deviation over mean), and p99 over the median."""
    median, cv = float(np.median(took)), float(took.std(ddof=1) / took.mean())
    tail = float(np.quantile(took, 0.99)) / median
    message = f"A matrix product of {shape} takes {1e3 * median:.3g} ms: CV {100 * cv:.2g} %, "
    message += f"p99 {tail:.2f} x the median ({len(took)} calls)."
    numbers = {"kernel_s": median, "kernel_cv": cv, "kernel_p99_over_median": tail, "kernel_calls": len(took)}
    advice = "Single times scatter: trust medians over many rounds, and look at other load."
    return judged("reference kernel", graded(cv, *SCATTER), message, advice, **numbers)


def drift(took: np.ndarray) -> Finding:
    """The median of the last half of the calls over the median of the first half, less 1."""
    half = len(took) // 2
    change = float(np.median(took[half:]) / np.median(took[:half]) - 1)
    direction = "slower" if change > 0 else "faster"
    message = f"From its first to its second half the kernel became {100 * abs(change):.2g} % {direction}."
    advice = "The machine changes while it works (heat, other load): give runs more rounds."
    return judged("drift", graded(abs(change), *DRIFT), message, advice, kernel_drift=change)


def smallest(blocks: np.ndarray) -> Finding:
    delta, percent = resolvable(blocks), "{:.2g}".format
    if not delta.known:
        message = f"{len(blocks)} blocks of {BLOCK_S:g} s are too few to estimate the resolution."
        return Finding("resolution", "unknown", message, f"Give it {MIN_BLOCKS * BLOCK_S:g} s at least.")
    low, high = percent(100 * delta.lo), percent(100 * delta.hi)
    message = f"In a minute, this machine can distinguish two arms that differ by {percent(100 * delta.value)} % "
    message += f"[{low}, {high}] (95 % confidence, 80 % power)."
    numbers = {"resolvable": delta.value, "resolvable_lo": delta.lo, "resolvable_hi": delta.hi, "blocks": len(blocks)}
    numbers |= {"block_autocorrelation": autocorrelation(blocks)}
    advice = "Half the difference needs four times the time."
    return judged("resolution", graded(delta.value, *RESOLVABLE), message, advice, **numbers)
