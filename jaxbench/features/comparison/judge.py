# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Faster, slower, same, or cannot tell, for each point and for the whole table, with a bounded rate of false alarms.

The verdict follows from the confidence interval of the ratio B / A. "same": the whole interval is within the margin
around 1. "faster", "slower": the whole interval is on one side of 1, and the ratio is beyond the margin. Otherwise:
"cannot tell".

A table answers several questions. The overall ratio gets half of ALPHA, and the points share the other half equally
(Bonferroni, which is valid for any dependence between points: one process measures several). So if nothing differs, the
chance of any "faster" or "slower" in a table is at most ALPHA. The intervals shown are ordinary 95 % intervals.
One or two processes on a machine without a calibration never decide, because nothing shows how much processes differ.

`decide_claim` judges a published claim: one number's 95 % interval against the limits of the claim. The claims of a
paper are judged separately, so of 20 true values exactly at their limit about one is decided wrongly. A number without
noise, such as a byte count, is its own interval.

A sequential test: a verdict that may be requested repeatedly while measuring, at a bounded error rate.

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

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison import ratio as ratios
from jaxbench.features.comparison.ratio import Ratio, Sample, Side
from jaxbench.statistics.bootstrap import CALIBRATED, MIN_PROCESSES, UNKNOWN, Estimate, RunVariance, autocorrelation

ALPHA = 0.05  # chance of a false alarm anywhere in a table
MARGIN = 0.02  # a smaller difference counts as none; as a share of A's time
FASTER, SLOWER, SAME, CANNOT_TELL = "faster", "slower", "same", "cannot tell"
OVERALL = "overall"
# Whether a published claim holds
HOLDS, FAILS, NOT_TESTABLE = "holds here", "does not hold here", "not testable here"
NOT_MEASURED, DIVERGED = "not measured yet", "diverged"
CLAIM_VERDICTS = (HOLDS, FAILS, CANNOT_TELL, DIVERGED, NOT_MEASURED, NOT_TESTABLE)
EXIT = {SAME: 0, FASTER: 0, SLOWER: 1, CANNOT_TELL: 2}  # a CI job may accept 2, but never by accident
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


@dataclass(frozen=True)
class Metric:
    """How two runs are compared. A metric is proportional to (time per step) ** power: 1 for a time, -1 for a rate."""

    name: str
    unit: str
    power: int
    more_is_better: bool


METRICS = {
    "step_s": Metric("step_s", "s", 1, more_is_better=False),
    "throughput": Metric("throughput", "1/s", -1, more_is_better=True),
}


def metric_named(name: str) -> Metric:
    """The metric `name`. Raises UserError for an unknown name."""
    if name not in METRICS:
        raise UserError(f"--metric={name} cannot be compared: {did_you_mean(name, METRICS)}")
    return METRICS[name]


def margin_of(share: float) -> float:
    """The margin `share`. Raises UserError unless it is between 0 and 1."""
    if not 0 < share < 1:
        raise UserError(f"--margin={share} must be between 0 and 1: use 0.02 for 2 %.")
    return share


class Both(NamedTuple):
    """A count of A, and of B."""

    a: int
    b: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One question and its answer.

    Attributes:
      name: of the point, or OVERALL.
      a, b: the metric of each side, the geometric mean of its processes' medians; NaN in the overall answer.
      ratio: B's metric over A's with its 95 % interval; in a sequential test, with the interval that decides.
      why: what would decide a "cannot tell"; "" otherwise.
      processes, rounds: of A and of B.
    """

    name: str
    verdict: str
    a: float = math.nan
    b: float = math.nan
    ratio: Estimate = UNKNOWN
    why: str = ""
    processes: Both = Both(0, 0)
    rounds: Both = Both(0, 0)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """A whole table. verdict: slower if any point is slower, else the overall verdict. The overall mean may be
    conclusive although no single point is."""

    metric: Metric
    margin: float
    points: tuple[Answer, ...]
    overall: Answer
    spread: RunVariance
    looks: int | None = None  # the looks of a sequential test so far; None: two finished runs, judged once
    autocorrelation: float = math.nan  # in a sequential test: between neighbouring pairs, over all points

    @property
    def verdict(self) -> str:
        return SLOWER if any(point.verdict == SLOWER for point in self.points) else self.overall.verdict


def judge(a: Side, b: Side, metric: Metric, spread: RunVariance, *, margin: float = MARGIN) -> Answers:
    """Judges B against A, for each point and overall.

    a, b: samples of the same points, at least one. spread: the run-to-run variance to assume or as calibrated. margin:
    the relative difference that counts as none, between 0 and 1.
    """
    if metric.power < 0:
        a, b = per_example(a), per_example(b)
    # Different seeds: the two runs are independent, so their bootstrap samples must be.
    left, right = ratios.draw(a, spread, 0), ratios.draw(b, spread, 1)
    each = {name: ratios.ratio([left[name]], [right[name]], spread) for name in a}
    alpha = ALPHA / 2 / len(each)  # the other half is for the overall answer
    points = tuple(_answer(name, each[name], (a[name], b[name]), metric, margin, alpha, spread) for name in each)
    measurable = [name for name in each if math.isfinite(each[name].se)]  # NaN would make the mean NaN
    if len(points) == 1:  # the same question: it may not get a second answer at another level
        overall = dataclasses.replace(points[0], name=OVERALL)
    elif measurable:
        mean = ratios.ratio([left[name] for name in measurable], [right[name] for name in measurable], spread)
        fewest_a, fewest_b = (min((side[n] for n in measurable), key=lambda sample: sample.count) for side in (a, b))
        overall = _answer(OVERALL, mean, (fewest_a, fewest_b), metric, margin, ALPHA / 2, spread)
    else:
        overall = Answer(name=OVERALL, verdict=CANNOT_TELL, why="every point is inconclusive")
    return Answers(metric=metric, margin=margin, points=points, overall=overall, spread=spread)


def per_example(side: Side) -> Side:
    return {name: sample.per_example() for name, sample in side.items()}


def _answer(
    name: str,
    times: Ratio,
    sides: tuple[Sample, Sample],
    metric: Metric,
    margin: float,
    alpha: float,
    spread: RunVariance,
) -> Answer:
    # An assumed variation between processes may be wrong, so it never decides.
    few = min(side.count for side in sides) < MIN_PROCESSES and spread.kind != CALIBRATED
    verdict = CANNOT_TELL if few else decide(times, alpha, margin)
    why = help_for(times, alpha, margin, sides, spread) if verdict == CANNOT_TELL else ""
    return make_answer(name, times, sides, metric, verdict=verdict, why=why)


def make_answer(
    name: str,
    times: Ratio,
    sides: tuple[Sample, Sample],
    metric: Metric,
    *,
    verdict: str,
    why: str,
    shown: float = 0.05,
) -> Answer:
    """The answer to one question. shown: 1 - confidence level of the interval to show; 0: show none."""
    # Verdicts are about times. The shown ratio is the metric's: for a rate, the reciprocal.
    ratio = times if metric.power > 0 else dataclasses.replace(times, log=-times.log)
    values = [math.nan if name == OVERALL else math.exp(metric.power * float(np.mean(s.log_medians()))) for s in sides]
    return Answer(
        name=name,
        verdict=verdict,
        a=values[0],
        b=values[1],
        ratio=ratio.estimate(shown) if shown and math.isfinite(times.se) else Estimate(value=math.exp(ratio.log)),
        why=why,
        processes=Both(sides[0].count, sides[1].count),
        rounds=Both(sides[0].rounds, sides[1].rounds),
    )


def decide(times: Ratio, alpha: float, margin: float) -> str:
    """The verdict at error rate `alpha`. times: B's time over A's for the same work. Above 1, B is slower."""
    half, limit = times.half(alpha), math.log1p(margin)
    if not math.isfinite(half):
        return CANNOT_TELL
    if abs(times.log) + half <= limit:  # even if the interval excludes 1: such a difference does not matter
        return SAME
    if abs(times.log) > max(half, limit):  # the ratio itself is beyond the margin, not only significant
        return SLOWER if times.log > 0 else FASTER
    return CANNOT_TELL


def help_for(times: Ratio, alpha: float, margin: float, sides: Sequence[Sample], spread: RunVariance) -> str:
    """What would decide the question if the ratio stays the same, as a clause."""
    half, limit = times.half(alpha), math.log1p(margin)
    if not math.isfinite(half):
        return "a side has only one round: at least 2 rounds are needed"
    few = min(side.count for side in sides) < MIN_PROCESSES
    if few and spread.kind != CALIBRATED:
        return (
            f"the variation between processes is unknown here: measure {MIN_PROCESSES} processes a side "
            f"(--config.measure.processes={MIN_PROCESSES}), or use jaxbench calibrate or jaxbench ab"
        )
    # Squared half widths: of the interval that would decide, and of the part that more processes do not reduce.
    goal, between = wanted(times, limit) ** 2, (half / times.se) ** 2 * times.session
    if between >= goal:  # even endless processes would leave the interval this wide
        return (
            f"more processes would not help, because sessions differ by {100 * spread.session_sd:.2g} % "
            f"({spread.session_kind}): use jaxbench ab, which measures both sides in the same session"
        )
    # Only the part of the variance within a session falls as 1 / processes.
    factor = (half**2 - between) / (goal - between)
    processes, rounds = (float(np.mean([getattr(side, name) for side in sides])) for name in ("count", "rounds"))
    if few:
        needed = max(MIN_PROCESSES, math.ceil(factor * processes))
        return f"about {needed} processes a side are needed (--config.measure.processes={needed})"
    more = max(1, math.ceil((factor - 1) * processes))
    return f"about {more * max(1, round(rounds / processes))} more rounds in {more} more processes a side are needed"


def wanted(times: Ratio, limit: float) -> float:
    """The half width at which the interval decides: "same" inside the margin, "slower" or "faster" beyond it."""
    size = abs(times.log)
    # A ratio exactly at the margin could not be decided by any number of processes: 5 % of the margin is the least.
    return size if size > limit else max(limit - size, 0.05 * limit)


def decide_claim(found: Estimate, low: float, high: float) -> str:
    """HOLDS if the whole interval is within [low, high], FAILS if all of it is on one side outside, else CANNOT_TELL.

    low, high: the limits of the claim, in the unit of `found`; -inf or inf where the claim has no limit.
    """
    if not (found.known and found.has_interval):
        return CANNOT_TELL
    if low <= found.lo and found.hi <= high:
        return HOLDS
    return FAILS if found.hi < low or found.lo > high else CANNOT_TELL


def why_undecided(found: Estimate, low: float, high: float) -> str:
    """Why `decide_claim` returned CANNOT_TELL and what would help, as a sentence."""
    if not found.has_interval:
        return "The number has no interval: more rounds or seeds would give one."
    limit = low if math.isfinite(low) and found.lo < low else high
    return f"The interval contains the limit {limit:.4g}: more rounds or seeds would narrow it."


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
        _answer_of_pairs(name, logs[name], (a[name], b[name]), metric, margin, alpha if alone else each)
        for name in logs
    )
    any_a, any_b = next(iter(a.values())), next(iter(b.values()))  # all points have the same number of pairs
    mean = np.mean(list(logs.values()), axis=0)
    overall = _answer_of_pairs(OVERALL, mean, (any_a, any_b), metric, margin, alpha if alone else alpha / 2)
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


def verdict(times: Ratio, pairs: int, alpha: float, margin: float) -> str:
    """As `judge.decide`, but "same" needs at least SAME_PAIRS pairs."""
    found = decide(times, alpha, margin)
    return CANNOT_TELL if found == SAME and pairs < SAME_PAIRS else found


def _answer_of_pairs(
    name: str, logs: np.ndarray, sides: tuple[Sample, Sample], metric: Metric, margin: float, alpha: float
) -> Answer:
    """alpha: 0 before the first look."""
    times, pairs = of_pairs(logs), len(logs)
    found = verdict(times, pairs, alpha, margin) if alpha else CANNOT_TELL
    why = _help(times, logs, alpha, margin) if found == CANNOT_TELL else ""
    return make_answer(name, times, sides, metric, verdict=found, why=why, shown=alpha)


def _help(times: Ratio, logs: np.ndarray, alpha: float, margin: float) -> str:
    if not alpha:
        return f"at least {LOOKS[0]} pairs of processes are needed"
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
