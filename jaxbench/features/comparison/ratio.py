# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How much slower one run is than another, from the variation between the independent units of each.

The samples of a run are a hierarchy: point, process, round, block. The blocks of one round share the disturbances of
that moment. The rounds of one process share its memory layout and its compiled program. So only processes are
independent samples.

The value of a point is the geometric mean of its processes' median times per step. All arithmetic is on logarithms.
With P processes of R rounds each:

- P >= MIN_PROCESSES: the standard error is that of the mean of P independent medians. It includes the variation between
  rounds, which would count twice if rounds were also resampled (Davison & Hinkley 1997, "Bootstrap Methods and their
  Application", section 3.8).
- P < MIN_PROCESSES: the rounds of each process are resampled (`statistics.bootstrap`). These data cannot show the
  variation between processes, so it is added: one random deviation per process, with the standard deviation of a
  `RunVariance` that `jaxbench calibrate` measured or that is assumed.

Two runs are two sessions. An effect of the session, such as the day, is the same for all its processes, so more
processes cannot show it. Its variance, calibrated or assumed, is added to the variance of every ratio.

A deviation of a process is the same for all points that it measured, so it does not average out over them. The interval
is Student's t, with the Welch-Satterthwaite degrees of freedom for the sum of both sides' variances (Welch 1947,
doi:10.1093/biomet/34.1-2.28).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import special

from jaxbench.core.schema import RoundRecord
from jaxbench.statistics.bootstrap import (
    MIN_PROCESSES,
    BootstrapSamples,
    Estimate,
    RunVariance,
    weighted_median,
)

MOST = 700.0  # a wider half width is none: `exp` would overflow


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
class LogTime:
    """The logarithm of a point's time in one run.

    Attributes:
      value: the estimate.
      deviations: the standard deviation that each independent cause adds, with its sign, by the name of the cause: a
        process, or the rounds of a point. Points that share a cause deviate together. NaN: unknown.
      df: degrees of freedom of its variance; inf if the variance was not estimated.
    """

    value: float
    deviations: Mapping[str, float]
    df: float

    def over(self, other: LogTime) -> LogTime:
        """This time over another one of the same run. Causes that both share cancel."""
        mine, its = self.deviations, other.deviations
        apart = {cause: mine.get(cause, 0.0) - its.get(cause, 0.0) for cause in {**mine, **its}}
        return LogTime(value=self.value - other.value, deviations=apart, df=min(self.df, other.df))


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
        if half > MOST:
            return Estimate(value=value)
        return Estimate(value=value, lo=value * math.exp(-half), hi=value * math.exp(half))


def log_times(side: Side, spread: RunVariance) -> dict[str, LogTime]:
    """The time of each point of one run. Points without samples are left out."""
    return {name: _log_time(name, sample, spread) for name, sample in side.items() if sample.processes}


def _log_time(name: str, sample: Sample, spread: RunVariance) -> LogTime:
    medians, count = sample.log_medians(), sample.count
    value = float(np.mean(medians))
    if count >= MIN_PROCESSES:
        apart = (medians - value) / math.sqrt(count * (count - 1))  # their squares add up to the variance of the mean
        return LogTime(value=value, deviations=dict(zip(sample.names, apart.tolist(), strict=True)), df=count - 1)
    within = _within(sample)
    if math.isnan(within):  # one round shows no variation, so no ratio with this point has an interval
        return LogTime(value=value, deviations={name: math.nan}, df=math.inf)
    between = dict.fromkeys(sample.names, spread.sd / count)
    df = welch(((within**2, sample.rounds - count), (spread.sd**2 / count, spread.df)))
    return LogTime(value=value, deviations={**between, f"the rounds of {name}": within}, df=df)


def _within(sample: Sample) -> float:
    """The standard deviation of the value when each process's rounds are resampled; NaN if a process has one round."""
    variance = 0.0
    for rounds in sample.processes:
        count = len(rounds)
        if count < 2:
            return math.nan
        # Whole rounds are drawn: their blocks share the disturbances of a moment.
        owners = np.repeat(np.arange(count), [len(blocks) for blocks in rounds])
        drawn = weighted_median(np.concatenate(rounds), owners, BootstrapSamples(range(count)).weights)
        variance += count / (count - 1) * float(np.var(np.log(drawn)))
    return math.sqrt(variance) / sample.count


def ratio(a: Sequence[LogTime], b: Sequence[LogTime], sessions: RunVariance | None = None) -> Ratio:
    """B's time over A's as the geometric mean over points. a, b: the same points in the same order.

    sessions: the variation between sessions, because A and B are two of them. None adds nothing, as for a ratio of two
    efficiencies, where the effect of a session cancels.
    """
    log = float(np.mean([two.value - one.value for one, two in zip(a, b, strict=True)]))
    # The fewest degrees of freedom: points of the same processes are no further evidence of how processes differ.
    parts = [(_variance(side), min(point.df for point in side)) for side in (a, b)]
    # One effect for each of the two sessions.
    between = 2 * sessions.session_sd**2 if sessions else 0.0
    if sessions and between:
        parts.append((between, sessions.session_df))
    se = math.sqrt(sum(variance for variance, _ in parts))
    return Ratio(log=log, se=se, df=welch(parts), session=between)


def _variance(points: Sequence[LogTime]) -> float:
    """Of the mean over points of one run. What points share adds up, and does not average out."""
    causes = {cause for point in points for cause in point.deviations}
    return math.fsum(fmean(point.deviations.get(cause, 0.0) for point in points) ** 2 for cause in causes)


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
