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
by the factor that corrects both. One or two processes cannot show how processes differ, so that variation
(`RunVariance`) is added to their draws. Each point gets its own: the points of one process were seen to differ almost
as much as the points of two processes.
The interval of any number that is computed from draws is then given by the percentiles of that number's draws.

If processes take turns, a disturbance of a few seconds hits rounds of several processes, and resampling processes alone
gives intervals that are too narrow. The draws of such *alternating* rounds have a random factor for each round, as wide
as dependent rounds need it (`turns`).
"""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import special

from jaxbench.errors import present
from jaxbench.records.documents import NonNegative, decode, unsealed
from jaxbench.records.reading import read_json
from jaxbench.statistics import turns

if TYPE_CHECKING:  # shapes in signatures, which nothing needs at run time
    from jaxtyping import Float, Int

SPREAD = "spread.json"  # in a run folder
CALIBRATED, ASSUMED_KIND = "calibrated", "assumed"

# A percentile at 2.5 % then has 50 samples outside it, so its own error is small next to the width of the interval.
DRAWS = 2000
MIN_ROUNDS = 5  # with fewer rounds, no resampling covers 95 %
MIN_PROCESSES = 3  # with at least this many, the data themselves show how processes differ
# Optional stopping makes intervals too narrow: a run that stops once an interval is narrow often stops when chance made
# it too narrow. Widened by this factor, its intervals cover 95 % again (benchmarks/interval_coverage.py,
# docs/STATISTICS.md).
OPTIONAL_STOPPING = 1.1
Unit: TypeAlias = "int | tuple[int, int]"  # of resampling: the number of a round, or (session, round) in a run


@dataclass(frozen=True, kw_only=True)
class RunVariance:
    """How much two processes of one program differ, and two sessions on different days: standard deviations of
    logarithms of times, with their degrees of freedom.

    One process cannot show the first, and one run cannot show the second. `jaxbench calibrate` measures both; otherwise
    both are assumed. The result is copied into each run folder (`SPREAD`), so the report needs no other file.

    Attributes:
      sd, df: between processes of one program in one session.
      session_sd, session_df: between sessions, such as two days. The deviation is shared by all points of a session.
      kind, session_kind: CALIBRATED or ASSUMED_KIND. source: the origin of all four, as a clause.
    """

    sd: NonNegative
    df: NonNegative
    session_sd: NonNegative = 0.03
    session_df: NonNegative = 1e6
    kind: str = CALIBRATED
    session_kind: str = ASSUMED_KIND
    source: str


# The assumption may be wrong. It has few degrees of freedom, so that intervals from one process still cover the truth
# if processes differ by anything from 0 to 5 % (docs/STATISTICS.md has the table).
ASSUMED = RunVariance(
    sd=0.03, df=2.5, kind=ASSUMED_KIND, source="assumed, not measured: jaxbench calibrate measures it"
)


def read_spread(folder: Path) -> RunVariance:
    """The spread that was known when the run was measured, or ASSUMED. Raises UserError for a damaged file."""
    path = folder / SPREAD
    if not path.exists():
        return ASSUMED
    return read_json(path, lambda content: decode(RunVariance, unsealed(content)), "delete it to assume the spread.")


def autocorrelation(values: Float[np.ndarray, " n"]) -> float:
    """The correlation of neighbours (lag 1); 0 for a constant."""
    apart = values - values.mean()
    total = float(apart @ apart)
    return float(apart[1:] @ apart[:-1]) / total if total > 0 else 0.0


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

    def alone(self) -> Estimate:  # where an interval would promise more than it shows
        """The value without its interval."""
        return Estimate(value=self.value)

    def times(self, factor: float) -> Estimate:
        """The value and both ends, multiplied by a `factor` > 0."""
        return Estimate(value=factor * self.value, lo=factor * self.lo, hi=factor * self.hi)

    def over(self, divisor: float) -> Estimate:
        """The value and both ends, divided by a `divisor` > 0."""
        return Estimate(value=self.value / divisor, lo=self.lo / divisor, hi=self.hi / divisor)

    @property
    def half_width(self) -> float:
        return (self.hi - self.lo) / 2

    def under(self, work: float) -> Estimate:
        """`work` over this number, with the ends swapped. It has no interval if the lower end is not above 0."""
        if not (self.has_interval and self.lo > 0):  # the inverse is unbounded
            return Estimate(value=work / self.value)
        return Estimate(value=work / self.value, lo=work / self.hi, hi=work / self.lo)


UNKNOWN = Estimate()


class BootstrapSamples:
    """The bootstrap samples of one run: its resampled rounds and processes.

    Attributes:
      units: all (session, round) of the run, sorted: R. process: (R,) int, which process measured each unit.
      spread: the variation between processes, used for points that fewer than MIN_PROCESSES measured.
      weights: (draws, R) float32, how often each draw contains each unit: rounds resampled within each process.
      process_weights: (draws, processes) float32, the same if processes are resampled.
      turns: how alternating rounds depend on each other; None if processes do not take turns.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        workers: Iterable[tuple[Unit, str]] = (),
        *,
        spread: RunVariance = ASSUMED,
        draws: int = DRAWS,
        seed: int = 0,
        auto_rounds: bool = False,
    ):
        """workers: (unit, process that measured a point in it). Units that share a process belong together; without
        workers, all units are of one process. draws: the number of bootstrap samples. auto_rounds: whether the
        intervals decided how many rounds to take.
        """
        self.units, self._workers = sorted(set(units)), tuple(workers)
        self._column = {unit: column for column, unit in enumerate(self.units)}
        self.spread, self.auto_rounds, self._seed = spread, auto_rounds, seed
        self._random = np.random.default_rng(seed)
        # Processes, not workers: a point on 1 and a point on 2 devices have workers of their own, which one set of a
        # run starts together. A unit joins them, so they are resampled together and their ratio stays paired.
        self.process = np.zeros(len(self.units), dtype=int)
        for number, members in enumerate(_together(self.units, self._workers)):
            self.process[[self._column[unit] for unit in members]] = number
        sizes = np.bincount(self.process) if self.units else np.zeros(0, dtype=int)
        self.weights = np.zeros((draws, len(self.units)), dtype=np.float32)
        # Within each process, so that every sample has as many rounds of each process as the data.
        for number, size in enumerate(sizes):
            self.weights[:, self.process == number] = self._multinomial(int(size))
        self.process_weights = self._multinomial(len(sizes))
        # Processes in sequence change as often as there are processes; more changes mean that they take turns.
        changes = np.count_nonzero(np.diff(self.process)) + 1
        alternate = changes > max(1, len(sizes))
        self.turns = turns.Turns(process=self.process, common=np.zeros(len(self.process))) if alternate else None
        self._factors = np.zeros((draws, 0))
        known = math.isinf(spread.df)  # otherwise the spread is an estimate, too
        self._doubt = np.ones(draws) if known else np.sqrt(self._random.chisquare(spread.df, draws) / spread.df)

    def _multinomial(self, count: int) -> Float[np.ndarray, "draws count"]:
        """(draws, count): how often each of `count` units is drawn."""
        if count == 0:
            return np.zeros((len(self.weights), 0), dtype=np.float32)
        share = np.full(count, 1 / count)
        return self._random.multinomial(count, share, size=len(self.weights)).astype(np.float32)

    def only(self, units: Collection[Unit]) -> BootstrapSamples:
        """Separate draws for some of the units."""
        workers = [(unit, worker) for unit, worker in self._workers if unit in units]
        some = BootstrapSamples(
            units, workers, spread=self.spread, draws=len(self.weights), seed=self._seed, auto_rounds=self.auto_rounds
        )
        # How rounds depend on each other belongs to the run. Some of its rounds are too few to estimate it again.
        some.turns = self.turns and self.turns.only(self._columns(some.units))
        return some

    def at(self, units: Sequence[Unit]) -> BootstrapSamples:
        """The same samples, for means over these alternating rounds: their uncertainty follows from the places of these
        rounds in the run, and not from those of all rounds."""
        if self.turns is None or self.processes(units) < MIN_PROCESSES:
            return self
        self._normal()  # both have the same random numbers, so what is common cancels in a ratio
        found = copy.copy(self)
        found.turns = self.turns.at(self._columns(units))
        return found

    def fit(
        self, series: Sequence[tuple[Sequence[Unit], Float[np.ndarray, " units"]]], compared: Sequence[tuple[int, int]]
    ) -> None:
        """Estimates how alternating rounds depend on each other. series: for each point that may support a claim, its
        units and the logarithm of its time in each. compared: of them (`turns.pairs`)."""
        if self.turns is not None:
            found = [(np.array(self._columns(units), dtype=int), values) for units, values in series]
            sets = len(np.unique(self.process)) >= MIN_PROCESSES
            self.turns = turns.fit(self.process, found, compared, sets=sets)

    def mean(self, values: Float[np.ndarray, " units"], units: Sequence[Unit], *, logs: bool = True) -> turns.Mean:
        """The mean of one value per unit, in alternating rounds. logs: the values are logarithms of times."""
        times = OPTIONAL_STOPPING if self.auto_rounds else 1.0
        return present(self.turns).mean(np.array(self._columns(units)), values, logs=logs, times=times)

    def _drawn(self, mean: turns.Mean) -> Float[np.ndarray, " draws"]:
        """The draws of a mean over alternating rounds."""
        return mean.value + np.einsum("df,f->d", self._normal(), mean.loadings)

    def _normal(self) -> Float[np.ndarray, "draws R"]:
        """The random factor of each round in each draw."""
        rounds = len(self.units)
        if self._factors.shape[1] != rounds:
            normal = self._random.standard_normal((len(self.weights), rounds))
            if 2 * rounds < len(normal):  # QR makes the sample covariance exactly the identity
                normal = np.linalg.qr(normal - normal.mean(axis=0))[0] * math.sqrt(len(normal))
            self._factors = normal
        return self._factors

    def processes(self, units: Sequence[Unit]) -> int:
        """The number of processes that measured these units."""
        return len(np.unique(self.process_of(units)))

    def process_of(self, units: Sequence[Unit]) -> Int[np.ndarray, " units"]:
        """The process that measured each."""
        return self.process[self._columns(units)]

    def of(self, units: Sequence[Unit]) -> Float[np.ndarray, "draws units"]:
        """How often each draw contains each of the given units, in their order."""
        columns = self._columns(units)
        by_process = self.processes(units) >= MIN_PROCESSES
        return self.process_weights[:, self.process[columns]] if by_process else self.weights[:, columns]

    def centre(
        self,
        samples: Float[np.ndarray, " n"],
        owners: Int[np.ndarray, " n"],
        units: Sequence[Unit],
        *,
        signed: bool = False,
    ) -> tuple[float, Float[np.ndarray, " draws"]]:
        """(value, draws): the geometric mean over processes of each one's median, for the data and for each draw. In
        alternating rounds: the geometric mean over rounds of the median of each round, without outliers.

        The draws vary as much as these processes do. `differing` adds the variation that one or two cannot show.

        Args:
          samples: values above 0. owners: which of `units` each belongs to.
          signed: samples may be negative, and the mean is arithmetic.
        """
        if self.turns is not None and len(units) > 1:
            # A median in each round, because one interrupted block must not count; a mean over rounds, because a median
            # over them would jump between the two speeds that a machine with a neighbour has.
            each = np.array([np.median(samples[owners == number]) for number in range(len(units))])
            mean = self.mean(each if signed else np.log(each), units, logs=not signed)
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

    def widened(
        self, value: float, drawn: Float[np.ndarray, " draws"], units: Sequence[Unit]
    ) -> Float[np.ndarray, " draws"]:
        """The draws of a statistic of these units, widened for the small number of resampled units."""
        processes = self.processes(units)
        # Rounds are resampled within each process, which costs one degree of freedom for each of them.
        count = processes if processes >= MIN_PROCESSES else len(units) - processes + 1
        return widened(value, drawn, count, OPTIONAL_STOPPING if self.auto_rounds else 1.0)

    def differing(self, name: str, units: Sequence[Unit]) -> Float[np.ndarray, " draws"]:
        """Random factors by which another process would differ at `name`; 1 if processes are resampled."""
        processes = self.processes(units)
        if processes >= MIN_PROCESSES:
            return np.ones(len(self.weights))
        # The seed depends on the name alone, so a report has the same interval whichever other points the run has.
        normal = np.random.default_rng([self._seed, zlib.crc32(name.encode())]).standard_normal(len(self.weights))
        # Clipped: a spread with few degrees of freedom has far tails, and one infinite draw would hide the interval.
        return np.exp(np.clip(self.spread.sd / math.sqrt(max(1, processes)) * normal / self._doubt, -5, 5))

    def _columns(self, units: Sequence[Unit]) -> list[int]:
        """The columns of `weights` that these units have."""
        return [self._column[unit] for unit in units]


def _mean(
    values: Float[np.ndarray, "*draws n"], signed: bool, shares: Float[np.ndarray, "draws n"] | None = None
) -> Float[np.ndarray, " *draws"]:
    """The mean over the last axis, geometric unless signed. With shares, the weighted mean of each draw."""
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
    # A worker that joins two sets merges them.
    sets: list[set[Unit]] = []
    for members in by_worker.values():
        sets = [*(each for each in sets if not each & members), members.union(*(s for s in sets if s & members))]
    rest = set(units).difference(*sets)
    return sorted([*sets, rest] if rest else sets, key=min)


def widened(
    value: float, drawn: Float[np.ndarray, " draws"], count: int, times: float = 1.0
) -> Float[np.ndarray, " draws"]:
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


def weighted_median(
    values: Float[np.ndarray, " n"], owners: Int[np.ndarray, " n"], weights: Float[np.ndarray, "draws k"]
) -> Float[np.ndarray, " draws"]:
    """The median of each bootstrap sample: the mean of its two middle values. Arguments as in `quantile`."""
    total = _sizes(owners, weights)
    lower, upper = _ranked(values, owners, weights, [(total - 1) // 2, total // 2])
    return (lower + upper) / 2


def quantile(
    values: Float[np.ndarray, " n"], owners: Int[np.ndarray, " n"], weights: Float[np.ndarray, "draws k"], q: float
) -> Float[np.ndarray, " draws"]:
    """The quantile `q` of each bootstrap sample: its smallest value that at least the share `q` does not exceed.

    Args:
      owners: which column of `weights` each value belongs to.
      weights: multiplicities, whole numbers (exact in float32 up to 16 million values).

    Returns:
      NaN for a draw without values.
    """
    return _ranked(values, owners, weights, [np.ceil(q * _sizes(owners, weights) - 1e-6) - 1])[0]


def _sizes(owners: Int[np.ndarray, " n"], weights: Float[np.ndarray, "draws k"]) -> Float[np.ndarray, " draws"]:
    """The number of values of each draw. einsum, because the threads of a BLAS wait on a busy machine."""
    return np.einsum("dk,k->d", weights, np.bincount(owners, minlength=weights.shape[1]))


def _ranked(
    values: Float[np.ndarray, " n"],
    owners: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, "draws k"],
    ranks: list[Float[np.ndarray, " draws"]],
) -> list[Float[np.ndarray, " draws"]]:
    """For each of `ranks`, the value at this 0-based rank among the sorted, repeated values of each draw."""
    order, count = np.argsort(values, kind="stable"), len(values)
    # The values are sorted once, not in each of the 2,000 samples: a cumulative count gives the rank of each of them in
    # every sample.
    before = np.zeros((count + 1, weights.shape[1]), dtype=weights.dtype)  # of each column, among the first i values
    before[np.arange(count) + 1, owners[order]] = 1
    before = np.cumsum(before, axis=0)
    empty, found = _sizes(owners, weights) == 0, []
    for rank in ranks:
        low, high = np.zeros(len(weights), dtype=int), np.full(len(weights), count - 1)
        while (low < high).any():  # bisection, for all draws at once
            middle = (low + high) // 2
            after = np.einsum("dk,dk->d", weights, before[middle + 1]) <= rank
            low, high = np.where(after, middle + 1, low), np.where(after, high, middle)
        found.append(np.where(empty, np.nan, values[order][np.minimum(low, count - 1)]))
    return found


def estimate(value: float, draws: Float[np.ndarray, " draws"], *, rounds: int) -> Estimate:
    """`value` with its 95 % confidence interval: percentiles of its draws, which must be `widened`.

    Args:
      value: the statistic of the data itself.
      draws: the statistic of each draw; NaN where undefined.
      rounds: the number of rounds that the statistic uses. Below `MIN_ROUNDS` there is no interval.
    """
    draws = draws[np.isfinite(draws)]
    if rounds < MIN_ROUNDS or len(draws) == 0 or not math.isfinite(value):
        return Estimate(value=value)
    lo, hi = np.quantile(draws, [0.025, 0.975])
    # A skewed statistic can lie outside of the percentiles of its own draws.
    return Estimate(value=value, lo=min(float(lo), value), hi=max(float(hi), value))


def student(values: Sequence[float] | np.ndarray) -> Estimate:
    """The mean of independent values with its 95 % Student interval; of a single value, without one."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Estimate(value=mean)
    half = float(special.stdtrit(count - 1, 0.975) * np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(value=mean, lo=mean - half, hi=mean + half)


def over_seeds(values: Iterable[float | None]) -> Estimate:
    """The geometric mean with its 95 % interval (Student's t on the logarithms). A single value has no interval.

    None values are left out. UNKNOWN without any value.
    """
    logs = [math.log(value) for value in values if value is not None and value > 0]
    if not logs:
        return UNKNOWN
    mean = student(logs)
    return Estimate(value=math.exp(mean.value), lo=math.exp(mean.lo), hi=math.exp(mean.hi))
