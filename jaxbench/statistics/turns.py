# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How uncertain a mean over rounds is that several processes measured in turns: docs/STATISTICS.md, Dense rounds.

Two things make such rounds dependent. Rounds of one process share what that process differs by, and rounds that are
close in time share what else the machine did. So the deviation of a round is modelled as the sum of an effect of its
process, noise that fades with time, and independent noise. How large the first two are is unknown. So the variance of a
mean is averaged over a grid of sizes, each weighted by how well it explains the rounds of the run (its restricted
likelihood, Patterson and Thompson 1971, doi:10.1093/biomet/58.3.545). The result is one factor for the run: by how much
the variance of a mean exceeds that of independent rounds.

A factor of a waterfall has only a few of the rounds: in fewer processes, with fewer rounds of each, and closer
together. They are too few to show how they depend on each other, but the run shows it. So the weights of the run give a
factor for the places of these few rounds (`Turns.at`).

Each round has one random factor that all points share: what moves two points alike cancels in their ratio.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:  # shapes in signatures, which nothing needs at run time
    from jaxtyping import Float, Int

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
NEGLIGIBLE = 1e-5  # most sizes of the grid explain nothing
FAMILY = ("strategy", "scaling", "arm")  # what the points of an efficiency have in common; cases have none of these
Series = tuple[np.ndarray, np.ndarray]  # of a point: the columns of its rounds, and the logarithm of its time in each


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean over the R rounds of a run.

    loadings: by how much the random factor of each round moves it. A draw is value + factors @ loadings, with factors
    of standard normal numbers, and its percentiles are the 95 % interval.
    """

    value: float
    loadings: Float[np.ndarray, " R"]


def half_width(top: Mean, bottom: Mean) -> float:
    """Half the width of the interval of the difference of two means of the same rounds."""
    return float(special.ndtri(0.975) * np.linalg.norm(top.loadings - bottom.loadings))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """How the rounds of a run depend on each other: the combinations of the grid that explain them.

    Attributes:
      within, lasting, fades: the combinations, relative to the independent noise of a mean of `together` rounds.
      weights: how well each explains the rounds. They add up to 1.
      together: the number of successive rounds of a process that were averaged first.
    """

    within: Float[np.ndarray, " G"]
    lasting: Float[np.ndarray, " G"]
    fades: Float[np.ndarray, " G"]
    weights: Float[np.ndarray, " G"]
    together: int


@dataclass(frozen=True, kw_only=True)
class Turns:
    """The rounds of a run in order of time.

    Attributes:
      process: the process that measured each round.
      common: what the points of a round share, as a deviation of the logarithm of their times.
      shared: the variance of a mean of what points share over that of independent rounds. own: of what they do not.
      shared_sizes, own_sizes: what the rounds say about both; None if they say nothing.
      alike: the mean square of the difference of successive rounds over twice the variance (von Neumann): 1 if noise
        does not outlast a round, and less the longer it lasts.
    """

    process: Int[np.ndarray, " R"]
    common: Float[np.ndarray, " R"]
    shared: float = 1.0
    own: float = 1.0
    shared_sizes: Sizes | None = None
    own_sizes: Sizes | None = None
    alike: float = 1.0

    def only(self, columns: Sequence[int]) -> Turns:
        """Of some of the rounds. How rounds depend on each other belongs to the run: some are too few to tell."""
        of = list(columns)
        return dataclasses.replace(self, process=self.process[of], common=self.common[of])

    def at(self, columns: Sequence[int]) -> Turns:
        """With the factors of a mean over these rounds, in place of those of a mean over the whole run. columns: rounds
        of enough processes to show how they differ."""
        places = np.array(columns, dtype=int)
        return dataclasses.replace(
            self,
            shared=_excess_at(self.process, places, self.shared_sizes, self.shared),
            own=_excess_at(self.process, places, self.own_sizes, self.own),
        )

    def mean(
        self, columns: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"], *, logs: bool = True, times: float = 1.0
    ) -> Mean:
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


def fit(
    process: Int[np.ndarray, " R"], series: Sequence[Series], compared: Sequence[tuple[int, int]], *, sets: bool
) -> Turns:
    """The layout of a run.

    Args:
      process: of the rounds in order of time.
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
    shared, shared_sizes = _excess(process, [(varied, common[varied])], sets=sets)
    own, own_sizes = _excess(process, ratios or alone, sets=sets)
    return Turns(
        process=process,
        common=common,
        shared=shared,
        own=own,
        shared_sizes=shared_sizes,
        own_sizes=own_sizes,
        alike=_alike([_without(process[columns], found) for columns, found in deviations]),
    )


def influences(values: Float[np.ndarray, " n"]) -> tuple[float, Float[np.ndarray, " n"]]:
    """The mean of values without outliers, and by how much each value moves it. They add up to 0."""
    ordered, outside = np.sort(values), int(TAIL * len(values) + 0.5)
    low, high = ordered[outside], ordered[-1 - outside]
    fence = FENCE * (high - low)
    clipped = np.clip(values, low - fence, high + fence)
    mean = clipped.mean()
    return float(mean), (clipped - mean) / len(values)


def _common(rounds: int, deviations: Sequence[Series]) -> Float[np.ndarray, " R"]:
    """The mean deviation of the points of each round; 0 where there is one point only."""
    total, points = np.zeros(rounds), np.zeros(rounds)
    for columns, found in deviations:
        total[columns] += found
        points[columns] += 1
    # A round with one point cannot tell what its points share, so all of its deviation counts as the point's own.
    return np.where(points > 1, total / np.maximum(points, 1), 0.0)


def _without(cluster: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The values less the mean of each cluster."""
    sizes = np.maximum(np.bincount(cluster), 1)
    return values - (np.bincount(cluster, values) / sizes)[cluster]


def _alike(series: Sequence[np.ndarray]) -> float:
    """How little neighbours share: 1 for independent rounds, 0 for lasting noise."""
    square = sum(float((each**2).mean()) for each in series)
    return sum(float((np.diff(each) ** 2).mean()) for each in series) / (2 * square) if square > 0 else 1.0


def _excess(process: np.ndarray, series: Sequence[Series], *, sets: bool) -> tuple[float, Sizes | None]:
    """(the variance of a mean over that of independent rounds, the sizes behind it). All `series` are taken to depend
    alike."""
    every = [(columns, values) for columns, values in series if len(columns) > 2 and values.any()]
    if not every:
        return 1.0, None
    evidence, scales = np.zeros(()), []
    for all_columns, all_values in every:
        columns, values = averaged(process, all_columns, all_values)
        count = len(values)
        layout = layout_of(process[columns].tobytes(), sets)
        values = values - values.mean()
        whitened = layout.inverse @ values  # (G, n)
        along = np.einsum("gn,gn->g", whitened, layout.ones)
        square = np.einsum("gn,gn->g", whitened, whitened) - along**2 / layout.precision
        # The average, not the sum: ratios of the same rounds see the same noise, so they are not independent evidence.
        evidence = evidence + (layout.prior - (count - 1) / 2 * np.log(square)) / len(every)
        # Of the single rounds, because the factor belongs to their variance, also where they were averaged here.
        independent = float(all_values.var(ddof=1)) / len(all_values)
        scales.append((count - 1, np.sqrt(square / (count - 1) * layout.of_mean / independent)))
    weights = np.exp(evidence - evidence.max())
    seen = weights > NEGLIGIBLE
    weights = weights[seen] / weights[seen].sum()
    within, lasting, fades = (size[seen] for size in _grid(sets))
    together = min(_together(len(columns)) for columns, _ in every)
    sizes = Sizes(within=within, lasting=lasting, fades=fades, weights=weights, together=together)
    halves = [
        quantile(weights, np.full(len(weights), freedom), scale[seen]) / special.stdtrit(freedom, 0.975)
        for freedom, scale in scales
    ]
    return max(1.0, float(np.mean(np.square(halves)))), sizes


def _excess_at(process: np.ndarray, columns: np.ndarray, sizes: Sizes | None, otherwise: float) -> float:
    """The same for a mean over the rounds at `columns`, from the sizes of the whole run.

    The variance of the few rounds is that of independent noise and of what differs among them. A mean also moves with
    what they have in common, such as lasting noise if all are close together. Its degrees of freedom are those of a sum
    of squares of dependent values (Satterthwaite 1946, doi:10.2307/3002019): few processes have few.
    """
    count = len(columns)
    if sizes is None or count < 2:
        return otherwise
    gap = np.abs(np.subtract.outer(columns, columns)) / len(process)
    same = np.equal.outer(process[columns], process[columns])
    within, lasting, fades = (size[:, None, None] for size in (sizes.within, sizes.lasting, sizes.fades))
    covariance = sizes.together * np.eye(count) + within**2 * same + lasting**2 * np.exp(-gap / fades)
    centred = covariance - covariance.mean(axis=1, keepdims=True)
    total = np.einsum("gii->g", centred)  # the expected sum of squares about the mean
    freedom = total**2 / np.einsum("gij,gji->g", centred, centred)
    of_mean = covariance.sum(axis=(1, 2)) / count**2
    half = quantile(sizes.weights, freedom, np.sqrt(of_mean * count * (count - 1) / total))
    return max(1.0, float(half / special.stdtrit(count - 1, 0.975)) ** 2)


def quantile(weights: np.ndarray, freedom: np.ndarray, scales: np.ndarray) -> float:
    """The 97.5 % quantile of a mixture of Student distributions with these degrees of freedom and scales."""
    peak = np.exp(special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2)) / np.sqrt(freedom * np.pi)
    place = float((special.stdtrit(freedom, 0.975) * scales).min())
    # Newton's method approaches the quantile from below, because the distribution is concave above 0.
    for _ in range(100):
        at = place / scales
        missing = 0.975 - float(weights @ special.stdtr(freedom, at))
        if missing < 1e-10:
            break
        place += missing / float(weights @ (peak * (1 + at**2 / freedom) ** (-(freedom + 1) / 2) / scales))
    return place


def _together(count: int) -> int:
    """How many of `count` rounds are averaged, so that at most about MOST means are left."""
    return -(-count // MOST)


def averaged(process: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Series:
    """At most about MOST values: means of successive rounds of the same process, at the first one's time."""
    together = _together(len(columns))
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
class Layout:
    """For each of the G sizes of the grid, with covariance K of n rounds and L its Cholesky factor. inverse: (G, n, n)
    of L. ones: (G, n) inverse times ones. precision: (G,) of the mean. of_mean: (G,) variance of the plain mean.
    prior: (G,) the part of the logarithm of the likelihood that needs no data, with the weight of the size."""

    inverse: np.ndarray
    ones: np.ndarray
    precision: np.ndarray
    of_mean: np.ndarray
    prior: np.ndarray


def _grid(sets: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The standard deviations between processes and of lasting noise, and how fast that fades: (G,) each."""
    differ = PROCESS if sets else (0.0,)
    sizes = [(each, 0.0, 1.0) for each in differ]
    sizes += [(each, lasting, fades) for each in differ for lasting in LASTING for fades in FADES]
    within, lasting, fades = (np.array(column) for column in zip(*sizes, strict=True))
    return within, lasting, fades


# A layout has up to 17 MB. Series of a look share it, and simulated runs share those of each number of rounds. With
# four sets these are nine: if fewer were kept, each run would make all of them again.
@functools.lru_cache(maxsize=12)
def layout_of(process: bytes, sets: bool) -> Layout:
    of = np.frombuffer(process, dtype=int)
    count = len(of)
    within, lasting, fades = (size[:, None, None] for size in _grid(sets))
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
    return Layout(
        inverse=inverse,
        ones=ones,
        precision=precision,
        of_mean=covariance.sum(axis=(1, 2)) / count**2,
        prior=np.log(weight) - of_log - np.log(precision) / 2,
    )


def variance_of_sum(factors: np.ndarray, process: np.ndarray, *, sets: bool) -> np.ndarray:
    """(G,): the variance of the sum of factors x rounds for each size of the grid. factors, process: (n,)."""
    within, lasting, fades = _grid(sets)
    places = np.arange(len(factors))
    gap = np.abs(np.subtract.outer(places, places)) / len(factors)
    alike = {each: float(factors @ np.exp(-gap / each) @ factors) for each in np.unique(fades).tolist()}
    of_processes = float(np.square(np.bincount(process, factors)).sum())
    common = np.array([alike[each] for each in fades.tolist()])
    return float(factors @ factors) + within**2 * of_processes + lasting**2 * common
