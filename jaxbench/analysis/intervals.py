# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bootstrap confidence intervals for interleaved rounds, measured by several processes in sequence or in turns.

A round visits every point once, so a disturbance of the machine (clock speed, another job) hits all points of a round.
The blocks of one round are therefore not independent. Neither are the rounds of one process, which share its memory
layout and the placement of its threads. So the bootstrap resamples whole *processes* if there are MIN_PROCESSES, and
whole rounds otherwise (one-stage cluster bootstrap). It uses the *same* resampled units for every point, so a ratio of
two points keeps their pairing. A bootstrap sample (a draw) is a vector of multiplicities. A continued run numbers its
rounds from the start again, so a round is identified by (session, round).

With k resampled units, percentiles are too narrow: by sqrt((k - 1) / k), and because they follow a normal quantile
instead of Student's t (Hesterberg 2015, doi:10.1080/00031305.2015.1089789). So each draw is moved away from the value
by the factor that corrects both. One or two processes cannot show how processes differ, so that variation (`Spread`) is
added to their draws. Each point gets its own: the points of one process were seen to differ almost as much as the
points of two processes.
The interval of any number that is computed from draws is then given by the percentiles of that number's draws.

If processes take turns, a disturbance of a few seconds hits rounds of several processes, and resampling processes alone
gives intervals that are too narrow. The draws of such *alternating* rounds have random factors for processes and for
batches of time (`two_way`).
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
MIN_ROUNDS = 5  # with fewer rounds, no resampling covers 95 %
MIN_PROCESSES = 3  # with at least this many, the data themselves show how processes differ
# Optional stopping makes intervals too narrow: a run that stops once an interval is narrow often stops when chance made
# it too narrow. Widened by this factor, its intervals cover 95 % again (benchmarks/interval_coverage.py,
# docs/STATISTICS.md).
LOOKED = 1.1
_CHUNKS = 64
Unit = Any  # a unit of resampling, hashable and ordered: (session, round) in a run


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A number with its 95 % confidence interval. NaN means unknown; `lo` and `hi` are unknown together."""

    value: float = math.nan
    lo: float = math.nan
    hi: float = math.nan

    # Unknown equals unknown. From Python 3.13 on, the generated method would compare NaN with NaN, which never equal.
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
        """The value and both ends, multiplied by a `factor` > 0."""
        return Estimate(value=factor * self.value, lo=factor * self.lo, hi=factor * self.hi)

    def under(self, work: float) -> Estimate:
        """`work` over this number, with the ends swapped. It has no interval if the lower end is not above 0."""
        if not (self.has_interval and self.lo > 0):
            return Estimate(value=work / self.value)
        return Estimate(value=work / self.value, lo=work / self.hi, hi=work / self.lo)


UNKNOWN = Estimate()


class Draws:
    """The bootstrap samples of one run: its resampled rounds and processes.

    Attributes:
      units: all (session, round) of the run, sorted. process: (R,) int, which process measured each unit.
      spread: the variation between processes, used for points that fewer than MIN_PROCESSES measured.
      weights: (draws, R) float32, how often each draw contains each unit: rounds resampled within each process.
      process_weights: (draws, processes) float32, the same if processes are resampled.
      two_way: how alternating rounds depend on each other; None if processes do not take turns.
    """

    def __init__(
        self, units: Iterable[Unit], workers: Iterable[tuple[Unit, str]] = (), *, spread: Spread = ASSUMED,
        draws: int = DRAWS, seed: int = 0, looked: bool = False,
    ):  # fmt: skip
        """workers: (unit, process that measured a point in it). Units that share a process belong together; without
        workers, all units are of one process. draws: the number of bootstrap samples. looked: whether the intervals
        decided how many rounds to take.
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
        """Separate draws for some of the units."""
        workers = [(unit, worker) for unit, worker in self._workers if unit in units]
        some = Draws(units, workers, spread=self.spread, draws=len(self.weights), seed=self._seed, looked=self.looked)
        some.two_way = self.two_way and self.two_way.only(self._columns(some.units))
        return some

    def fit(self, series: Iterable[tuple[Sequence[Unit], np.ndarray]], seconds: float) -> None:
        """Estimates how alternating rounds depend on each other. series: for each point that may support a claim, its
        units and the logarithm of its time in each. seconds: from the first round to the last."""
        if self.two_way is not None:
            found = [(np.array(self._columns(units)), values) for units, values in series]
            self.two_way = two_way.fit(self.process, found, seconds)

    def mean(self, values: np.ndarray, units: Sequence[Unit]) -> two_way.Mean:
        """The mean of one value per unit, in alternating rounds."""
        assert self.two_way is not None
        by_process = self.processes(units) >= MIN_PROCESSES
        times = LOOKED if self.looked else 1.0
        return self.two_way.mean(np.array(self._columns(units)), values, by_process=by_process, times=times)

    def _drawn(self, mean: two_way.Mean) -> np.ndarray:
        """(draws,): the draws of a mean over alternating rounds."""
        if self._factors.shape[1] != len(mean.loadings):  # QR makes the sample covariance exactly the identity
            normal = self._random.standard_normal((len(self.weights), len(mean.loadings)))
            orthogonal, _ = np.linalg.qr(normal - normal.mean(axis=0))
            self._factors = orthogonal * math.sqrt(len(normal))
        return mean.value + np.einsum("df,f->d", self._factors, mean.loadings)

    def processes(self, units: Sequence[Unit]) -> int:
        """The number of processes that measured these units."""
        return len(np.unique(self.process[self._columns(units)]))

    def of(self, units: Sequence[Unit]) -> np.ndarray:
        """How often each draw contains each of the given units, in their order. Returns (draws, len(units))."""
        columns = self._columns(units)
        by_process = self.processes(units) >= MIN_PROCESSES
        return self.process_weights[:, self.process[columns]] if by_process else self.weights[:, columns]

    def centre(
        self, samples: np.ndarray, owners: np.ndarray, units: Sequence[Unit], *, signed: bool = False
    ) -> tuple[float, np.ndarray]:
        """(value, draws): the geometric mean over processes of each one's median, for the data and for each draw. In
        alternating rounds: the geometric mean over rounds of the median of each round, without outliers.

        The draws vary as much as these processes do. `differing` adds the variation that one or two cannot show.

        Args:
          samples: (n,) values above 0. owners: (n,) int, which of `units` each belongs to.
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
        """The draws of a statistic of these units, widened for the small number of resampled units."""
        processes = self.processes(units)
        count = processes if processes >= MIN_PROCESSES else len(units) - processes + 1
        return widened(value, drawn, count, LOOKED if self.looked else 1.0)

    def differing(self, name: str, units: Sequence[Unit]) -> np.ndarray:
        """(draws,) random factors by which another process would differ at `name`; 1 if processes are resampled."""
        processes = self.processes(units)
        if processes >= MIN_PROCESSES:
            return np.ones(len(self.weights))
        normal = np.random.default_rng([self._seed, zlib.crc32(name.encode())]).standard_normal(len(self.weights))
        return np.exp(np.clip(self.spread.sd / math.sqrt(max(1, processes)) * normal / self._doubt, -5, 5))

    def _columns(self, units: Sequence[Unit]) -> list[int]:
        return [self._column[unit] for unit in units]


def _mean(values: np.ndarray, signed: bool, shares: np.ndarray | None = None) -> np.ndarray:
    """The mean over the last axis, geometric unless signed. With shares (draws, n), the weighted mean of each draw."""
    if values.shape[-1] == 1 and shares is None:
        return values[..., 0]
    found = values if signed else np.log(values)
    mean = found.mean(axis=-1) if shares is None else np.einsum("dn,n->d", shares, found)
    return mean if signed else np.exp(mean)


def _together(units: Sequence[Unit], workers: Iterable[tuple[Unit, str]]) -> list[set[Unit]]:
    """The units in disjoint sets, such that no two sets share a process. Without workers, all units are in one set."""
    by_worker: dict[str, set[Unit]] = {}
    for unit, worker in workers:
        by_worker.setdefault(worker, set()).add(unit)
    sets: list[set[Unit]] = []
    for members in by_worker.values():
        sets = [*(each for each in sets if not each & members), members.union(*(s for s in sets if s & members))]
    rest = set(units).difference(*sets)
    return sorted([*sets, rest] if rest else sets, key=min)


def widened(value: float, drawn: np.ndarray, count: int, times: float = 1.0) -> np.ndarray:
    """The draws of a statistic, moved away from its value.

    Their percentiles then give Student's interval for a mean of `count` resampled units, wider by the factor `times`.
    The scale is logarithmic if all draws are above 0.
    """
    if count < 2:
        return drawn
    # 0.98 instead of 0.975, because the percentiles of a mean of few units are too narrow
    # (benchmarks/interval_coverage.py).
    factor = times * math.sqrt(count / (count - 1)) * special.stdtrit(count - 1, 0.98) / special.ndtri(0.975)
    if value > 0 and (drawn[np.isfinite(drawn)] > 0).all():
        return value * np.exp(np.clip(factor * np.log(drawn / value), -50, 50))
    return value + factor * (drawn - value)


def weighted_median(values: np.ndarray, owners: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The median of each draw: of all samples, each repeated as often as the draw contains its round.

    Args:
      values: (n,) pooled samples of one point.
      owners: (n,) int, which column of `weights` each sample belongs to.
      weights: (draws, k) multiplicities, whole numbers (exact in float32 up to 16 million samples).

    Returns:
      (draws,): the mean of the two middle order statistics; NaN for a draw that contains none of the rounds.
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
    """The range of middle chunks that contains the median of every draw.

    Args:
      counts: (chunks + 1, k), the number of samples of each round before each chunk boundary.

    Returns:
      The first chunk of the range, (draws, m + 1) weights before its boundaries, and (draws,) total weights.
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
    """weights @ column on one thread. On a busy machine, the threads of a BLAS would mostly wait for each other."""
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
    """The value at the 0-based `rank` among each draw's sorted, repeated samples. Shapes as in `_bracket`."""
    draws = np.arange(len(rank))
    rank = np.maximum(rank, 0)[:, None]
    which = np.minimum((bounds[:, 1:] <= rank).sum(axis=1), bounds.shape[1] - 2)
    index = (first + which)[:, None] * chunk + np.arange(chunk)
    inside = index < len(values)
    index = np.minimum(index, len(values) - 1)
    running = bounds[draws, which][:, None] + np.cumsum(weights[draws[:, None], owners[index]] * inside, axis=1)
    return values[index[draws, np.minimum((running <= rank).sum(axis=1), chunk - 1)]]


def estimate(value: float, draws: np.ndarray, *, rounds: int) -> Estimate:
    """`value` with its 95 % confidence interval: percentiles of its draws, which must be `widened`.

    Args:
      value: the statistic of the data itself.
      draws: (draws,) the statistic of each draw; NaN where undefined.
      rounds: the number of rounds that the statistic uses. Below `MIN_ROUNDS` there is no interval.
    """
    draws = draws[np.isfinite(draws)]
    if rounds < MIN_ROUNDS or len(draws) == 0 or not math.isfinite(value):
        return Estimate(value=value)
    lo, hi = np.quantile(draws, [0.025, 0.975])
    return Estimate(value=value, lo=min(float(lo), value), hi=max(float(hi), value))
