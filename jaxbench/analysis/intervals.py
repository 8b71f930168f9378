# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals for measurements taken in interleaved rounds.

A round visits every point once, so a disturbance of the machine (clock speed, another job) hits all points of a round:
blocks of one round are not independent, rounds are. So the bootstrap resamples whole rounds (one-stage cluster
bootstrap). It uses the *same* resampled rounds for every point, so that a ratio of two points keeps their pairing. A
draw is a vector of round multiplicities, by which the blocks are weighted. A continued run counts its rounds anew, so
the resampled unit is (session, round).

Intervals are percentile intervals, expanded for few rounds. The plain percentile interval of k independent units is too
narrow by sqrt((k-1)/k), and uses a normal quantile instead of a Student one (Hesterberg 2015, doi:10.1080/
00031305.2015.1089789). The level is adjusted to correct both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

DRAWS = 2000
MIN_ROUNDS = 3
_CHUNKS = 64
Unit = Any  # of resampling, hashable and ordered: (session, round) in a run


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its 95 % interval. NaN means unknown; `lo` and `hi` are unknown together."""

    value: float = math.nan
    lo: float = math.nan
    hi: float = math.nan

    @property
    def known(self) -> bool:
        return math.isfinite(self.value)

    @property
    def has_interval(self) -> bool:
        return math.isfinite(self.lo) and math.isfinite(self.hi)

    def alone(self) -> Estimate:
        """The value without its interval."""
        return Estimate(value=self.value)

    def times(self, factor: float) -> Estimate:
        """Value and ends times a `factor` > 0."""
        return Estimate(value=factor * self.value, lo=factor * self.lo, hi=factor * self.hi)

    def under(self, work: float) -> Estimate:
        """`work` over this number, which swaps the ends. Without an interval if the lower end is not above 0."""
        if not (self.has_interval and self.lo > 0):
            return Estimate(value=work / self.value)
        return Estimate(value=work / self.value, lo=work / self.hi, hi=work / self.lo)


UNKNOWN = Estimate()


class Draws:
    """The resampled rounds of one run.

    Attributes:
      units: all (session, round) of the run, sorted.
      weights: (draws, R) float32, how often each draw contains each unit; every row sums to R.
    """

    def __init__(self, units: Iterable[Unit], *, draws: int = DRAWS, seed: int = 0):
        self.units = sorted(set(units))
        self._column = {unit: column for column, unit in enumerate(self.units)}
        count = len(self.units)
        shape = (draws, count)
        if count == 0:
            self.weights = np.zeros(shape)
        else:
            random = np.random.default_rng(seed)
            self.weights = random.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float32)

    def of(self, units: Sequence[Unit]) -> np.ndarray:
        """The weights of the given units, in their order. Returns (draws, len(units))."""
        if list(units) == self.units:
            return self.weights
        return self.weights[:, [self._column[unit] for unit in units]]


def weighted_median(values: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The median of each draw, as if each value were repeated as often as the draw contains its round.

    Args:
      values: (n,) pooled samples of one point.
      owners: (n,) int, which column of `weights` each sample belongs to.
      weights: (draws, k) multiplicities, whole numbers (exact in float32 up to 16 million samples).

    Returns:
      (draws,): the mean of the two middle order statistics; NaN for a draw without any of the rounds.
    """
    order = np.argsort(values, kind="stable")
    values, owners = values[order], owners[order]
    chunk = -(-len(values) // _CHUNKS)
    # Two levels for speed: first the chunk of sorted samples that contains the median of a draw, then the sample in it.
    counts = np.zeros((-(-len(values) // chunk) + 1, weights.shape[1]), dtype=weights.dtype)
    np.add.at(counts, (np.arange(len(values)) // chunk + 1, owners), 1)
    first, bounds, total = _bracket(np.cumsum(counts, axis=0), weights)
    middles = [
        _order_statistic(rank, values, owners, weights=weights, bounds=bounds, first=first, chunk=chunk)
        for rank in ((total - 1) // 2, total // 2)
    ]
    return np.where(total > 0, (middles[0] + middles[1]) / 2, np.nan)


def _bracket(counts: np.ndarray, weights: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """The chunks in the middle, in which all draws have their medians.

    Args:
      counts: (chunks + 1, k), how many samples of each round are before each chunk boundary.

    Returns:
      The first chunk of the bracket, (draws, m + 1) weights before its boundaries, and (draws,) total weights.
    """
    last, total = len(counts) - 1, _dot(weights, counts[-1])
    middle = last // 2
    offset = np.abs(_dot(weights, counts[middle]) - total / 2).max()
    reach = 1 + int(offset * last / max(1.0, total.max()))
    while True:
        first, end = max(0, middle - reach), min(last, middle + reach)
        below = first == 0 or (_dot(weights, counts[first]) <= (total - 1) // 2).all()
        above = end == last or (_dot(weights, counts[end]) > total // 2).all()
        if below and above:
            return first, np.stack([_dot(weights, counts[at]) for at in range(first, end + 1)], axis=1), total
        reach *= 2


def _dot(weights: np.ndarray, column: np.ndarray) -> np.ndarray:
    """weights @ column on one thread: on a busy machine, the threads of a BLAS mostly wait for each other."""
    return np.einsum("dk,k->d", weights, column)


def _order_statistic(
    rank: np.ndarray,
    values: np.ndarray,
    owners: np.ndarray,
    *,
    weights: np.ndarray,
    bounds: np.ndarray,
    first: int,
    chunk: int,
) -> np.ndarray:
    """The value at 0-based `rank` of each draw's sorted, repeated samples. Shapes as in `_bracket`."""
    draws = np.arange(len(rank))
    rank = np.maximum(rank, 0)[:, None]
    which = np.minimum((bounds[:, 1:] <= rank).sum(axis=1), bounds.shape[1] - 2)
    index = (first + which)[:, None] * chunk + np.arange(chunk)
    inside = index < len(values)
    index = np.minimum(index, len(values) - 1)
    running = bounds[draws, which][:, None] + np.cumsum(weights[draws[:, None], owners[index]] * inside, axis=1)
    return values[index[draws, np.minimum((running <= rank).sum(axis=1), chunk - 1)]]


def weighted_ratio(numerator: np.ndarray, denominator: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The ratio of totals of each draw. numerator, denominator: (k,) sums per round; weights: (draws, k)."""
    totals = numerator.sum(), denominator.sum()  # divided out first, so that float32 keeps six digits
    top, bottom = (
        _dot(weights, (sums / total).astype(weights.dtype))
        for sums, total in zip((numerator, denominator), totals, strict=True)
    )
    return np.divide(top, bottom, out=np.full(len(weights), np.nan), where=bottom > 0) * (totals[0] / totals[1])


def estimate(value: float, draws: np.ndarray, *, rounds: int, level: float = 0.95) -> Estimate:
    """Puts a `level` interval around `value`.

    Args:
      value: the statistic of the data itself.
      draws: the statistic of each draw; NaN where undefined.
      rounds: how many rounds the statistic uses; below `MIN_ROUNDS` there is no interval.
    """
    draws = draws[np.isfinite(draws)]
    if rounds < MIN_ROUNDS or len(draws) == 0 or not math.isfinite(value):
        return Estimate(value=value)
    wide = math.sqrt(rounds / (rounds - 1)) * stats.t.ppf((1 + level) / 2, rounds - 1)
    tail = stats.norm.cdf(-wide)
    lo, hi = np.quantile(draws, [tail, 1 - tail])
    # With very few rounds, the median of the data can be outside the quantiles of its draws.
    return Estimate(value=value, lo=min(float(lo), value), hi=max(float(hi), value))
