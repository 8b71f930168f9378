# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The expected factors of a step with a known loss, compared with the measured ones (`benchmarks.known_losses`).

The loss is added to the times of a step without it, and the factors follow by their definitions (docs/metrics,
Waterfall). The time of a loss alone is measured: for repeated gradients by the collectives alone, for a wait and for
passes over memory in a plain loop. A bubble follows from its formula, plus at most the time of all messages of the
step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import stats

from jaxbench.analysis import waterfall
from jaxbench.analysis.waterfall import (
    BUBBLE,
    COMMUNICATION,
    CONTENTION,
    NAMES,
    SMALLER_BATCH,
    STAGE_WORK,
    UNEXPLAINED,
    Waterfall,
)
from jaxbench.statistics.bootstrap import Estimate

DEVICES, WAIT_S = 2, 0.01
NEAR = 0.02  # factors that differ by less are as expected
# The factors of each loss; factors in one parenthesis count as a product.
BUILT_IN: dict[str, tuple[tuple[str, ...], ...]] = {
    "again": ((COMMUNICATION,),),
    "late": ((CONTENTION, UNEXPLAINED),),
    "heard": ((UNEXPLAINED,),),
    "fixed": ((SMALLER_BATCH,),),
    "memory": ((SMALLER_BATCH,), (CONTENTION,)),
    "few": ((BUBBLE,),),
    "many": ((BUBBLE,),),
}
MICRO_BATCHES = {"few": 2, "many": 8}
Factors = dict[str, Estimate]
Line = tuple[str, Estimate | None, Estimate | None, Estimate, str]  # factor, without, expected, measured, verdict


@dataclass(frozen=True)
class Alone:
    """Seconds of a loss in a plain loop (`benchmarks.known_losses_alone`).

    wait_s: of a wait of WAIT_S. passes: by repeat, of all examples, of a half, and of a half on each device.
    """

    wait_s: float = WAIT_S
    passes: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True)
class Times:
    """Seconds per step: one device with all of the work and with its share, all devices without communication, the
    collectives alone, and the whole step."""

    one: float
    alone: float
    local: float
    communication: float
    step: float

    @classmethod
    def of(cls, measured: Waterfall) -> Times:
        parts = [measured.row.ablations[part].timing.step_s.value for part in ("alone", "local", "communication")]
        return cls(measured.row.base_step_s, *parts, measured.row.timing.step_s.value)

    @property
    def seen(self) -> float:
        """The communication time that is not hidden."""
        return min(max(self.step - self.local, 0), self.communication)

    def factors(self) -> dict[str, float]:
        """As defined in docs/metrics, implemented independently."""
        return {
            SMALLER_BATCH: self.one / (DEVICES * self.alone),
            CONTENTION: self.alone / self.local,
            COMMUNICATION: self.local / (self.local + self.seen),
            UNEXPLAINED: (self.local + self.seen) / self.step,
        }

    def with_loss(self, name: str, found: Times, wait_s: float = WAIT_S) -> Times:
        """The times with an added loss. found: the times that were measured with it."""
        if name == "again":  # its squares are work of each device, with or without communication
            more = found.communication - self.communication
            return replace(found, step=found.local + self.seen + more + max(self.step - self.local - self.seen, 0))
        if name == "fixed":
            one, alone, local = (seconds + wait_s for seconds in (self.one, self.alone, self.local))
            return replace(self, one=one, alone=alone, local=local, step=self.step + wait_s)
        if name == "heard":  # only the whole step has it, so the other times of the same run are the better estimate
            return replace(found, step=found.local + max(self.step - self.local, 0) + wait_s)
        local = min(max(found.local, self.local), self.local + wait_s)
        return replace(self, local=local, step=self.step + wait_s)

    def with_passes(self, whole: float, half: float, both: float) -> Times:
        one, alone, local, step = self.one + whole, self.alone + half, self.local + both, self.step + both
        return replace(self, one=one, alone=alone, local=local, step=step)


def factors_of(measured: Waterfall | None) -> Factors:
    return {factor.name: factor.value for factor in measured.factors} if measured else {}


def expected(name: str, plain: Waterfall | None, found: Waterfall, alone: Alone) -> Factors:
    """The expected factors; factors without a prediction are left out."""
    exact = Estimate(value=1.0)
    if name in MICRO_BATCHES:
        own, busy = Times.of(found), 1 - waterfall.idle_share(DEVICES, MICRO_BATCHES[name])
        slower = own.local / (own.local / busy + own.communication)
        must = Estimate(value=(busy + slower) / 2, lo=slower, hi=busy)
        return {BUBBLE: must, **dict.fromkeys((STAGE_WORK, CONTENTION, UNEXPLAINED), exact)}
    assert plain is not None
    before = Times.of(plain)
    noise = {each: times(value, Estimate(value=value.value), -1) for each, value in factors_of(plain).items()}
    if name == "memory":
        every = [before.with_passes(*seconds).factors() for seconds in alone.passes]
        values = {each: interval(sorted(one[each] for one in every)) for each in every[0]}
    else:
        added = before.with_loss(name, Times.of(found), alone.wait_s).factors()
        if name == "heard":
            added = {**before.factors(), UNEXPLAINED: added[UNEXPLAINED]}
        values = {each: Estimate(value=value) for each, value in added.items()}
    return {each: times(value, noise.get(each, exact)) for each, value in values.items()}


def product(factors: Factors, names: tuple[str, ...]) -> Estimate:
    """A factor that is left out is 1."""
    found = Estimate(value=1.0)
    for name in names:
        found = times(found, factors.get(name, Estimate(value=1.0)))
    return found


def times(left: Estimate, right: Estimate, power: int = 1) -> Estimate:
    """left x right^power for independent estimates: relative half-widths add in quadrature."""
    value = left.value * right.value**power
    known = [each for each in (left, right) if each.has_interval]
    half = math.sqrt(sum(math.log(each.hi / each.lo) ** 2 for each in known)) / 2
    ends = {"lo": value * math.exp(-half), "hi": value * math.exp(half)} if known else {}
    return Estimate(value=value, **ends)


def interval(ordered: Sequence[float]) -> Estimate:
    """The median of values with its 95 % interval by order statistics."""
    rank = int(stats.binom.ppf(0.025, len(ordered), 0.5))
    return Estimate(value=ordered[len(ordered) // 2], lo=ordered[max(rank - 1, 0)], hi=ordered[min(-rank, -1)])


def judge_built_in(found: Estimate, wanted: Estimate, without: float) -> str:
    """without: the value without the loss."""
    if not found.has_interval:
        return "cannot tell"
    if not _as_expected(found, wanted):
        return "MISSED"
    ratio = times(found, wanted, -1)
    return "cannot tell" if ratio.lo <= without / wanted.value <= ratio.hi else "FOUND"


def judge_other(found: Estimate, wanted: Estimate) -> str:
    return "as expected" if _as_expected(found, wanted) else "MOVED"


def _as_expected(found: Estimate, wanted: Estimate) -> bool:
    ratio = times(found, wanted, -1)
    return ratio.lo <= 1 <= ratio.hi or abs(found.value - wanted.value) <= NEAR


def lines(name: str, measured: Waterfall, plain: Waterfall | None, alone: Alone = Alone()) -> list[Line]:
    """The factors of one run: first those of the loss, then all others."""
    wanted, found, before = expected(name, plain, measured, alone), factors_of(measured), factors_of(plain)
    made: list[Line] = []
    for into in BUILT_IN[name]:
        own = product(before, into), product(wanted, into), product(found, into)
        made.append((" x ".join(into), *own, judge_built_in(own[2], own[1], own[0].value)))
    named = {factor for into in BUILT_IN[name] for factor in into}
    for factor in [each for each in NAMES if each not in named and (each in found or each in wanted)]:
        value, must = found.get(factor, Estimate(value=1.0)), wanted.get(factor)
        made.append((factor, before.get(factor), must, value, judge_other(value, must) if must else ""))
    return made
