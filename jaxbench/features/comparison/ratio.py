# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much slower one run is than another, from a bootstrap over the independent units of each.

The samples of a run are a hierarchy: point, process, round, block. The blocks of one round share the disturbances of
that moment. The rounds of one process share its memory layout and its compiled program. So only processes are
independent samples.

The value of a point is the geometric mean of its processes' median times per step. All arithmetic is on logarithms.
With P processes of R rounds each:

- P >= MIN_PROCESSES: whole processes are resampled with replacement. Resampling their rounds as well would count the
  variation between rounds twice (Davison & Hinkley 1997, "Bootstrap Methods and their Application", section 3.8,
  recommend resampling the highest level only).
- P < MIN_PROCESSES: rounds are resampled. These data cannot show the variation between processes, so it is added: one
  random deviation per process, with the standard deviation of a `RunVariance` that `jaxbench calibrate` measured or
  that is assumed.

Two runs are two sessions. An effect of the session, such as the day, is the same for all its processes, so more
processes cannot show it. Its variance, calibrated or assumed, is added to the variance of every ratio.

Points measured by the same processes share the resampled processes of every bootstrap sample. The standard error is
widened by sqrt(n / (n - 1)) for n resampled units. The interval is Student's t, with the Welch-Satterthwaite degrees of
freedom for the sum of both sides' variances (Welch 1947, doi:10.1093/biomet/34.1-2.28).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.core.schema import RoundRecord
from jaxbench.statistics.bootstrap import DRAWS, MIN_PROCESSES, Estimate, RunVariance, weighted_median


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One point of one run.

    Attributes:
      processes: for each process its rounds; a round is an array (blocks,) of seconds per step.
      names: the names of the processes. Points measured by the same process share its name.
      work: examples per step; 1 for a case.
    """

    processes: tuple[tuple[np.ndarray, ...], ...]
    names: tuple[str, ...]
    work: float = 1.0

    @property
    def count(self) -> int:
        """The number of processes."""
        return len(self.processes)

    @property
    def rounds(self) -> int:
        return sum(len(rounds) for rounds in self.processes)

    @property
    def blocks(self) -> np.ndarray:
        """(blocks,): the seconds per step of all blocks of all processes."""
        return np.concatenate([block for rounds in self.processes for block in rounds])

    def per_example(self) -> Sample:
        """The same sample in seconds per example."""
        times = tuple(tuple(block / self.work for block in rounds) for rounds in self.processes)
        return Sample(processes=times, names=self.names)

    def only(self, which: Sequence[int]) -> Sample:
        """The sample with only these of its processes; numbers of processes that it lacks are ignored."""
        some = [i for i in which if i < self.count]
        processes, names = tuple(self.processes[i] for i in some), tuple(self.names[i] for i in some)
        return Sample(processes=processes, names=names, work=self.work)

    def log_medians(self) -> np.ndarray:
        """(processes,): the logarithm of each process's median."""
        return np.log([np.median(np.concatenate(rounds)) for rounds in self.processes])


def of_rounds(rounds: Iterable[RoundRecord], work: float = 1.0) -> Sample:
    """The sample of one point from its rounds, grouped by the process that measured them."""
    by_worker: dict[str, list[np.ndarray]] = {}
    for each in rounds:
        by_worker.setdefault(each.worker, []).append(np.array(each.block_s) / each.steps)  # block_s: of all K steps
    return Sample(processes=tuple(tuple(r) for r in by_worker.values()), names=tuple(by_worker), work=work)


Side = Mapping[str, Sample]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The logarithm of a point's time on one side.

    Attributes:
      value: the estimate.
      draws: (DRAWS,) deviations of the bootstrap samples from it.
      df: degrees of freedom of its variance; inf if the variance was not estimated.
    """

    value: float
    draws: np.ndarray
    df: float


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """B over A on the logarithmic scale.

    Attributes:
      se: the standard error; NaN: unknown.
      df: its degrees of freedom.
      session: the part of se^2 between sessions, which more processes do not reduce.
      most: the largest half width that the spread of the data allows.
    """

    log: float
    se: float
    df: float
    session: float = 0.0
    most: float = math.inf

    def half(self, alpha: float) -> float:
        """Half the width of the logarithm's confidence interval at level 1 - alpha; NaN: unknown."""
        # With se = 0 or NaN the quantile says nothing: 0 stays 0, unknown stays unknown.
        return min(self.most, float(special.stdtrit(self.df, 1 - alpha / 2) * self.se)) if self.se > 0 else self.se

    def estimate(self, alpha: float = 0.05) -> Estimate:
        """The ratio itself, with its confidence interval at level 1 - alpha."""
        half, value = self.half(alpha), math.exp(self.log)
        return Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half))


def draw(side: Side, spread: RunVariance, seed: int) -> dict[str, Drawn]:
    """The bootstrap samples of each point of one run. Points without samples are left out."""
    random = np.random.default_rng(seed)
    resampled: dict[tuple[str, ...], np.ndarray] = {}  # points measured by the same processes share their draws
    return {name: _draw(sample, spread, random, resampled) for name, sample in side.items() if sample.processes}


def _draw(sample: Sample, spread: RunVariance, random: np.random.Generator, resampled: dict) -> Drawn:
    count = sample.count
    # Points of the same processes share the weights, so that their draws are correlated as their times are.
    if count >= MIN_PROCESSES:
        if sample.names not in resampled:
            resampled[sample.names] = random.multinomial(count, np.full(count, 1 / count), size=DRAWS) / count
        medians = sample.log_medians()
        value = float(np.mean(medians))
        wider = math.sqrt(count / (count - 1))  # resampling gives the variance over n, and not over n - 1
        return Drawn(value=value, draws=wider * (resampled[sample.names] @ medians - value), df=count - 1)
    if sample.names not in resampled:
        # One deviation per process: their mean over `count` processes has this standard deviation.
        resampled[sample.names] = spread.sd / math.sqrt(count) * random.standard_normal(DRAWS)
    between = resampled[sample.names]
    within = _rounds(sample, random)
    value = float(np.mean(sample.log_medians()))
    if within is None:  # one round shows no variation, so no ratio with this point has an interval
        return Drawn(value=value, draws=np.full(DRAWS, math.nan), df=math.inf)
    parts = ((float(np.var(within)), sample.rounds - count), (spread.sd**2 / count, spread.df))
    return Drawn(value=value, draws=within + between, df=welch(parts))


def _rounds(sample: Sample, random: np.random.Generator) -> np.ndarray | None:
    """(DRAWS,) deviations from the value when each process's rounds are resampled; None if a process has one round."""
    total = np.zeros(DRAWS)
    for rounds in sample.processes:
        count = len(rounds)
        if count < 2:
            return None
        # Whole rounds are drawn: their blocks share the disturbances of a moment.
        owners = np.repeat(np.arange(count), [len(blocks) for blocks in rounds])
        weights = random.multinomial(count, np.full(count, 1 / count), size=DRAWS)
        logs = np.log(weighted_median(np.concatenate(rounds), owners, weights))
        total += math.sqrt(count / (count - 1)) * (logs - math.log(np.median(np.concatenate(rounds))))
    return total / sample.count


def ratio(a: Sequence[Drawn], b: Sequence[Drawn], sessions: RunVariance | None = None) -> Ratio:
    """B's time over A's as the geometric mean over points. a, b: the same points in the same order.

    sessions: the variation between sessions, because A and B are two of them. None adds nothing, as for a ratio of two
    efficiencies, where the effect of a session cancels.
    """
    # Draw by draw over the points of a side: what they share does not average out.
    log = float(np.mean([two.value - one.value for one, two in zip(a, b, strict=True)]))
    sides = [np.mean([point.draws for point in points], axis=0) for points in (a, b)]
    # The fewest degrees of freedom: points of the same processes are no further evidence of how processes differ.
    parts = [(float(np.var(side)), min(p.df for p in points)) for side, points in zip(sides, (a, b), strict=True)]
    # One effect for each of the two sessions.
    between = 2 * sessions.session_sd**2 if sessions else 0.0
    if sessions and between:
        parts.append((between, sessions.session_df))
    se = math.sqrt(sum(variance for variance, _ in parts))
    return Ratio(log=log, se=se, df=welch(parts), session=between)


def welch(parts: Sequence[tuple[float, float]]) -> float:
    """Welch-Satterthwaite degrees of freedom of a sum of variances. parts: (variance, its degrees of freedom)."""
    total = sum(variance for variance, _ in parts)
    lost = sum(variance**2 / df for variance, df in parts if df > 0)  # a known variance, df = inf, costs nothing
    return total**2 / lost if lost > 0 else math.inf


def of_seeds(a: np.ndarray, b: np.ndarray) -> Ratio:
    """The mean of `b` minus the mean of `a`, with Welch's degrees of freedom (Welch 1947,
    doi:10.1093/biomet/34.1-2.28). a, b: independent logarithms, such as one per seed. se is NaN if a side has fewer
    than two."""
    log = float(np.mean(b) - np.mean(a))
    if min(len(a), len(b)) < 2:
        return Ratio(log=log, se=math.nan, df=math.inf)
    parts = [(float(np.var(side, ddof=1)) / len(side), len(side) - 1.0) for side in (a, b)]
    return Ratio(log=log, se=math.sqrt(sum(variance for variance, _ in parts)), df=welch(parts))
