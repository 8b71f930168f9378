# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A sequential test: a verdict that can be requested repeatedly while measuring, at a bounded error rate.

Pairs of fresh processes, one of each arm, are measured in interleaved rounds. Each pair gives one logarithm of B's
time over A's, the median over its rounds: pairs are independent, and disturbances of both arms of a round cancel.
Testing after each pair would find a difference by chance sooner or later. So there is a look only after LOOKS pairs,
and look k may spend 6 / (pi k)^2 of the error rate. These shares add up to 1, so by Bonferroni's inequality the
chance of a false alarm at any look is at most ALPHA, however many looks there are. The interval shown has the level of
the last look, so it is wider than 95 %: the price of the earlier looks.
"""

from __future__ import annotations

import math

import numpy as np

from jaxbench.verdicts import judge as judges
from jaxbench.verdicts.judge import ALPHA, CANNOT_TELL, OVERALL, Answer, Answers, decide, wanted
from jaxbench.verdicts.metric import Metric
from jaxbench.verdicts.ratio import Ratio, Spread
from jaxbench.verdicts.samples import Sample, Side

LOOKS = (3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64, 86, 115, 153, 204)  # pairs
SEEN = Spread(sd=math.nan, df=math.nan, source="seen in the pairs of processes")


def share(look: int) -> float:
    """The share of ALPHA that the look of this number, from 1 on, may spend."""
    return 6 / (math.pi * look) ** 2


def looks(pairs: int) -> int:
    """The number of looks after this many pairs."""
    return sum(pairs >= least for least in LOOKS)


def judge(a: Side, b: Side, metric: Metric, *, margin: float) -> Answers:
    """a, b: the same points, each with the same number of processes, the i-th of both being a pair.

    As of the newest look: later pairs are not used. Before the first look, every answer is "cannot tell".
    """
    if metric.power < 0:
        a, b = judges.per_example(a), judges.per_example(b)
    pairs = min(len(sample.processes) for side in (a, b) for sample in side.values())
    look = looks(pairs)
    used = LOOKS[look - 1] if look else pairs
    a, b = first(a, used), first(b, used)
    logs = {name: _logs(a[name], b[name]) for name in a}
    alpha = ALPHA * (share(look) if look else 0.0)
    alone, each = len(logs) == 1, alpha / 2 / len(logs)
    points = tuple(
        _answer(name, logs[name], (a[name], b[name]), metric, margin, alpha if alone else each) for name in logs
    )
    any_a, any_b = next(iter(a.values())), next(iter(b.values()))
    mean = np.mean(list(logs.values()), axis=0)
    overall = _answer(OVERALL, mean, (any_a, any_b), metric, margin, alpha if alone else alpha / 2)
    return Answers(metric=metric, margin=margin, points=points, overall=overall, spread=SEEN, looks=look)


def _logs(a: Sample, b: Sample) -> np.ndarray:
    """(pairs,): for each pair the median over its rounds of log(B / A), in which drift from round to round cancels; or
    if its processes have different numbers of rounds, the difference of their medians."""
    logs = b.log_medians() - a.log_medians()
    for number, (left, right) in enumerate(zip(a.processes, b.processes, strict=True)):
        if len(left) == len(right):
            logs[number] = np.median([np.log(np.median(y) / np.median(x)) for x, y in zip(left, right, strict=True)])
    return logs


def first(side: Side, pairs: int) -> dict[str, Sample]:
    """Only the first pairs."""
    return {
        name: Sample(processes=sample.processes[:pairs], names=sample.names[:pairs], work=sample.work)
        for name, sample in side.items()
    }


def of_pairs(logs: np.ndarray) -> Ratio:
    """(pairs,) logarithms of B's time over A's -> their mean, with Student's interval."""
    se = float(np.std(logs, ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    return Ratio(log=float(np.mean(logs)), se=se, df=len(logs) - 1)


def _answer(
    name: str, logs: np.ndarray, sides: tuple[Sample, Sample], metric: Metric, margin: float, alpha: float
) -> Answer:
    """alpha: 0 before the first look."""
    times = of_pairs(logs)
    verdict = decide(times, alpha, margin) if alpha else CANNOT_TELL
    why = _help(times, alpha, margin) if verdict == CANNOT_TELL else ""
    return judges.make_answer(name, times, sides, metric, verdict=verdict, why=why, shown=alpha)


def _help(times: Ratio, alpha: float, margin: float) -> str:
    if not alpha:
        return f"at least {LOOKS[0]} pairs of processes would"
    pairs = int(times.df) + 1
    factor = (times.half(alpha) / wanted(times, math.log1p(margin))) ** 2
    return f"about {max(1, math.ceil((factor - 1) * pairs))} more pairs of processes would"


def next_look(pairs: int) -> int | None:
    """The number of pairs that the next look needs; None after the last."""
    return next((least for least in LOOKS if least > pairs), None)
