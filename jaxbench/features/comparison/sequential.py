# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A sequential test: a verdict that may be requested repeatedly while measuring, at a bounded error rate.

Pairs of fresh processes, one for each arm, are measured in interleaved rounds. Each pair gives one logarithm of B's
time over A's: the median over its rounds, because a disturbance that hits both arms of a round cancels. Testing after
every pair would find a difference by chance sooner or later. So the test looks only after the numbers of pairs in
LOOKS, and look k may spend 6 / (pi k)^2 of the error rate. These shares add up to 1, so by Bonferroni's inequality the
chance of a false alarm at any look is at most ALPHA, however many looks there are. The interval shown has the
confidence level of the last look, so it is wider than a 95 % interval: that is the price of the earlier looks.

Three rules keep the error rate when pairs are few and not normally distributed:

- Two modes. If each pair is in one of two modes with equal chance, three pairs agree one time in four, six pairs one
  time in 32. So the first look is after 6 pairs, and "same" needs SAME_PAIRS. A mode with probability 0.3 stays unseen
  in 11 pairs 2 times in 100.
- Agreement by chance. The standard deviation of pairs is never taken to be below FLOOR.
- Autocorrelation. n neighbouring pairs with autocorrelation r hold as much information as n (1 - r) / (1 + r)
  independent pairs. A few pairs hardly show r, so the upper end of its interval counts (`correlation`).

At the upper end eleven pairs may be worth 1.5, and Student's quantile grows without bound for less than a degree of
freedom. So half of an interval is at most WIDEST times the range of the pairs.
"""

from __future__ import annotations

import math

import numpy as np

from jaxbench.features.comparison.judge import ALPHA, OVERALL, Answer, Answers, Metric, answer, per_example, wanted
from jaxbench.features.comparison.ratio import Ratio, Sample, Side
from jaxbench.statistics.bootstrap import RunVariance, autocorrelation

# The numbers of pairs after which the test looks. Each is a third more than the one before: looks cost confidence, and
# rare ones would measure longer than needed.
LOOKS = (6, 8, 11, 15, 20, 27, 36, 48, 64, 86, 115, 153, 204)
SAME_PAIRS = 11
FLOOR = 0.01  # the least standard deviation between pairs that is used, on the logarithmic scale
# Half of an interval is at most this many times the range of the pairs. With autocorrelation 0.9, the mean of six pairs
# is further from the truth once in 150 times, and that of eleven once in 14,000 (docs/STATISTICS.md).
WIDEST = 4.0
FLOOR_RANGE = 3 * FLOOR  # the range of about ten pairs with the least standard deviation
MAX_AUTOCORRELATION = 0.97  # larger estimates count as this one, so that the effective number of pairs stays above 0
SEEN = RunVariance(sd=math.nan, df=math.nan, source="seen in the pairs of processes")


def share(look: int) -> float:
    """The share of ALPHA that look number `look` may spend, counted from 1."""
    return 6 / (math.pi * look) ** 2


def looks(pairs: int) -> int:
    """The number of looks after `pairs` pairs."""
    return sum(pairs >= least for least in LOOKS)


def judge_pairs(a: Side, b: Side, metric: Metric, *, margin: float, alpha: float = ALPHA) -> Answers:
    """Judges B against A as of the newest look. Later pairs are not used.

    a, b: the same points with the same number of processes; the i-th processes of both sides are a pair. margin: as in
    `judge.judge`. alpha: the chance of a false alarm at any look. Before the first look, every answer is "cannot tell".
    """
    if metric.power < 0:
        a, b = per_example(a), per_example(b)
    pairs = min(len(sample.processes) for side in (a, b) for sample in side.values())
    look = looks(pairs)
    used = LOOKS[look - 1] if look else pairs  # pairs since the last look would be an unplanned look
    a, b = ({name: sample.only(range(used)) for name, sample in side.items()} for side in (a, b))
    logs = {name: _logs(a[name], b[name]) for name in a}
    alpha *= share(look) if look else 0.0
    alone, each = len(logs) == 1, alpha / 2 / len(logs)
    points = tuple(
        _judged_pairs(name, logs[name], (a[name], b[name]), metric, margin, alpha if alone else each) for name in logs
    )
    any_a, any_b = next(iter(a.values())), next(iter(b.values()))  # all points have the same number of pairs
    mean = np.mean(list(logs.values()), axis=0)
    overall = _judged_pairs(OVERALL, mean, (any_a, any_b), metric, margin, alpha if alone else alpha / 2)
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
    return autocorrelation(logs), _upper(_counted(logs), len(logs))


def _counted(logs: np.ndarray) -> float:
    """Their autocorrelation, with differences below FLOOR as independent noise."""
    # Raising their deviation to FLOOR adds independent noise to the pairs, which weakens their correlation this much.
    return autocorrelation(logs) * min(1.0, float(np.var(logs)) / FLOOR**2)


def _upper(seen: float, count: int) -> float:
    """The upper end of the interval of an autocorrelation that `count` pairs show."""
    return min(max(0.0, seen + 1 / count + 1.5 / math.sqrt(count)), MAX_AUTOCORRELATION)


def of_pairs(logs: np.ndarray) -> Ratio:
    """The mean of the pairs' logarithms, with Student's t for their effective number of independent pairs.

    logs: (pairs,) logarithms of B's time over A's.
    """
    count = len(logs)
    if count < 2:
        return Ratio(log=float(np.mean(logs)), se=math.nan, df=0)
    _, most = correlation(logs)
    sd = max(float(np.std(logs, ddof=1)), FLOOR)
    widest = WIDEST * max(float(np.ptp(logs)), FLOOR_RANGE)
    return _student(float(np.mean(logs)), sd, most, count, widest=widest)


def _student(log: float, sd: float, correlated: float, count: int, *, widest: float) -> Ratio:
    """The mean `log` of `count` pairs with standard deviation `sd` and autocorrelation `correlated`."""
    # The effective number of independent pairs of a first-order autoregressive series.
    worth = count * (1 - correlated) / (1 + correlated)
    return Ratio(log=log, se=sd / math.sqrt(worth), df=max(1.0, worth - 1), most=widest)


def _judged_pairs(
    name: str, logs: np.ndarray, sides: tuple[Sample, Sample], metric: Metric, margin: float, alpha: float
) -> Answer:
    """The answer to one question of the sequential test. alpha: 0 before the first look."""
    times, pairs = of_pairs(logs), len(logs)
    return answer(
        name,
        times,
        sides,
        metric,
        alpha=alpha,
        margin=margin,
        never="" if alpha else f"at least {LOOKS[0]} pairs of processes are needed",
        same=pairs >= SAME_PAIRS,
        advice=lambda: _more_pairs(times, logs, alpha, margin),
        shown=alpha,
    )


def _more_pairs(times: Ratio, logs: np.ndarray, alpha: float, margin: float) -> str:
    """How many more pairs would decide the question, as a clause."""
    count, goal = len(logs), wanted(times, math.log1p(margin))
    least = SAME_PAIRS if abs(times.log) <= math.log1p(margin) else 0
    more = max(1, max(_needed(logs, alpha, goal), least) - count)
    return f"about {more} more pairs of processes are needed"


def _needed(logs: np.ndarray, alpha: float, goal: float) -> int:
    """The number of pairs for a half width of `goal`, if further pairs are like `logs`.

    More pairs also show their autocorrelation better, so the width falls faster than with their square root at first.
    """
    sd, count = max(float(np.std(logs, ddof=1)), FLOOR), len(logs)
    seen = _counted(logs)
    while (half := _student(0.0, sd, _upper(seen, count), count, widest=math.inf).half(alpha)) > goal:
        if count > 100 * len(logs):  # from there on the square root is right
            return math.ceil(count * (half / goal) ** 2)
        count = math.ceil(1.1 * count)
    return count


def next_look(pairs: int) -> int | None:
    """The number of pairs that the next look needs; None after the last."""
    return next((least for least in LOOKS if least > pairs), None)
