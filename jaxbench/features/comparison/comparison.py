# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares two run folders, or the trainings of two sides: the answers, and what a reader needs to judge them.

Waterfalls: a step on n devices takes t1 work / (n E), where E is the product of the factors. So B's time over A's is
the ratio of their one-device times, divided by the ratio of each factor. In logarithms, the contributions add up.

Trainings: the value of a side is the geometric mean over its seeds. The interval of the ratio is Student's t on the
logarithms, with Welch's degrees of freedom. A seed that did not reach the target is censored: it counts with the time
or steps that it used, which is a lower limit. So only a verdict against its own side stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxbench.analysis import waterfall
from jaxbench.analysis.waterfall import NAMES, TERMS, UNEXPLAINED, Waterfall
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.features.comparison import calibration, comparable, judge
from jaxbench.features.comparison.comparable import FinishedRun, LeftOut
from jaxbench.features.comparison.judge import ALPHA, CANNOT_TELL, EXIT, FASTER, SLOWER, Answer, Answers, Metric, decide
from jaxbench.features.comparison.ratio import Ratio, of_seeds
from jaxbench.features.training.trainings import LearningCurve, position
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

ONE_DEVICE = "one device"
_FACTOR_NAMES = {**TERMS, ONE_DEVICE: "the time on one device", UNEXPLAINED: "the unexplained factor"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """One factor of one point in both runs.

    Attributes:
      point: the point's name, without the fields that were declared to differ.
      name: one of `waterfall.NAMES`, or ONE_DEVICE.
      a, b: the factor in each run; for ONE_DEVICE the seconds per step of the base.
      faster: B's speed over A's if only this factor differed. Above 1, B is faster.
    """

    point: str
    name: str
    a: Estimate
    b: Estimate
    faster: Estimate

    @property
    def resolved(self) -> bool:
        """Whether the whole interval is on one side of 1."""
        return self.faster.has_interval and (self.faster.lo > 1 or self.faster.hi < 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class WaterfallPair:
    """The waterfalls of one point in both runs. point: as in `Change`."""

    point: str
    a: Waterfall
    b: Waterfall


def waterfall_pairs(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> tuple[WaterfallPair, ...]:
    """One pair for each point with a waterfall in both runs. across: as in `comparable.pair`."""
    left, right = _waterfalls(a, across), _waterfalls(b, across)
    return tuple(WaterfallPair(point=name, a=left[name], b=right[name]) for name in left if name in right)


def _waterfalls(run: FinishedRun, across: Sequence[str]) -> dict[str, Waterfall]:
    """The waterfalls of a run by point, named without the fields that may differ."""
    if not run.ablations:  # without ablations there is nothing to find, and `rows` resamples for all points
        return {}
    return {comparable.name_of(one.point, across): one for one in waterfall.find(run.rows())}


def _changes(point: str, a: Waterfall, b: Waterfall) -> list[Change]:
    """How much each factor of a point's waterfall makes B faster."""
    bases = [Estimate(value=side.row.base_step_s) for side in (a, b)]  # of one point each: no interval is known
    found = [Change(point=point, name=ONE_DEVICE, a=bases[0], b=bases[1], faster=_ratio(*bases))]
    for name in NAMES:
        left, right = a.factor(name), b.factor(name)
        if left or right:
            # A factor that a run does not have is exactly 1 in it.
            one, two = (factor.value if factor else Estimate(value=1.0) for factor in (left, right))
            found.append(Change(point=point, name=name, a=one, b=two, faster=_ratio(two, one)))
    return found


def _ratio(top: Estimate, bottom: Estimate) -> Estimate:
    """The quotient of two independent estimates. The squares of their relative half widths add up."""
    if not (top.known and bottom.known and top.value > 0 and bottom.value > 0):
        return UNKNOWN
    value = top.value / bottom.value
    known = [each for each in (top, bottom) if each.has_interval and each.lo > 0]
    if not known:
        return Estimate(value=value)
    # On logarithms, where the intervals of ratios are symmetric.
    half = math.sqrt(sum((math.log(each.hi / each.lo) / 2) ** 2 for each in known))
    return Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half))


def factor_sentences(changes: Sequence[Change], answers: Sequence[Answer]) -> list[str]:
    """For each point that is faster or slower, a clause with the factor that contributed most.

    answers: the answers of the same comparison.
    """
    found = []
    for answer in answers:
        parts = [change for change in changes if change.point == answer.name]
        if not parts or answer.verdict not in (FASTER, SLOWER):
            continue
        sign = 1 if answer.verdict == FASTER else -1  # only factors that act in the direction of the verdict explain it
        # A factor that may be 1 explains nothing. The time on one device has no interval to say so.
        able = [part for part in parts if part.resolved or part.name == ONE_DEVICE]
        gains = {part.name: sign * math.log(part.faster.value) for part in able if part.faster.known}
        most = max(gains, key=lambda name: gains[name], default="")
        if most and gains[most] > 0:
            share = f"this factor alone makes B {math.exp(gains[most]):.2f}x as {'fast' if sign > 0 else 'slow'}"
            cause = f"mostly because of {_FACTOR_NAMES.get(most, most)} ({share})"
            found.append(f"{answer.name}: B is {answer.verdict} {cause}")
    return found


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs, compared.

    Attributes:
      a, b: names of the runs, such as their paths.
      left_out: the points that are not compared.
      software: a sentence for each difference in software, which may explain a difference in time.
      across: the fields that were declared to differ.
      waterfalls: one pair for each point with a waterfall in both runs.
      phases: of `ab`: the answer for each phase before the first step, over all points.
    """

    a: str
    b: str
    answers: Answers
    left_out: tuple[LeftOut, ...]
    software: tuple[str, ...]
    across: tuple[str, ...] = ()
    waterfalls: tuple[WaterfallPair, ...] = ()
    phases: tuple[Answers, ...] = ()

    @property
    def factors(self) -> tuple[Change, ...]:
        """How much faster B is by each factor of the waterfalls."""
        return tuple(change for pair in self.waterfalls for change in _changes(pair.point, pair.a, pair.b))

    @property
    def verdict(self) -> str:
        return self.answers.verdict

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]


def compare(a: Path, b: Path, metric: Metric, *, margin: float, across: Sequence[str] = ()) -> Comparison:
    """Compares the run folders `a` and `b`.

    margin: the relative difference that counts as none, between 0 and 1. across: as in `comparable.pair`.
    Raises UserError.
    """
    left, right = comparable.read(a), comparable.read(b)
    pair = comparable.pair(left, right, across)
    # B's machine: A may be a stored baseline of another one, if that was declared.
    known = calibration.spread_of(right.manifest, str(right.config.get("experiment", "")))
    answers = judge.judge(pair.a, pair.b, metric, known, margin=margin)
    return Comparison(
        a=str(a),
        b=str(b),
        answers=answers,
        left_out=pair.left_out,
        software=pair.software,
        across=tuple(across),
        waterfalls=waterfall_pairs(left, right, across),
    )


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The answer in one unit.

    Attributes:
      what: "seconds" or "steps".
      a, b: geometric means over seeds, in that unit.
      times: B over A.
      a_lost, b_lost: how many seeds did not reach the target.
      seeds: how many seeds A and B have.
    """

    what: str
    verdict: str
    a: float
    b: float
    times: Ratio
    a_lost: int
    b_lost: int
    seeds: tuple[int, int]

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        words = {FASTER: "B reaches the target sooner", SLOWER: "A reaches the target sooner"}
        answer = words.get(self.verdict, "both reach the target equally soon" if self.verdict != CANNOT_TELL else "")
        limits = ["at least " if lost else "" for lost in (self.a_lost, self.b_lost)]  # censored, as `_reached` says
        numbers = f"A {limits[0]}{digits(self.a, 4)}, B {limits[1]}{digits(self.b, 4)}"
        if not answer:
            lost = self.a_lost or self.b_lost
            answer = "cannot tell which reaches the target sooner"
            why = "the difference is within the variation between seeds"
            if min(self.seeds) < 2:
                why = "one seed does not show how much seeds differ: train more with --config.seed=1, and so on"
            answer += f" ({'a seed did not reach it' if lost else why})"
        interval = ""
        if self.times.se > 0 and not (self.a_lost or self.b_lost):  # a ratio of lower limits limits nothing
            found = self.times.estimate()
            interval = f"; B over A is {digits(found.value)} [{digits(found.lo)}, {digits(found.hi)}]"
        return f"In {self.what}: {answer}. {numbers}{interval}."


def compare_trainings(
    a: Sequence[LearningCurve], b: Sequence[LearningCurve], *, margin: float
) -> tuple[Reached, Reached]:
    """The answers in seconds and in steps. a, b: the seeds of each side. margin: as in `judge`.

    Raises UserError if the targets differ, or if a training has no evaluation.
    """
    targets = sorted({f"{one.metric} {one.target:g}" for one in (*a, *b)})
    if len(targets) > 1:
        raise UserError(f"the trainings have different targets, {targets[0]} and {targets[1]}: give equal ones.")
    if empty := [one.name for one in (*a, *b) if not one.rows]:  # it has not even a lower limit
        raise UserError(f"the training '{empty[0]}' has no evaluation yet: let it go on.")
    return _reached("seconds", a, b, margin), _reached("steps", a, b, margin)


def _reached(what: str, a: Sequence[LearningCurve], b: Sequence[LearningCurve], margin: float) -> Reached:
    """The answer in one unit, seconds or steps."""
    # A training that has not reached its target counts with what it has used so far, which is a lower limit.
    sides = [np.log([position(one.at_target() or one.rows[-1], what, one.batch) for one in side]) for side in (a, b)]
    lost = [sum(one.at_target() is None for one in side) for side in (a, b)]
    times = of_seeds(*sides)
    verdict = decide(times, ALPHA, margin)
    if any(lost):  # the losing side's time is a lower limit, so only a verdict against that side stands
        stands = {SLOWER} if not lost[0] else {FASTER} if not lost[1] else set()
        verdict = verdict if verdict in stands else CANNOT_TELL
    return Reached(
        what=what,
        verdict=verdict,
        a=math.exp(float(np.mean(sides[0]))),
        b=math.exp(float(np.mean(sides[1]))),
        times=times,
        a_lost=lost[0],
        b_lost=lost[1],
        seeds=(len(a), len(b)),
    )
