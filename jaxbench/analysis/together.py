# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Times of points over the rounds that they share: in a ratio or a difference of those, drift cancels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jaxbench.analysis.intervals import MIN_ROUNDS, Draws, Estimate, estimate, weighted_median
from jaxbench.analysis.points import Point
from jaxbench.analysis.timing import Timing


class Timed(Protocol):
    """A point and its own timing, which may rest on rounds that another lacks."""

    @property
    def point(self) -> Point: ...

    @property
    def timing(self) -> Timing: ...


@dataclass(frozen=True, kw_only=True)
class Together:
    """Median step times of several points over the rounds they share.

    Attributes:
      step_s: (points,) seconds; of all rounds of each where fewer than MIN_ROUNDS are shared.
      draws: (points, draws) of the same.
      rounds: how many are shared. Below MIN_ROUNDS nothing made of these times has an interval.
    """

    step_s: np.ndarray
    draws: np.ndarray
    rounds: int

    def estimate(self, value: float, draws: np.ndarray) -> Estimate:
        """Puts the 95 % interval around a statistic of these times."""
        return estimate(value, draws, rounds=self.rounds)


def times(rows: Sequence[Timed], draws: Draws) -> Together:
    """Rows that were all measured, of one run. draws: of that run."""
    units = [row.point.units for row in rows]
    shared = set(units[0]).intersection(*units[1:])
    if len(shared) < MIN_ROUNDS or all(len(own) == len(shared) for own in units):
        step_s = np.array([row.timing.step_s.value for row in rows])
        return Together(step_s=step_s, draws=np.stack([r.timing.step_draws for r in rows]), rounds=len(shared))
    medians, drawn = zip(*(_restricted(row.point, shared, draws) for row in rows), strict=True)
    return Together(step_s=np.array(medians), draws=np.stack(drawn), rounds=len(shared))


def ratio(top: Timed, bottom: Timed, draws: Draws) -> tuple[Estimate, np.ndarray]:
    """Step time over step time, and of each draw, from the rounds that both were measured in together.

    With fewer than MIN_ROUNDS of those, drift does not cancel: the value of all rounds stands without an interval.
    """
    both = times([top, bottom], draws)
    ratios = both.draws[0] / both.draws[1]
    return both.estimate(both.step_s[0] / both.step_s[1], ratios), ratios


def _restricted(point: Point, shared: set[tuple[int, int]], draws: Draws) -> tuple[float, np.ndarray]:
    """Median seconds per step over the rounds of `shared` alone, and its draws."""
    held = [(unit, r) for unit, r in zip(point.units, point.rounds, strict=True) if unit in shared]
    owners = np.repeat(np.arange(len(held)), [len(r.block_s) for _, r in held])
    samples = np.concatenate([np.array(r.block_s) / r.steps for _, r in held])
    return float(np.median(samples)), weighted_median(samples, owners, draws.of([unit for unit, _ in held]))
