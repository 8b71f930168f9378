# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How uncertain a mean over rounds is that several processes measured in turns: docs/STATISTICS.md, Dense rounds.

Two things make such rounds dependent. Rounds of one process share what that process differs by, and rounds that are
close in time share what else the machine did. So the deviation of a round is modelled as the sum of an effect of its
process, noise that fades with time, and independent noise. How large the first two are is unknown. So the variance of a
mean is averaged over a grid of sizes, each weighted by how well it explains the rounds of the run (its restricted
likelihood, Patterson and Thompson 1971, doi:10.1093/biomet/58.3.545). The result is one factor for the run: by how much
the variance of a mean exceeds that of independent rounds.

Each round has one random factor that all points share: what moves two points alike cancels in their ratio.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

# A value outside of these quantiles by more than FENCE times their distance counts as if it were at the fence. But a
# neighbour that slows down more than a twentieth of the rounds is no outlier: it belongs to the mean.
TAIL, FENCE = 0.05, 0.5
# The grid. Standard deviations relative to the independent noise of a round, each twice the one before, from "cannot be
# seen" to "all there is". Equal weights on such a scale favour no size, and make the interval of a few processes that
# differ by much Student's. Two rounds that are this share of the run apart have 1 / e of the lasting noise in common.
# Noise that lasts longer than a third of a run can hardly be told from a constant, and nothing of it would follow.
PROCESS = (0.0, *(0.25 * 2.0**i for i in range(13)))
LASTING = tuple(0.25 * 2.0**i for i in range(7))
FADES = (1 / 48, 1 / 24, 1 / 12, 1 / 6, 1 / 3)
NOTHING_LASTS = 0.5  # the weight, before anything is measured, of noise that does not outlast a round
MOST = 64  # rounds in the covariance that is inverted: more are averaged first, because the work grows with the cube
FAMILY = ("strategy", "scaling", "arm")  # what the points of an efficiency have in common; cases have none of these
Series = tuple[np.ndarray, np.ndarray]  # of a point: the columns of its rounds, and the logarithm of its time in each


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean over rounds. loadings: (R,), by how much the random factor of each round moves it: a draw is value +
    factors @ loadings, with factors of standard normal numbers, and its percentiles are the 95 % interval."""

    value: float
    loadings: np.ndarray


def half_width(top: Mean, bottom: Mean) -> float:
    """Half the width of the interval of the difference of two means of the same rounds."""
    return float(special.ndtri(0.975) * np.linalg.norm(top.loadings - bottom.loadings))


@dataclass(frozen=True, kw_only=True)
class Turns:
    """The rounds of a run in order of time.

    Attributes:
      process: (R,) int, the process that measured each round.
      common: (R,) what the points of a round share, as a deviation of the logarithm of their times.
      shared: the variance of a mean of what points share over that of independent rounds. own: of what they do not.
      alike: the mean square of the difference of successive rounds over twice the variance (von Neumann): 1 if noise
        does not outlast a round, and less the longer it lasts.
    """

    process: np.ndarray
    common: np.ndarray
    shared: float = 1.0
    own: float = 1.0
    alike: float = 1.0

    def only(self, columns: Sequence[int]) -> Turns:
        """Of some of the rounds. How rounds depend on each other belongs to the run: some are too few to tell."""
        of = list(columns)
        return dataclasses.replace(self, process=self.process[of], common=self.common[of])

    def mean(self, columns: np.ndarray, values: np.ndarray, *, logs: bool = True, times: float = 1.0) -> Mean:
        """The mean of one value a round. logs: the values are logarithms of times. times: a further factor on the
        width."""
        value, each = influences(values)
        count = len(columns)
        # What points share is a share of their times, so it says nothing about a difference of two times.
        shared = self.common[columns] / count if logs else np.zeros(count)
        shared = shared - shared.mean()
        # What points of a round share cancels in a ratio, and what they do not share adds up. So both have factors of
        # their own on the loading of a round.
        apart = (each - shared) * math.sqrt(self.own) + shared * math.sqrt(self.shared)
        # The quantile is Student's. Dividing by the normal one makes the percentiles of normal draws its interval.
        wider = special.stdtrit(max(1, count - 1), 0.975) / special.ndtri(0.975) * math.sqrt(count / max(1, count - 1))
        loadings = np.zeros(len(self.process))
        loadings[columns] = apart * wider * times
        return Mean(value=value, loadings=loadings)


def pairs(families: Sequence[tuple[Hashable, int]]) -> list[tuple[int, int]]:
    """Which points are compared, as (point, base): those of a family with its fewest devices, which gives efficiencies;
    without any, all with the first. families: (family, devices) of each point."""
    found = []
    for family in dict.fromkeys(family for family, _ in families):
        base, *others = sorted((devices, at) for at, (other, devices) in enumerate(families) if other == family)
        found += [(at, base[1]) for devices, at in others if devices != base[0]]
    return found or [(at, 0) for at in range(1, len(families))]


def fit(process: np.ndarray, series: Sequence[Series], compared: Sequence[tuple[int, int]], *, sets: bool) -> Turns:
    """The layout of a run.

    Args:
      process: (R,) int, of the rounds in order of time.
      series: of the points that may claim something.
      compared: which of them are compared (`pairs`). How much their ratios vary decides `own`.
      sets: there are enough processes to show how they differ.
    """
    rounds = len(process)
    # Deviations without outliers: a single interrupted round would dominate every estimate below.
    deviations = [(columns, len(values) * influences(values)[1]) for columns, values in series if len(values) > 1]
    common = _common(rounds, deviations)
    ratios = []
    for top, bottom in compared:
        columns, over, under = np.intersect1d(series[top][0], series[bottom][0], return_indices=True)
        if len(columns) > 2:
            difference = series[top][1][over] - series[bottom][1][under]
            ratios.append((columns, len(columns) * influences(difference)[1]))
    alone = [(columns, found - common[columns]) for columns, found in deviations]
    varied = np.flatnonzero(common)
    return Turns(
        process=process,
        common=common,
        shared=_excess(process, [(varied, common[varied])], sets=sets),
        own=_excess(process, ratios or alone, sets=sets),
        alike=_alike([_without(process[columns], found) for columns, found in deviations]),
    )


def influences(values: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of values without outliers, and (n,) by how much each value moves it. They add up to 0."""
    ordered, outside = np.sort(values), int(TAIL * len(values) + 0.5)
    low, high = ordered[outside], ordered[-1 - outside]
    fence = FENCE * (high - low)
    clipped = np.clip(values, low - fence, high + fence)
    mean = clipped.mean()
    return float(mean), (clipped - mean) / len(values)


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


def _excess(process: np.ndarray, series: Sequence[Series], *, sets: bool) -> float:
    """The variance of a mean over that of independent rounds. All `series` are taken to depend alike."""
    every = [(columns, values) for columns, values in series if len(columns) > 2 and values.any()]
    if not every:
        return 1.0
    evidence, scales = np.zeros(()), []
    for all_columns, all_values in every:
        columns, values = _averaged(process, all_columns, all_values)
        count = len(values)
        layout = _layout(process[columns].tobytes(), sets)
        values = values - values.mean()
        whitened = layout.inverse @ values  # (G, n)
        along = np.einsum("gn,gn->g", whitened, layout.ones)
        square = np.einsum("gn,gn->g", whitened, whitened) - along**2 / layout.precision
        # The average, not the sum: ratios of the same rounds see the same noise, so they are not independent evidence.
        evidence = evidence + (layout.prior - (count - 1) / 2 * np.log(square)) / len(every)
        # Of the single rounds, because the factor belongs to their variance, also where they were averaged here.
        independent = float(all_values.var(ddof=1)) / len(all_values)
        scales.append((count, np.sqrt(square / (count - 1) * layout.of_mean / independent)))
    weights = np.exp(evidence - evidence.max())
    seen = weights > 1e-5  # most sizes of the grid explain nothing
    weights = weights[seen] / weights[seen].sum()
    return max(1.0, float(np.mean([_half(weights, count, scale[seen]) ** 2 for count, scale in scales])))


def _half(weights: np.ndarray, count: int, scales: np.ndarray) -> float:
    """The scale of the Student distribution with count - 1 degrees of freedom that has the 97.5 % quantile of this
    mixture of such distributions."""
    quantile = float(special.stdtrit(count - 1, 0.975))
    low, high = 0.0, quantile * float(scales.max())
    for _ in range(25):
        middle = (low + high) / 2
        below = np.einsum("g,g->", weights, special.stdtr(count - 1, middle / scales)) < 0.975
        low, high = (middle, high) if below else (low, middle)
    return high / quantile


def _averaged(process: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Series:
    """At most about MOST values: means of successive rounds of the same process, at the first one's time."""
    together = -(-len(columns) // MOST)
    if together == 1:
        return columns, values
    visit = np.zeros(len(columns), dtype=int)
    for number in np.unique(process[columns]):
        here = process[columns] == number
        visit[here] = np.arange(here.sum()) // together
    _, first, group = np.unique(visit * (process.max() + 1) + process[columns], return_index=True, return_inverse=True)
    means = np.bincount(group, values) / np.bincount(group)
    order = np.argsort(first)
    return columns[first[order]], means[order]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Layout:
    """For each of the G sizes of the grid, with covariance K of n rounds and L its Cholesky factor. inverse: (G, n, n)
    of L. ones: (G, n) inverse times ones. precision: (G,) of the mean. of_mean: (G,) variance of the plain mean.
    prior: (G,) the part of the logarithm of the likelihood that needs no data, with the weight of the size."""

    inverse: np.ndarray
    ones: np.ndarray
    precision: np.ndarray
    of_mean: np.ndarray
    prior: np.ndarray


# A layout has up to 17 MB. Series of a look share it, and simulated runs share those of each number of rounds. With
# four sets these are nine: if fewer were kept, each run would make all of them again.
@functools.lru_cache(maxsize=12)
def _layout(process: bytes, sets: bool) -> _Layout:
    of = np.frombuffer(process, dtype=int)
    count = len(of)
    differ = PROCESS if sets else (0.0,)
    sizes = [(each, 0.0, 1.0) for each in differ]
    sizes += [(each, lasting, fades) for each in differ for lasting in LASTING for fades in FADES]
    within, lasting, fades = (np.array(column)[:, None, None] for column in zip(*sizes, strict=True))
    gap = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) / count
    same = np.equal.outer(of, of)
    covariance = np.eye(count) + within**2 * same + lasting**2 * np.exp(-gap / fades)
    factor = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(factor)
    ones = inverse.sum(axis=2)
    precision = np.einsum("gn,gn->g", ones, ones)
    still = lasting.ravel() == 0
    weight = np.where(still, NOTHING_LASTS / still.sum(), (1 - NOTHING_LASTS) / (~still).sum())
    of_log = np.log(np.einsum("gii->gi", factor)).sum(axis=1)
    return _Layout(
        inverse=inverse, ones=ones, precision=precision, of_mean=covariance.sum(axis=(1, 2)) / count**2,
        prior=np.log(weight) - of_log - np.log(precision) / 2,
    )  # fmt: skip
