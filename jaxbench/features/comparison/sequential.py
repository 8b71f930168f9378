# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A sequential test: a verdict that may be requested repeatedly while measuring, at a bounded error rate.

Pairs of fresh processes, one for each arm, are measured in interleaved rounds. Each pair gives one logarithm of B's
time over A's: the median over its rounds, because a disturbance that hits both arms of a round cancels. Testing after
every pair would find a difference by chance sooner or later. So the test looks only after the numbers of pairs in
LOOKS, and look k may spend 6 / (pi k)^2 of the error rate. These shares add up to 1, so by Bonferroni's inequality the
chance of a false alarm at any look is at most ALPHA, however many looks there are. The interval shown has the
confidence level of the last look, so it is wider than a 95 % interval: that is the price of the earlier looks.

Three rules keep that bound when pairs are few and not normally distributed:

- Two modes. If each pair is in one of two modes with equal chance, three pairs agree one time in four, six pairs one
  time in 32. So the first look is after 6 pairs, and "same" needs SAME_PAIRS. A mode with probability 0.3 stays unseen
  in 11 pairs 2 times in 100.
- Agreement by chance. The standard deviation of pairs is never taken to be below FLOOR.
- Autocorrelation. n neighbouring pairs with autocorrelation r hold as much information as n (1 - r) / (1 + r)
  independent pairs. A few pairs hardly show r, so the upper end of its interval counts (`correlation`).
"""

from __future__ import annotations

import math

import numpy as np

from jaxbench.features.comparison import judge as judges
from jaxbench.features.comparison.judge import (
    ALPHA,
    CANNOT_TELL,
    OVERALL,
    SAME,
    Answer,
    Answers,
    Metric,
    decide,
    wanted,
)
from jaxbench.features.comparison.ratio import Ratio, Sample, Side
from jaxbench.statistics.variance import RunVariance, autocorrelation

# The numbers of pairs after which the test looks. Each is a third more than the one before: looks cost confidence, and
# rare ones would measure longer than needed.
LOOKS = (6, 8, 11, 15, 20, 27, 36, 48, 64, 86, 115, 153, 204)
SAME_PAIRS = 11
FLOOR = 0.01  # the least standard deviation between pairs that is used, on the logarithmic scale
MAX_AUTOCORRELATION = 0.97  # larger estimates count as this one, so that the effective number of pairs stays above 0
SEEN = RunVariance(sd=math.nan, df=math.nan, source="seen in the pairs of processes")


def share(look: int) -> float:
    """The share of ALPHA that look number `look` may spend, counted from 1."""
    return 6 / (math.pi * look) ** 2


def looks(pairs: int) -> int:
    """The number of looks after `pairs` pairs."""
    return sum(pairs >= least for least in LOOKS)


def judge(a: Side, b: Side, metric: Metric, *, margin: float) -> Answers:
    """Judges B against A as of the newest look. Later pairs are not used.

    a, b: the same points with the same number of processes; the i-th processes of both sides are a pair. margin: as in
    `judge.judge`. Before the first look, every answer is "cannot tell".
    """
    if metric.power < 0:
        a, b = judges.per_example(a), judges.per_example(b)
    pairs = min(len(sample.processes) for side in (a, b) for sample in side.values())
    look = looks(pairs)
    used = LOOKS[look - 1] if look else pairs  # pairs since the last look would be an unplanned look
    a, b = ({name: sample.only(range(used)) for name, sample in side.items()} for side in (a, b))
    logs = {name: _logs(a[name], b[name]) for name in a}
    alpha = ALPHA * (share(look) if look else 0.0)
    alone, each = len(logs) == 1, alpha / 2 / len(logs)
    points = tuple(
        _answer(name, logs[name], (a[name], b[name]), metric, margin, alpha if alone else each) for name in logs
    )
    any_a, any_b = next(iter(a.values())), next(iter(b.values()))  # all points have the same number of pairs
    mean = np.mean(list(logs.values()), axis=0)
    overall = _answer(OVERALL, mean, (any_a, any_b), metric, margin, alpha if alone else alpha / 2)
    seen = correlation(mean)[0] if used > 2 else math.nan
    return Answers(
        metric=metric, margin=margin, points=points, overall=overall, spread=SEEN, looks=look, autocorrelation=seen
    )


def _logs(a: Sample, b: Sample) -> np.ndarray:
    """(pairs,): log(B / A) of each pair, as the median over its rounds, so that drift between rounds cancels.

    If the two processes have different numbers of rounds, it is the difference of the logarithms of their medians.
    """
    logs = b.log_medians() - a.log_medians()  # stays for a pair that was interrupted in one arm
    for number, (left, right) in enumerate(zip(a.processes, b.processes, strict=True)):
        if len(left) == len(right):
            logs[number] = np.median([np.log(np.median(y) / np.median(x)) for x, y in zip(left, right, strict=True)])
    return logs


def correlation(logs: np.ndarray) -> tuple[float, float]:
    """(autocorrelation of neighbouring pairs, upper end of its interval).

    The upper end corrects the bias of few pairs (-1 / n) and adds 1.5 standard errors (1 / sqrt(n), Bartlett 1946).
    logs: (pairs,), at least 2. Differences below FLOOR count as independent noise.
    """
    seen, count = autocorrelation(logs), len(logs)
    # Raising their deviation to FLOOR adds independent noise to the pairs, which weakens their correlation this much.
    counted = seen * min(1.0, float(np.var(logs)) / FLOOR**2)
    return seen, min(max(0.0, counted + 1 / count + 1.5 / math.sqrt(count)), MAX_AUTOCORRELATION)


def of_pairs(logs: np.ndarray) -> Ratio:
    """The mean of the pairs' logarithms, with Student's t for their effective number of independent pairs.

    logs: (pairs,) logarithms of B's time over A's.
    """
    count = len(logs)
    if count < 2:
        return Ratio(log=float(np.mean(logs)), se=math.nan, df=0)
    _, most = correlation(logs)
    # The effective number of independent pairs of a first-order autoregressive series.
    worth = count * (1 - most) / (1 + most)
    se = max(float(np.std(logs, ddof=1)), FLOOR) / math.sqrt(worth)
    return Ratio(log=float(np.mean(logs)), se=se, df=max(1.0, worth - 1))


def verdict(times: Ratio, pairs: int, alpha: float, margin: float) -> str:
    """As `judge.decide`, but "same" needs at least SAME_PAIRS pairs."""
    found = decide(times, alpha, margin)
    return CANNOT_TELL if found == SAME and pairs < SAME_PAIRS else found


def _answer(
    name: str, logs: np.ndarray, sides: tuple[Sample, Sample], metric: Metric, margin: float, alpha: float
) -> Answer:
    """alpha: 0 before the first look."""
    times, pairs = of_pairs(logs), len(logs)
    found = verdict(times, pairs, alpha, margin) if alpha else CANNOT_TELL
    why = _help(times, pairs, alpha, margin) if found == CANNOT_TELL else ""
    return judges.make_answer(name, times, sides, metric, verdict=found, why=why, shown=alpha)


def _help(times: Ratio, pairs: int, alpha: float, margin: float) -> str:
    if not alpha:
        return f"at least {LOOKS[0]} pairs of processes are needed"
    # The half width falls with the square root of the pairs, if the ratio stays the same.
    needed = math.ceil((times.half(alpha) / wanted(times, math.log1p(margin))) ** 2 * pairs)
    least = SAME_PAIRS if abs(times.log) <= math.log1p(margin) else 0
    return f"about {max(1, max(needed, least) - pairs)} more pairs of processes are needed"


def next_look(pairs: int) -> int | None:
    """The number of pairs that the next look needs; None after the last."""
    return next((least for least in LOOKS if least > pairs), None)
