# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Faster, slower, same, or cannot tell, for each point and for the whole table, with a bounded rate of false alarms.

The verdict follows from the confidence interval of the ratio B / A. "same": the whole interval is within the margin
around 1. "faster", "slower": the whole interval is on one side of 1, and the ratio is beyond the margin. Otherwise:
"cannot tell".

A table answers several questions. The overall ratio gets half of ALPHA, and the points share the other half equally
(Bonferroni, which is valid for any dependence between points: one process measures several). So if nothing differs, the
chance of any "faster" or "slower" in a table is at most ALPHA. The intervals shown are ordinary 95 % intervals.
One or two processes on a machine without a calibration never decide, because nothing shows how much processes differ.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.comparison import ratio as ratios
from jaxbench.features.comparison.ratio import Ratio, Sample, Side
from jaxbench.statistics.bootstrap import CALIBRATED, MIN_PROCESSES, UNKNOWN, Estimate, RunVariance

ALPHA = 0.05  # chance of a false alarm anywhere in a table
MARGIN = 0.02  # a smaller difference counts as none; as a share of A's time
FASTER, SLOWER, SAME, CANNOT_TELL = "faster", "slower", "same", "cannot tell"
OVERALL = "overall"
EXIT = {SAME: 0, FASTER: 0, SLOWER: 1, CANNOT_TELL: 2}  # a CI job may accept 2, but never by accident


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
    left, right = ratios.log_times(a, spread), ratios.log_times(b, spread)
    each = {name: ratios.ratio([left[name]], [right[name]], spread) for name in a}
    alpha = ALPHA / 2 / len(each)  # the other half is for the overall answer
    points = tuple(_judged(name, each[name], (a[name], b[name]), metric, margin, alpha, spread) for name in each)
    measurable = [name for name in each if math.isfinite(each[name].se)]  # NaN would make the mean NaN
    if len(points) == 1:  # the same question: it may not get a second answer at another level
        overall = dataclasses.replace(points[0], name=OVERALL)
    elif measurable:
        mean = ratios.ratio([left[name] for name in measurable], [right[name] for name in measurable], spread)
        fewest_a, fewest_b = (min((side[n] for n in measurable), key=lambda sample: sample.count) for side in (a, b))
        overall = _judged(OVERALL, mean, (fewest_a, fewest_b), metric, margin, ALPHA / 2, spread)
    else:
        overall = Answer(name=OVERALL, verdict=CANNOT_TELL, why="every point is inconclusive")
    return Answers(metric=metric, margin=margin, points=points, overall=overall, spread=spread)


def per_example(side: Side) -> Side:
    return {name: sample.per_example() for name, sample in side.items()}


def answer(
    name: str,
    times: Ratio,
    sides: tuple[Sample, Sample],
    metric: Metric,
    *,
    alpha: float,
    margin: float,
    advice: Callable[[], str],
    never: str = "",
    same: bool = True,
    shown: float = 0.05,
) -> Answer:
    """The answer to one question at error rate `alpha`.

    Args:
      times: B's time over A's for the same work.
      advice: what would decide it, as a clause; asked if nothing decides.
      never: why these data cannot decide it, whatever their interval says; "" if they can.
      same: whether these data can show that B is the same.
      shown: 1 - confidence level of the interval to show; 0: show none.
    """
    verdict = CANNOT_TELL if never else decide(times, alpha, margin, same=same)
    # Verdicts are about times. The shown ratio is the metric's: for a rate, the reciprocal.
    ratio = times if metric.power > 0 else dataclasses.replace(times, log=-times.log)
    values = [math.nan if name == OVERALL else math.exp(metric.power * float(np.mean(s.log_medians()))) for s in sides]
    return Answer(
        name=name,
        verdict=verdict,
        a=values[0],
        b=values[1],
        ratio=ratio.estimate(shown) if shown and math.isfinite(times.se) else Estimate(value=math.exp(ratio.log)),
        why=(never or advice()) if verdict == CANNOT_TELL else "",
        processes=Both(sides[0].count, sides[1].count),
        rounds=Both(sides[0].rounds, sides[1].rounds),
    )


def decide(times: Ratio, alpha: float, margin: float, *, same: bool = True) -> str:
    """The verdict at error rate `alpha`. times: B's time over A's for the same work. Above 1, B is slower.

    same: whether the data can show SAME; otherwise it is CANNOT_TELL.
    """
    half, limit = times.half(alpha), math.log1p(margin)
    if not math.isfinite(half):
        return CANNOT_TELL
    if abs(times.log) + half <= limit:  # even if the interval excludes 1: such a difference does not matter
        return SAME if same else CANNOT_TELL
    if abs(times.log) > max(half, limit):  # the ratio itself is beyond the margin, not only significant
        return SLOWER if times.log > 0 else FASTER
    return CANNOT_TELL


def one_round(times: Ratio) -> str:
    """Why a ratio without a standard error decides nothing, as a clause; "" if it has one."""
    return "a side has only one round: at least 2 rounds are needed" if math.isnan(times.se) else ""


def _judged(
    name: str,
    times: Ratio,
    sides: tuple[Sample, Sample],
    metric: Metric,
    margin: float,
    alpha: float,
    spread: RunVariance,
) -> Answer:
    """The answer to one question of two finished runs."""
    never, few = one_round(times), min(side.count for side in sides) < MIN_PROCESSES
    if not never and few and spread.kind != CALIBRATED:
        never = (  # an assumed variation between processes may be wrong, so it never decides
            f"the variation between processes is unknown here: measure {MIN_PROCESSES} processes a side "
            f"(--config.measure.processes={MIN_PROCESSES}), or use jaxbench calibrate or jaxbench ab"
        )

    advice = partial(_more_processes, times, alpha, margin, sides, spread)
    return answer(name, times, sides, metric, alpha=alpha, margin=margin, never=never, advice=advice)


def _more_processes(
    times: Ratio, alpha: float, margin: float, sides: tuple[Sample, Sample], spread: RunVariance
) -> str:
    """How many more processes would decide the question if the ratio stays the same, as a clause."""
    half, limit = times.half(alpha), math.log1p(margin)
    # Squared half widths: of the interval that would decide, and of the part that more processes do not reduce.
    goal, between = wanted(times, limit) ** 2, (half / times.se) ** 2 * times.session
    if between >= goal:  # even endless processes would leave the interval this wide
        return (
            f"more processes would not help, because runs at two times differ by {100 * spread.session_sd:.2g} % "
            f"({spread.session_kind}): use jaxbench ab, which measures both sides in turns"
        )
    # Only the part of the variance within a session falls as 1 / processes.
    factor = (half**2 - between) / (goal - between)
    processes, rounds = (float(np.mean([getattr(side, name) for side in sides])) for name in ("count", "rounds"))
    if min(side.count for side in sides) < MIN_PROCESSES:
        needed = max(MIN_PROCESSES, math.ceil(factor * processes))
        return f"about {needed} processes a side are needed (--config.measure.processes={needed})"
    more = max(1, math.ceil((factor - 1) * processes))
    return f"about {more * max(1, round(rounds / processes))} more rounds in {more} more processes a side are needed"


def wanted(times: Ratio, limit: float) -> float:
    """The half width at which the interval decides: "same" inside the margin, "slower" or "faster" beyond it."""
    size = abs(times.log)
    # A ratio exactly at the margin could not be decided by any number of processes: 5 % of the margin is the least.
    return size if size > limit else max(limit - size, 0.05 * limit)
