# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much slower one run is than another, by a bootstrap over the independent units of each.

The value of a point is the geometric mean of its processes' median times per step. On the logarithmic scale, with P
processes of R rounds each:

- P >= MIN_PROCESSES: whole processes are resampled with replacement. (Resampling their rounds, too, would count the
  variation between rounds twice; Davison & Hinkley 1997, "Bootstrap Methods and their Application", section 3.8,
  recommend resampling the highest level only.)
- fewer: rounds are resampled. The variation between processes, which these data cannot show, is added: a deviation of
  `Spread` for each process, measured by `jaxbench calibrate`, or assumed.

Two runs are two sessions. What differs between sessions, such as two days, is the same for all processes of one, so no
number of them shows it: its variance, calibrated or assumed, is added to that of every ratio.

Points that one process measured get the same resampled processes in every draw. The standard error of the draws is
widened by sqrt(n / (n - 1)) for n resampled units. The interval is Student's, with the degrees of freedom of Welch and
Satterthwaite for the sum of both sides' variances (Welch 1947, doi:10.1093/biomet/34.1-2.28).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.analysis.intervals import MIN_PROCESSES, Estimate
from jaxbench.analysis.spread import Spread
from jaxbench.verdicts.samples import Sample, Side

DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The logarithm of a point's time on one side. df: of its variance; inf if that was not estimated."""

    value: float
    draws: np.ndarray
    df: float


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """B over A on the logarithmic scale. se: NaN when unknown. session: the part of se^2 that more processes do not
    reduce, because it is between sessions."""

    log: float
    se: float
    df: float
    session: float = 0.0

    def half(self, alpha: float) -> float:
        """Half the width of the logarithm's interval of confidence 1 - alpha; NaN when unknown."""
        return float(special.stdtrit(self.df, 1 - alpha / 2) * self.se) if self.se > 0 else self.se

    def estimate(self, alpha: float = 0.05) -> Estimate:
        """The ratio itself, with its interval of confidence 1 - alpha."""
        half, value = self.half(alpha), math.exp(self.log)
        return Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half))

    def inverse(self) -> Ratio:
        return dataclasses.replace(self, log=-self.log)


def draw(side: Side, spread: Spread, seed: int) -> dict[str, Drawn]:
    """Each point of one run. Points without samples are left out."""
    random = np.random.default_rng(seed)
    resampled: dict[tuple[str, ...], np.ndarray] = {}  # points of the same processes share their draws
    return {name: _draw(sample, spread, random, resampled) for name, sample in side.items() if sample.processes}


def _draw(sample: Sample, spread: Spread, random: np.random.Generator, resampled: dict) -> Drawn:
    count = len(sample.processes)
    if count >= MIN_PROCESSES:
        if sample.names not in resampled:
            resampled[sample.names] = random.multinomial(count, np.full(count, 1 / count), size=DRAWS) / count
        medians = sample.log_medians()
        value = float(np.mean(medians))
        wider = math.sqrt(count / (count - 1))
        return Drawn(value=value, draws=wider * (resampled[sample.names] @ medians - value), df=count - 1)
    if sample.names not in resampled:
        resampled[sample.names] = spread.sd / math.sqrt(count) * random.standard_normal(DRAWS)
    between = resampled[sample.names]
    within = _rounds(sample, random)
    value = float(np.mean(sample.log_medians()))
    if within is None:
        return Drawn(value=value, draws=np.full(DRAWS, math.nan), df=math.inf)
    parts = ((float(np.var(within)), sample.rounds - count), (spread.sd**2 / count, spread.df))
    return Drawn(value=value, draws=within + between, df=welch(parts))


def _rounds(sample: Sample, random: np.random.Generator) -> np.ndarray | None:
    """(DRAWS,) deviations from the value with each process's rounds resampled; None if a process has a single round."""
    total = np.zeros(DRAWS)
    for rounds in sample.processes:
        count = len(rounds)
        if count < 2:
            return None
        chosen = random.integers(count, size=(DRAWS, count))
        logs = np.log(_medians(rounds, chosen))
        total += math.sqrt(count / (count - 1)) * (logs - math.log(np.median(np.concatenate(rounds))))
    return total / len(sample.processes)


def _medians(rounds: Sequence[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """(DRAWS,): the median of all blocks of the chosen rounds. chosen: (DRAWS, rounds)."""
    if len({len(one) for one in rounds}) == 1:
        return np.median(np.stack(rounds)[chosen].reshape(len(chosen), -1), axis=1)
    table = np.full((len(rounds), max(len(one) for one in rounds)), np.nan)
    for row, one in zip(table, rounds, strict=True):
        row[: len(one)] = one
    return np.nanmedian(table[chosen].reshape(len(chosen), -1), axis=1)


def ratio(a: Sequence[Drawn], b: Sequence[Drawn], sessions: Spread | None = None) -> Ratio:
    """B's time over A's, the geometric mean over points. a, b: the same points in the same order.

    sessions: how sessions differ, of which A and B are two; None: nothing is added, as for a ratio of two efficiencies,
    in which a session's effect cancels.
    """
    log = float(np.mean([two.value - one.value for one, two in zip(a, b, strict=True)]))
    sides = [np.mean([point.draws for point in points], axis=0) for points in (a, b)]
    parts = [(float(np.var(side)), min(p.df for p in points)) for side, points in zip(sides, (a, b), strict=True)]
    between = 2 * sessions.session_sd**2 if sessions else 0.0
    if sessions and between:
        parts.append((between, sessions.session_df))
    se = math.sqrt(sum(variance for variance, _ in parts))
    return Ratio(log=log, se=se, df=welch(parts), session=between)


def welch(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of variances. parts: (variance, its degrees of freedom)."""
    total = sum(variance for variance, _ in parts)
    lost = sum(variance**2 / df for variance, df in parts if df > 0)
    return total**2 / lost if lost > 0 else math.inf


def of_seeds(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Independent logarithms of each side -> mean of b less that of a, with Welch's degrees of freedom (Welch 1947,
    doi:10.1093/biomet/34.1-2.28); se is NaN with fewer than two of a side."""
    log = float(np.mean(b) - np.mean(a))
    if min(len(a), len(b)) < 2:
        return Ratio(log=log, se=math.nan, df=math.inf)
    parts = [(float(np.var(side, ddof=1)) / len(side), len(side) - 1.0) for side in (a, b)]
    return Ratio(log=log, se=math.sqrt(sum(variance for variance, _ in parts)), df=welch(parts))
