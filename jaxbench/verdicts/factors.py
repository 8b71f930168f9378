# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which factor made B faster: compares the waterfalls of two runs factor by factor.

A step on n devices takes t1 work / (n E), where E is the product of the factors. So B's time over A's is the ratio of
their one-device times, divided by the ratio of each factor. In logarithms, the contributions of the factors add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis import scaling, spread, waterfall
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.waterfall import CALLED, NAMES, NOT_EXPLAINED, Waterfall
from jaxbench.verdicts import comparable
from jaxbench.verdicts.comparable import FinishedRun
from jaxbench.verdicts.judge import FASTER, SLOWER, Answer

ONE_DEVICE = "one device"


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
    def clear(self) -> bool:
        """Whether the whole interval is on one side of 1."""
        return self.faster.has_interval and (self.faster.lo > 1 or self.faster.hi < 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class WaterfallPair:
    """The waterfalls of one point in both runs. point: as in `Change`."""

    point: str
    a: Waterfall
    b: Waterfall


def pairs(a: FinishedRun, b: FinishedRun, across: Sequence[str] = ()) -> tuple[WaterfallPair, ...]:
    """One pair for each point with a waterfall in both runs. across: as in `comparable.pair`."""
    left, right = _waterfalls(a, across), _waterfalls(b, across)
    return tuple(WaterfallPair(point=name, a=left[name], b=right[name]) for name in left if name in right)


def changes(found: Sequence[WaterfallPair]) -> tuple[Change, ...]:
    """The factors of these points, each with its value in both runs."""
    return tuple(change for pair in found for change in _changes(pair.point, pair.a, pair.b))


def _waterfalls(run: FinishedRun, across: Sequence[str]) -> dict[str, Waterfall]:
    if not run.explaining:
        return {}
    training = [point for point in (*run.points, *run.explaining) if isinstance(point, MeasuredPoint)]
    rows = scaling.analyse(training, config=run.config, spread=spread.read(run.path))
    return {comparable.name_of(one.point, across): one for one in waterfall.find(rows)}


def _changes(point: str, a: Waterfall, b: Waterfall) -> list[Change]:
    bases = [Estimate(value=side.row.base_step_s) for side in (a, b)]
    found = [Change(point=point, name=ONE_DEVICE, a=bases[0], b=bases[1], faster=_ratio(*bases))]
    for name in NAMES:
        left, right = a.factor(name), b.factor(name)
        if left or right:
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
    half = math.sqrt(sum((math.log(each.hi / each.lo) / 2) ** 2 for each in known))
    return Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half))


def sentences(changes: Sequence[Change], answers: Sequence[Answer]) -> list[str]:
    """For each point that is faster or slower, a clause with the factor that contributed most.

    answers: the answers of the same comparison.
    """
    found = []
    for answer in answers:
        parts = [change for change in changes if change.point == answer.name]
        if not parts or answer.verdict not in (FASTER, SLOWER):
            continue
        sign = 1 if answer.verdict == FASTER else -1
        able = [part for part in parts if part.clear or part.name == ONE_DEVICE]
        gains = {part.name: sign * math.log(part.faster.value) for part in able if part.faster.known}
        most = max(gains, key=lambda name: gains[name], default="")
        if most and gains[most] > 0:
            share = f"this factor alone makes B {math.exp(gains[most]):.2f}x as {'fast' if sign > 0 else 'slow'}"
            found.append(f"{answer.name}: B is {answer.verdict} mostly because of {_CALLED.get(most, most)} ({share})")
    return found


_CALLED = {**CALLED, ONE_DEVICE: "the time on one device", NOT_EXPLAINED: "the unexplained factor"}
