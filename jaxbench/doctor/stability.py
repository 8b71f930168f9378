# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How steadily this machine repeats the same work, and the smallest difference it can therefore resolve.

Single calls are not independent: what disturbs one disturbs its neighbours (a clock step, a process that came). Means
over blocks of half a second are nearly so, and their scatter contains that correlation (Flyvbjerg and Petersen 1989,
doi:10.1063/1.457480). They are the units of the power formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from jaxbench.analysis.intervals import Estimate
from jaxbench.doctor.child import Answer, ask, python
from jaxbench.doctor.finding import Finding, graded, judged

BLOCK_S = 0.5
MINUTE_S = 60.0
MIN_BLOCKS = 5
CONFIDENCE, POWER = 0.95, 0.80
START_LIMIT_S = 120.0
# Relative: (good up to, bad above).
SCATTER = (0.05, 0.50)
DRIFT = (0.01, 0.10)
RESOLVABLE = (0.01, 0.05)


def measure(platform: str, seconds: float, command: Sequence[str] | None = None) -> Answer:
    """Runs the reference kernel in a child; see `kernel.run` for the answer."""
    words = command or python("-m", "jaxbench.doctor.kernel", platform, str(seconds))
    return ask(words, limit_s=START_LIMIT_S + seconds, TF_CPP_MIN_LOG_LEVEL="2")


def block_means(began_s: np.ndarray, took_s: np.ndarray, block_s: float = BLOCK_S) -> np.ndarray:
    """Means over the calls that began in each block of wall time. Both (n,) seconds, in order; returns (blocks,).

    A last block that is not full is left out; so is one in which no call began.
    """
    place = np.floor(began_s / block_s).astype(int)
    full = place < math.floor((began_s[-1] + took_s[-1]) / block_s + 1e-9)
    counts = np.bincount(place[full])
    sums = np.bincount(place[full], weights=took_s[full])
    return sums[counts > 0] / counts[counts > 0]


def resolvable(blocks: np.ndarray, *, block_s: float = BLOCK_S, total_s: float = MINUTE_S) -> Estimate:
    """The smallest relative difference that two arms, taking turns by blocks for `total_s` in all, can show.

    delta = (t_0.975 + t_0.8) s sqrt(2 / n) / mean, with n = total_s / 2 / block_s blocks an arm, 2 n - 2 degrees of
    freedom, and s the standard deviation of the block means: at 95 % confidence (two-sided) a true difference of delta
    is found with 80 % power. It is the two-sample formula (Cohen 1988, ch. 2; NIST e-Handbook 7.2.2.2), with Student's
    t in place of the normal. With positive `autocorrelation` of the blocks, delta is too large rather than too small.

    Returns delta of `blocks`, (k,) means that count as independent, and the 95 % interval that comes from knowing s by
    k blocks only (chi-squared); unknown below MIN_BLOCKS.
    """
    known = len(blocks) - 1
    if known + 1 < MIN_BLOCKS:
        return Estimate()
    each = total_s / 2 / block_s
    freedom = 2 * each - 2
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) + stats.t.ppf(POWER, freedom)
    delta = float(reach * blocks.std(ddof=1) * math.sqrt(2 / each) / blocks.mean())
    lo, hi = (delta * math.sqrt(known / stats.chi2.ppf(tail, known)) for tail in (0.975, 0.025))
    return Estimate(value=delta, lo=lo, hi=hi)


def autocorrelation(blocks: np.ndarray) -> float:
    """Of neighbouring blocks (lag 1); near 0 when blocks are long enough to be independent."""
    off = blocks - blocks.mean()
    total = float(off @ off)
    return float(off[:-1] @ off[1:]) / total if total > 0 else 0.0


def examine(answer: Answer) -> list[Finding]:
    if answer.value is None:
        said = f"The reference kernel did not run: {answer.reason}."
        return [Finding("reference kernel", "bad", said, "Nothing can be measured before it does.")]
    began, took = (np.array(answer.value[key], dtype=float) for key in ("began_s", "took_s"))
    if len(took) < 2:
        return [Finding("reference kernel", "unknown", "The reference kernel ran once at most.", "Give it more time.")]
    what = f"{answer.value['rows']} x {answer.value['rows']} float32 on {answer.value['device_kind']}"
    return [scatter(took, what), drift(took), smallest(block_means(began, took))]


def scatter(took: np.ndarray, what: str) -> Finding:
    """CV of single calls (standard deviation over mean), and p99 over the median."""
    middle, cv = float(np.median(took)), float(took.std(ddof=1) / took.mean())
    tail = float(np.quantile(took, 0.99)) / middle
    said = f"A product of {what} takes {1e3 * middle:.3g} ms: CV {100 * cv:.2g} %, p99 {tail:.2f} x the median"
    numbers = {"kernel_s": middle, "kernel_cv": cv, "kernel_p99_over_median": tail, "kernel_calls": len(took)}
    advice = "Single times scatter: trust medians over many rounds, and look at other load."
    return judged("reference kernel", graded(cv, *SCATTER), f"{said} ({len(took)} calls).", advice, **numbers)


def drift(took: np.ndarray) -> Finding:
    """Median of the last half of the calls over that of the first half, less 1."""
    half = len(took) // 2
    change = float(np.median(took[half:]) / np.median(took[:half]) - 1)
    said = f"From its first to its second half the kernel became {100 * abs(change):.2g} % "
    said += "slower." if change > 0 else "faster."
    advice = "The machine changes while it works (heat, other load): give runs more rounds."
    return judged("drift", graded(abs(change), *DRIFT), said, advice, kernel_drift=change)


def smallest(blocks: np.ndarray) -> Finding:
    name, found = "resolution", resolvable(blocks)
    if not found.known:
        said = f"{len(blocks)} blocks of {BLOCK_S:g} s are too few to say what can be resolved."
        return Finding(name, "unknown", said, f"Give it {MIN_BLOCKS * BLOCK_S:g} s at least.")
    said = f"In a minute, two arms that differ by {100 * found.value:.2g} % "
    said += f"[{100 * found.lo:.2g}, {100 * found.hi:.2g}] can be told apart (95 % confidence, 80 % power)."
    numbers = {"resolvable": found.value, "resolvable_lo": found.lo, "resolvable_hi": found.hi, "blocks": len(blocks)}
    numbers |= {"block_autocorrelation": autocorrelation(blocks)}
    advice = "Smaller differences need more time: four times as long for half of it."
    return judged(name, graded(found.value, *RESOLVABLE), said, advice, **numbers)
