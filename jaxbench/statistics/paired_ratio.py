# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ratios and differences of times over the rounds that rows share, so that drift cancels. Also an unbiased best row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate, Unit, estimate
from jaxbench.statistics.timing import TimedPoint, Timing, centre, samples_of

R = TypeVar("R", bound="Timed")
MIN_SPLIT = 4  # with at least this many rounds, one half selects and the other half measures


class Timed(Protocol):
    """A row or an arm: a point and its timing. The timing may use rounds that other points do not have."""

    @property
    def point(self) -> TimedPoint: ...

    @property
    def timing(self) -> Timing: ...


@dataclass(frozen=True, kw_only=True)
class SharedTimes:
    """Step times of several rows over the rounds that they share.

    Attributes:
      step_s: (rows,) seconds; over all rounds of each row if fewer than MIN_ROUNDS are shared.
      draws: (rows, draws) the same for each bootstrap sample.
      rounds: the number of shared rounds. Below MIN_ROUNDS, statistics of these times have no interval.
    """

    step_s: np.ndarray
    draws: np.ndarray
    rounds: int

    def estimate(self, value: float, draws: np.ndarray) -> Estimate:
        """A statistic of these times with its 95 % interval."""
        return estimate(value, draws, rounds=self.rounds)

    def ratio(self) -> Estimate:
        """The first time over the second."""
        return self.estimate(self.step_s[0] / self.step_s[1], self.draws[0] / self.draws[1])


def shared_units(rows: Sequence[Timed]) -> set[Unit]:
    """The rounds, as (session, round), that all of these rows have."""
    first, *others = [row.point.units for row in rows]
    return set(first).intersection(*others)


def times(rows: Sequence[Timed], *, own: bool = False) -> SharedTimes:
    """The shared times of measured rows of one run; they must use the same draws (docs/metrics, Intervals).

    own: intervals follow from how the shared rounds depend on each other, if processes take turns. Otherwise they take
      the factor of all rounds of the run, as the rule that ends a run does.
    """
    units, shared = [row.point.units for row in rows], shared_units(rows)
    # If all rounds are shared, the times and draws of each row are already those of the shared rounds.
    if len(shared) < MIN_ROUNDS or all(len(each) == len(shared) for each in units):
        step_s = np.array([row.timing.step_s.value for row in rows])
        return SharedTimes(step_s=step_s, draws=np.stack([r.timing.step_draws for r in rows]), rounds=len(shared))
    resampling = rows[0].timing.resampling.at(sorted(shared)) if own else rows[0].timing.resampling
    medians, _, drawn = zip(*(centre(row.point, shared, resampling) for row in rows), strict=True)
    return SharedTimes(step_s=np.array(medians), draws=np.stack(drawn), rounds=len(shared))


def ratio(top: Timed, bottom: Timed) -> Estimate:
    """The step time of `top` over the step time of `bottom`, from the rounds that both share. UNKNOWN if either has too
    few rounds for an interval.

    With fewer than MIN_ROUNDS shared rounds, such as from two sessions or jobs, drift does not cancel. Then the value
    is from all rounds, without an interval.
    """
    if not (top.timing.step_s.has_interval and bottom.timing.step_s.has_interval):
        return UNKNOWN
    return times([top, bottom]).ratio()


@dataclass(frozen=True, kw_only=True)
class Best(Generic[R]):
    """The fastest of several rows.

    rate: work per second, measured on the rounds that did not select it. note: which rounds selected and which
    measured; "" with a single candidate. optimistic: the same rounds did both, because there are few.
    """

    row: R
    rate: Estimate
    rounds: int
    note: str
    optimistic: bool = False


def best(rows: list[R], work: Callable[[R], float | None]) -> Best[R] | None:
    """The row with the most work per second, or None. work: the work of one call of a row; None: unknown.

    Every second (session, round) selects, and the other rounds measure. If processes take turns, every second turn of
    all processes selects.
    """
    rows = [row for row in rows if row.timing.step_s.known and (work(row) or 0) > 0]
    if not rows:
        return None

    def work_of(row: R) -> float:
        return float(work(row) or 0)

    units = sorted({unit for row in rows for unit in row.point.units})
    resampling = rows[0].timing.resampling
    turn = resampling.processes(units) if resampling.turns is not None else 1
    # The maximum of many noisy medians is biased upwards even if every median is unbiased, so other rounds measure it.
    # Of an odd number of rounds the extra one measures, because an interval needs rounds.
    choosing = {unit for place, unit in enumerate(units) if place // turn % 2}
    measuring = set(units) - choosing
    split = [row for row in rows if measuring & set(row.point.units) and choosing & set(row.point.units)]
    if len(rows) == 1 or len(units) < MIN_SPLIT or not split:
        winner = max(rows, key=lambda row: work_of(row) / row.timing.step_s.value)
        note = f"selected among {len(rows)} and measured on the same rounds, so probably optimistic"
        rate, rounds = winner.timing.step_s.under(work_of(winner)), winner.timing.rounds
        several = len(rows) > 1
        return Best(row=winner, rate=rate, rounds=rounds, note=note if several else "", optimistic=several)
    winner = max(split, key=lambda row: work_of(row) / float(np.median(samples_of(row.point, choosing)[0])))
    value, _, seconds = centre(winner.point, measuring, winner.timing.resampling.only(measuring))
    rounds = len(measuring & set(winner.point.units))
    rate = estimate(work_of(winner) / value, work_of(winner) / seconds, rounds=rounds)
    note = f"selected among {len(rows)} on {len(choosing)} rounds, measured on the other {rounds}"
    return Best(row=winner, rate=rate, rounds=rounds, note=note)
