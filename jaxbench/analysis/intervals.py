# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals for measurements in interleaved rounds, by several processes one after the other or in turns.

A round visits every point once, so a disturbance of the machine (clock speed, another job) hits all points of a round:
blocks of one round are not independent. Nor are the rounds of one process, which share its memory layout and the
placement of its threads. So the bootstrap resamples whole *processes* where there are MIN_PROCESSES, and whole rounds
otherwise (one-stage cluster bootstrap). It uses the *same* resampled units for every point, so that a ratio of two
points keeps their pairing. A draw is a vector of multiplicities. A continued run counts its rounds anew, so a round is
identified by (session, round).

Few resampled units spread too little: by sqrt((k - 1) / k), and with a normal quantile instead of a Student one
(Hesterberg 2015, doi:10.1080/00031305.2015.1089789). So each draw is moved away from the value by the factor that
corrects both. One or two processes cannot show how processes differ: that variation (`Spread`) is added to their draws,
for each point its own, because the points of one process were seen to differ almost as those of two do.
An interval of any number that is computed from draws is then the percentiles of that number's draws.

Where processes take turns, a neighbour of a few seconds reaches rounds of several, and resampling processes alone does
not cover. Draws of such *alternating* rounds have random factors for processes and for batches of time (`two_way`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special  # scipy.stats takes a second to import

from jaxbench.analysis import two_way
from jaxbench.analysis.spread import ASSUMED, Spread

DRAWS = 2000
MIN_ROUNDS = 5  # of fewer, no resampling covers 95 %
MIN_PROCESSES = 3  # from these on, they show themselves how they differ
# Whoever stops as soon as an interval is narrow stops more often where chance made it too narrow. By so much wider, the
# intervals of such a run cover 95 % again (benchmarks/interval_coverage.py, docs/STATISTICS.md).
LOOKED = 1.1
_CHUNKS = 64
Unit = Any  # of resampling, hashable and ordered: (session, round) in a run


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A number with its 95 % interval. NaN means unknown; `lo` and `hi` are unknown together."""

    value: float = math.nan
    lo: float = math.nan
    hi: float = math.nan

    # Unknown equals unknown. From Python 3.13 on, the generated method compares NaN with NaN, which are never equal.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        pairs = ((self.value, other.value), (self.lo, other.lo), (self.hi, other.hi))
        return all(a == b or (a != a and b != b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(tuple(None if each != each else each for each in (self.value, self.lo, self.hi)))

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
    """The resampled rounds and processes of one run.

    Attributes:
      units: all (session, round) of the run, sorted. process: (R,) int, which process measured each.
      spread: between processes, for the points that fewer than MIN_PROCESSES measured.
      weights: (draws, R) float32, how often each draw contains each unit: rounds resampled within each process.
      process_weights: (draws, processes) float32, the same when processes are resampled.
      two_way: how alternating rounds depend on each other; None where each process has its rounds to itself.
    """

    def __init__(
        self, units: Iterable[Unit], workers: Iterable[tuple[Unit, str]] = (), *, spread: Spread = ASSUMED,
        draws: int = DRAWS, seed: int = 0, looked: bool = False,
    ):  # fmt: skip
        """workers: which process measured a point in a unit. Rounds that share one belong together, whatever the other
        points did; without any, all rounds are of one process. looked: the intervals decided how many rounds to take.
        """
        self.units, self._workers = sorted(set(units)), tuple(workers)
        self._column = {unit: column for column, unit in enumerate(self.units)}
        self.spread, self.looked, self._seed, self._random = spread, looked, seed, np.random.default_rng(seed)
        self.process = np.zeros(len(self.units), dtype=int)
        for number, members in enumerate(_together(self.units, self._workers)):
            self.process[[self._column[unit] for unit in members]] = number
        sizes = np.bincount(self.process) if self.units else np.zeros(0, dtype=int)
        self.weights = np.zeros((draws, len(self.units)), dtype=np.float32)
        for number, size in enumerate(sizes):
            self.weights[:, self.process == number] = self._multinomial(int(size))
        self.process_weights = self._multinomial(len(sizes))
        turns = np.count_nonzero(np.diff(self.process)) + 1
        self.two_way = two_way.fit(self.process) if turns > max(1, len(sizes)) else None
        self._factors = np.zeros((draws, 0))
        known = math.isinf(spread.df)  # otherwise the spread is an estimate, too
        self._doubt = np.ones(draws) if known else np.sqrt(self._random.chisquare(spread.df, draws) / spread.df)

    def _multinomial(self, count: int) -> np.ndarray:
        if count == 0:
            return np.zeros((len(self.weights), 0), dtype=np.float32)
        share = np.full(count, 1 / count)
        return self._random.multinomial(count, share, size=len(self.weights)).astype(np.float32)

    def only(self, units: Collection[Unit]) -> Draws:
        """Draws of their own for some of the units."""
        workers = [(unit, worker) for unit, worker in self._workers if unit in units]
        some = Draws(units, workers, spread=self.spread, draws=len(self.weights), seed=self._seed, looked=self.looked)
        some.two_way = self.two_way and self.two_way.only(self._columns(some.units))
        return some

    def fit(self, series: Iterable[tuple[Sequence[Unit], np.ndarray]], seconds: float) -> None:
        """Finds how alternating rounds depend on each other. series: of each point that may claim something, its units
        and the logarithm of its time in each. seconds: from the first round to the last."""
        if self.two_way is not None:
            found = [(np.array(self._columns(units)), values) for units, values in series]
            self.two_way = two_way.fit(self.process, found, seconds)

    def mean(self, values: np.ndarray, units: Sequence[Unit]) -> two_way.Mean:
        """The mean of one value a unit, in alternating rounds."""
        assert self.two_way is not None
        by_process = self.processes(units) >= MIN_PROCESSES
        times = LOOKED if self.looked else 1.0
        return self.two_way.mean(np.array(self._columns(units)), values, by_process=by_process, times=times)

    def _drawn(self, mean: two_way.Mean) -> np.ndarray:
        """The draws of a mean over alternating rounds."""
        if self._factors.shape[1] != len(mean.loadings):  # their sample covariance is exactly that of the factors
            normal = self._random.standard_normal((len(self.weights), len(mean.loadings)))
            orthogonal, _ = np.linalg.qr(normal - normal.mean(axis=0))
            self._factors = orthogonal * math.sqrt(len(normal))
        return mean.value + np.einsum("df,f->d", self._factors, mean.loadings)

    def processes(self, units: Sequence[Unit]) -> int:
        """How many processes measured these units."""
        return len(np.unique(self.process[self._columns(units)]))

    def of(self, units: Sequence[Unit]) -> np.ndarray:
        """How often each draw contains each of the given units, in their order. Returns (draws, len(units))."""
        columns = self._columns(units)
        by_process = self.processes(units) >= MIN_PROCESSES
        return self.process_weights[:, self.process[columns]] if by_process else self.weights[:, columns]

    def centre(
        self, samples: np.ndarray, owners: np.ndarray, units: Sequence[Unit], *, signed: bool = False
    ) -> tuple[float, np.ndarray]:
        """The geometric mean over processes of each one's median, of the data and (draws,) of each draw; of alternating
        rounds the geometric mean of each one's median, without outliers.

        The draws vary as these processes do: `differing` adds what one or two processes cannot show.

        Args:
          samples: (n,), above 0. owners: (n,) int, which of `units` each belongs to.
          signed: samples may be negative, and the mean is arithmetic.
        """
        if self.two_way is not None and len(units) > 1:
            each = np.array([np.median(samples[owners == number]) for number in range(len(units))])
            mean = self.mean(each if signed else np.log(each), units)
            drawn = self._drawn(mean)
            return (mean.value, drawn) if signed else (math.exp(mean.value), np.exp(drawn))
        process = self.process[self._columns(units)]
        found = np.unique(process)
        parts = [process[owners] == number for number in found]
        medians = np.array([np.median(samples[part]) for part in parts])
        if len(found) >= MIN_PROCESSES:
            shares = self.process_weights[:, found]
            with np.errstate(invalid="ignore"):
                shares = shares / shares.sum(axis=1, keepdims=True)  # NaN for a draw without any of them
            value, drawn = _mean(medians, signed), _mean(medians, signed, shares)
        else:
            weights = self.of(units)
            each = np.stack([weighted_median(samples[part], owners[part], weights) for part in parts])
            value, drawn = _mean(medians, signed), _mean(each.T, signed)
        return float(value), self.widened(float(value), drawn, units)

    def widened(self, value: float, drawn: np.ndarray, units: Sequence[Unit]) -> np.ndarray:
        """Draws of a statistic of these units, as far from its value as few resampled units make it uncertain."""
        processes = self.processes(units)
        count = processes if processes >= MIN_PROCESSES else len(units) - processes + 1
        return widened(value, drawn, count, LOOKED if self.looked else 1.0)

    def differing(self, name: str, units: Sequence[Unit]) -> np.ndarray:
        """(draws,) factors by which another process would differ, the point's own; 1 where processes are resampled."""
        processes = self.processes(units)
        if processes >= MIN_PROCESSES:
            return np.ones(len(self.weights))
        normal = np.random.default_rng([self._seed, zlib.crc32(name.encode())]).standard_normal(len(self.weights))
        return np.exp(np.clip(self.spread.sd / math.sqrt(max(1, processes)) * normal / self._doubt, -5, 5))

    def _columns(self, units: Sequence[Unit]) -> list[int]:
        return [self._column[unit] for unit in units]


def _mean(values: np.ndarray, signed: bool, shares: np.ndarray | None = None) -> np.ndarray:
    """The mean over the last axis, geometric unless signed; with `shares`, (draws, n), that of each draw."""
    if values.shape[-1] == 1 and shares is None:
        return values[..., 0]
    found = values if signed else np.log(values)
    mean = found.mean(axis=-1) if shares is None else np.einsum("dn,n->d", shares, found)
    return mean if signed else np.exp(mean)


def _together(units: Sequence[Unit], workers: Iterable[tuple[Unit, str]]) -> list[set[Unit]]:
    """The units in disjoint sets, of which no two share a process; all in one without any process."""
    by_worker: dict[str, set[Unit]] = {}
    for unit, worker in workers:
        by_worker.setdefault(worker, set()).add(unit)
    sets: list[set[Unit]] = []
    for members in by_worker.values():
        sets = [*(each for each in sets if not each & members), members.union(*(s for s in sets if s & members))]
    rest = set(units).difference(*sets)
    return sorted([*sets, rest] if rest else sets, key=min)


def widened(value: float, drawn: np.ndarray, count: int, times: float = 1.0) -> np.ndarray:
    """Draws of a statistic, moved away from its value so that their percentiles are those that `count` resampled units
    allow, Student's interval for a mean, and by a further factor. On the logarithmic scale if all are above 0."""
    if count < 2:
        return drawn
    # 0.98 and not 0.975: the percentiles of a mean of few units fall short (benchmarks/interval_coverage.py).
    factor = times * math.sqrt(count / (count - 1)) * special.stdtrit(count - 1, 0.98) / special.ndtri(0.975)
    if value > 0 and (drawn[np.isfinite(drawn)] > 0).all():
        return value * np.exp(np.clip(factor * np.log(drawn / value), -50, 50))
    return value + factor * (drawn - value)


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


def estimate(value: float, draws: np.ndarray, *, rounds: int) -> Estimate:
    """Puts the 95 % interval around `value`: percentiles of its draws, which must be `widened`.

    Args:
      value: the statistic of the data itself.
      draws: the statistic of each draw; NaN where undefined.
      rounds: how many rounds the statistic uses; below `MIN_ROUNDS` there is no interval.
    """
    draws = draws[np.isfinite(draws)]
    if rounds < MIN_ROUNDS or len(draws) == 0 or not math.isfinite(value):
        return Estimate(value=value)
    lo, hi = np.quantile(draws, [0.025, 0.975])
    return Estimate(value=value, lo=min(float(lo), value), hi=max(float(hi), value))
