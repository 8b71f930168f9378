# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How uncertain a mean over rounds is that several processes measured in turns: docs/STATISTICS.md, Dense rounds.

Two things make such rounds dependent. Rounds of one process share what that process differs by, and rounds that are
close in time share what else the machine did. So the variance of a mean has a part between processes and a part between
*batches* of time (two-way clustering, Cameron, Gelbach and Miller 2011, doi:10.1198/jbes.2010.07136). Each process and
each batch has one random factor that all points of a run share: what moves two points alike cancels in their ratio.

What a fast noise adds is in both parts and would count twice. How much of the variance between batches is left without
it is found once for the run, from what points of a round do not share, and all points use it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

# A value outside of these quantiles by more than FENCE times their distance counts as if it were at the fence. But a
# neighbour that slows down more than a twentieth of the rounds is no outlier: it belongs to the mean.
TAIL, FENCE = 0.05, 0.5
# Fewer batches have a large Student quantile; more are too short to contain the noise that they should separate.
BATCHES = 7
# Batches are too short for noise that lasts as long as they do: neighbours share it, and their means differ by too
# little. So the variance between batches, less that of fast noise, is widened as noise of this time constant needs.
FORGOTTEN_S = 14.0
Series = tuple[np.ndarray, np.ndarray]  # of a point: the columns of its rounds, and the logarithm of its time in each


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean over rounds. loadings: (processes + batches,), by how much each random factor moves it: a draw is value +
    factors @ loadings, with factors of standard normal numbers, and its percentiles are the 95 % interval."""

    value: float
    loadings: np.ndarray


def half_width(top: Mean, bottom: Mean) -> float:
    """Half the width of the interval of the difference of two means of the same rounds."""
    return float(special.ndtri(0.975) * np.linalg.norm(top.loadings - bottom.loadings))


@dataclass(frozen=True, kw_only=True)
class TwoWay:
    """The rounds of a run in order of time.

    Attributes:
      process: (R,) int. batch: (R,) int.
      common: (R,) what the points of a round share, as a deviation of the logarithm of their times.
      lasting: squared factor on the spread between batches of what points share. own: of what they do not.
      alike: the mean square of the difference of successive rounds over twice the variance (von Neumann): 1 if noise
        does not outlast a round, and less the longer it lasts.
    """

    process: np.ndarray
    batch: np.ndarray
    common: np.ndarray
    lasting: float
    own: float
    alike: float

    def only(self, columns: Sequence[int]) -> TwoWay:
        """Of some of the rounds."""
        of = list(columns)
        return dataclasses.replace(self, process=self.process[of], batch=self.batch[of], common=self.common[of])

    def mean(self, columns: np.ndarray, values: np.ndarray, *, by_process: bool, times: float = 1.0) -> Mean:
        """The mean of one value a round. by_process: there are enough processes to show how they differ. times: a
        further factor on the width."""
        value, each = influences(values)
        shared = self.common[columns] / len(columns)
        shared = shared - shared.mean()
        process, batch = self.process[columns], self.batch[columns]
        # `own` assumes that the variance between processes is added. Where it is not, batches carry all of the
        # variance.
        own = self.own if by_process else max(self.own, _student(batch))
        between = sums(each, process, int(self.process.max()) + 1) * math.sqrt(_student(process)) * by_process
        # What points of a round share cancels in a ratio, and what they do not share adds up. So both parts have
        # loadings of their own on the same factor of a batch.
        apart = sums(each - shared, batch, int(self.batch.max()) + 1) * math.sqrt(own)
        together = sums(shared, batch, int(self.batch.max()) + 1) * math.sqrt(self.lasting)
        # Student's quantiles are already in the loadings. Dividing by the normal one makes the percentiles of normal
        # draws Student's interval.
        loadings = np.concatenate([between, apart + together]) * times / special.ndtri(0.975)
        return Mean(value=value, loadings=loadings)


def fit(process: np.ndarray, series: Sequence[Series] = (), seconds: float = 0.0) -> TwoWay:
    """The layout of a run.

    Args:
      process: (R,) int, of the rounds in order of time.
      series: of the points that may claim something. Without any, no part of the variance is left out.
      seconds: from the first round to the last; 0: unknown.
    """
    rounds = len(process)
    # At least two rounds in a batch, or a batch would only repeat what a round says.
    count = max(1, min(BATCHES, rounds // 2))
    batch = np.arange(rounds) * count // rounds
    lasting = _student(batch) / _seen(seconds / count or BATCHES)
    # Deviations without outliers: a single interrupted round would dominate every estimate below.
    deviations = [(columns, len(values) * influences(values)[1]) for columns, values in series if len(values) > 1]
    common = _common(rounds, deviations)
    own = _own(process, batch, [(columns, found - common[columns]) for columns, found in deviations], lasting)
    alike = _alike([_without(process[columns], found) for columns, found in deviations])
    return TwoWay(process=process, batch=batch, common=common, lasting=lasting, own=own, alike=alike)


def influences(values: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of values without outliers, and (n,) by how much each value moves it. They add up to 0."""
    ordered, outside = np.sort(values), int(TAIL * len(values) + 0.5)
    low, high = ordered[outside], ordered[-1 - outside]
    fence = FENCE * (high - low)
    clipped = np.clip(values, low - fence, high + fence)
    mean = clipped.mean()
    return float(mean), (clipped - mean) / len(values)


def sums(each: np.ndarray, cluster: np.ndarray, count: int) -> np.ndarray:
    """(count,) the sum in each cluster, as large as the variance of their sum needs it where clusters are few."""
    here = len(np.unique(cluster))
    return np.bincount(cluster, each, minlength=count) * (math.sqrt(here / (here - 1)) if here > 1 else 1.0)


def _student(cluster: np.ndarray) -> float:
    """The squared quantile for a variance between these clusters."""
    return float(special.stdtrit(max(1, len(np.unique(cluster)) - 1), 0.975) ** 2)


def _seen(batch_s: float) -> float:
    """The share of the variance of forgotten noise that means of batches of `batch_s` seconds show."""
    share = FORGOTTEN_S / batch_s
    return 1 - share * (1 - math.exp(-1 / share))


def _common(rounds: int, deviations: Sequence[Series]) -> np.ndarray:
    """(R,) the mean deviation of the points of each round; 0 where there is one point only."""
    total, points = np.zeros(rounds), np.zeros(rounds)
    for columns, found in deviations:
        total[columns] += found
        points[columns] += 1
    # A round with one point cannot tell what its points share, so all of its deviation counts as the point's own.
    return np.where(points > 1, total / np.maximum(points, 1), 0.0)


def _without(cluster: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values less the mean of each cluster."""
    sizes = np.maximum(np.bincount(cluster), 1)
    return values - (np.bincount(cluster, values) / sizes)[cluster]


def _alike(series: Sequence[np.ndarray]) -> float:
    square = sum(float((each**2).mean()) for each in series)
    return sum(float((np.diff(each) ** 2).mean()) for each in series) / (2 * square) if square > 0 else 1.0


def _own(process: np.ndarray, batch: np.ndarray, series: Sequence[Series], lasting: float) -> float:
    """The squared factor on the spread between batches that makes the variances of all `series` together what they
    should be: that between processes and, of that between batches, what exceeds the variance of independent rounds.
    It is never below that between batches alone."""
    if not series:
        return lasting
    between = apart = alone = 0.0
    for columns, values in series:
        each = (values - values.mean()) / len(values)
        between += float((sums(each, process[columns], int(process.max()) + 1) ** 2).sum())
        apart += float((sums(each, batch[columns], int(batch.max()) + 1) ** 2).sum())
        alone += float((each**2).sum() * len(each) / (len(each) - 1))
    by_process = _student(process) * between
    needed = max(by_process + lasting * max(0.0, apart - alone), _student(batch) * apart)
    return (needed - by_process) / apart if apart > 0 else 0.0
