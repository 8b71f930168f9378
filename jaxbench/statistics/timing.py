# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point's clocks: step time, variation, throughput, and whether the second clock agrees with the first.

And which rounds count when other programs used the machine during some of them: docs/metrics, "Load".
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from jaxbench.core.schema import CaseRecord, PointRecord, Record, RoundRecord
from jaxbench.digits import digits
from jaxbench.statistics import core_speeds, turns
from jaxbench.statistics.bootstrap import (
    ASSUMED,
    MIN_PROCESSES,
    MIN_ROUNDS,
    UNKNOWN,
    BootstrapSamples,
    Estimate,
    RunVariance,
    Unit,
    estimate,
)

CLOCK_LIMIT = 0.05  # a row gets a note if its two clocks differ by more than this relative difference
# Caveats of a time, as clauses.
NOTES = {
    "fixed cost": "clocks disagree: one more step costs {percent:.0f} % of the step time, so about {fixed_ms} ms of "
    "each block of {steps:.0f} steps is a fixed cost (start or fence) that the step time includes",
    "late": "clocks disagree: one more step costs {percent:.0f} % of the step time, so steps late in a block are "
    "slower than early ones (work queued before the clock started, or the device slowed down)",
    "no interval": f"no interval, which needs {MIN_ROUNDS} rounds instead of {{rounds}}",
    "unsettled": "warm-up had not settled in {count} of {rounds} rounds",
}
MOST_TAKEN = 0.05  # a round is contended if others or the hypervisor took more than this share of its CPUs' time
TICKS_S = 0.03  # three ticks of the kernel's clock that counts others' time on a CPU: less may be its rounding
LEAST_LEFT = 10  # rounds that each claiming point must keep; else contention is the normal state of the machine


class TimedPoint(Protocol):
    """A measured training point or case (`analysis.points.MeasuredPoint`)."""

    @property
    def point(self) -> str: ...

    @property
    def rounds(self) -> tuple[RoundRecord, ...]: ...

    @property
    def units(self) -> tuple[Unit, ...]: ...

    @property
    def oversubscribed(self) -> bool: ...

    @property
    def auto_rounds(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Statistics of a point's samples. Times are in seconds per step; NaN or `UNKNOWN` without samples.

    Attributes:
      samples, rounds, processes: the numbers of blocks of K steps, of rounds, and of independent processes.
      step_s: the geometric mean over processes of each one's median of block_s / K. If processes take turns, the mean
        is over rounds.
      step_s_p95, step_s_cv: the 95th percentile and the standard deviation over the mean, of all blocks.
      examples_per_s: the examples of a step over step_s.
      clock_ratio: the slope between K and 2 K steps, over step_s; 1 if both clocks agree.
      clock_note: a clause if they disagree.
      resampling: the bootstrap samples of the run.
      step_draws: (draws,) step_s of each bootstrap sample; NaN for a draw without samples.
      inside_draws: the same without the variation that another process would add.
    """

    samples: int = 0
    rounds: int = 0
    processes: int = 0
    step_s: Estimate = UNKNOWN
    step_s_p95: float = math.nan
    step_s_cv: float = math.nan
    examples_per_s: Estimate = UNKNOWN
    clock_ratio: Estimate = UNKNOWN
    clock_note: str = ""
    resampling: BootstrapSamples
    step_draws: np.ndarray
    inside_draws: np.ndarray

    @property
    def rests_on(self) -> str:
        """The source of the interval of step_s: processes | processes and time | rounds + calibrated | rounds +
        assumed; "" without an interval."""
        if not self.step_s.has_interval:
            return ""
        if self.processes < MIN_PROCESSES:
            return f"rounds + {self.resampling.spread.kind}"
        return "processes" if self.resampling.turns is None else "processes and time"

    @property
    def inside(self) -> Timing:
        """The timing with the interval of these processes alone, for the gates."""
        # An impossible time stays impossible, however much another process would differ.
        step_s = estimate(self.step_s.value, self.inside_draws, rounds=self.rounds)
        return dataclasses.replace(self, step_s=step_s, step_draws=self.inside_draws)


@dataclass(frozen=True, kw_only=True)
class LoopTime:
    """The slope between K and 2 K iterations of a jitted loop; UNKNOWN without a loop.

    Attributes:
      iteration_s: seconds per iteration. The overhead of a call cancels in the slope.
      ratio: iteration_s over the seconds per call; 1 if a call has no overhead.
    """

    iteration_s: Estimate = UNKNOWN
    ratio: Estimate = UNKNOWN


def resampling_of(points: Sequence[TimedPoint], spread: RunVariance = ASSUMED) -> BootstrapSamples:
    """The bootstrap samples of a run, from every (session, round) of its points and the process that measured each."""
    rounds = [
        (unit, r.worker, point.oversubscribed)
        for point in points
        for unit, r in zip(point.units, point.rounds, strict=True)
    ]
    # Oversubscribed points keep one worker while the workers of other points are replaced. It would join the rounds of
    # several processes into one unit, and the times of these points support no claim.
    workers = [(unit, worker) for unit, worker, oversubscribed in rounds if not oversubscribed]
    resampling = BootstrapSamples(
        (unit for unit, *_ in rounds), workers, spread=spread, auto_rounds=any(point.auto_rounds for point in points)
    )
    # Ablations claim nothing.
    claiming = [p for p in points if p.rounds and not (p.oversubscribed or bool(getattr(p, "explains", "")))]
    families = [(tuple(getattr(p, name, "") for name in turns.FAMILY), getattr(p, "devices", 1)) for p in claiming]
    series = [(point.units, np.log(round_medians(point.rounds))) for point in claiming]
    resampling.fit(series, turns.pairs(families))
    return resampling


def samples_of(point: TimedPoint, units: Collection[Unit]) -> tuple[np.ndarray, np.ndarray, list[Unit]]:
    """(seconds per step of all blocks of the rounds in `units`, the index of each block's round, the units found)."""
    rounds = [(unit, r) for unit, r in zip(point.units, point.rounds, strict=True) if unit in units]
    owners = np.repeat(np.arange(len(rounds)), [len(r.block_s) for _, r in rounds])
    return np.concatenate([np.array(r.block_s) / r.steps for _, r in rounds]), owners, [unit for unit, _ in rounds]


def centre(
    point: TimedPoint, units: Collection[Unit], resampling: BootstrapSamples
) -> tuple[float, np.ndarray, np.ndarray]:
    """(seconds per step over the rounds in `units`, its draws, its draws with the variation of another process)."""
    samples, owners, used = samples_of(point, units)
    value, drawn = resampling.centre(samples, owners, used)
    return value, drawn, drawn * resampling.differing(point.point, used)


def measure(point: TimedPoint, resampling: BootstrapSamples, *, examples: float) -> Timing:
    """The timing of a point. resampling: of its run. examples: per step or call."""
    rounds = point.rounds
    if not rounds:
        nothing = np.full(len(resampling.weights), np.nan)
        return Timing(resampling=resampling, step_draws=nothing, inside_draws=nothing)
    samples, _, _ = samples_of(point, point.units)
    value, inside, drawn = centre(point, point.units, resampling)
    step_s = estimate(value, drawn, rounds=len(rounds))
    ratio = _clock_ratio(point, resampling, value, inside)
    spread = samples.std(ddof=1) / samples.mean() if len(samples) > 1 else math.nan
    return Timing(
        samples=len(samples),
        rounds=len(rounds),
        step_s=step_s,
        step_s_p95=float(np.percentile(samples, 95)),
        processes=min(resampling.processes(point.units), len({each.worker for each in point.rounds})),
        step_s_cv=float(spread),
        examples_per_s=step_s.under(examples),
        clock_ratio=ratio,
        clock_note=_clock_note(ratio, value, float(np.median([r.steps for r in rounds]))),
        resampling=resampling,
        step_draws=drawn,
        inside_draws=inside,
    )


def measure_loop(point: TimedPoint, timing: Timing) -> LoopTime:
    """The loop time of a point. timing: of the same point."""
    indices = [i for i, r in enumerate(point.rounds) if r.loop_steps and r.loop_s and r.double_loop_s]
    if not indices:
        return LoopTime()
    rounds, units = [point.rounds[i] for i in indices], [point.units[i] for i in indices]
    per_round = _slopes([r.loop_s for r in rounds], [r.double_loop_s for r in rounds], [r.loop_steps for r in rounds])
    slope, slope_draws = timing.resampling.centre(per_round, np.arange(len(units)), units, signed=True)
    step_s, differing = timing.step_s.value, timing.resampling.differing(f"loop of {point.point}", units)
    return LoopTime(
        iteration_s=estimate(slope, slope_draws * differing, rounds=len(indices)),
        ratio=estimate(slope / step_s, slope_draws / timing.inside_draws, rounds=len(indices)),
    )


def _clock_ratio(point: TimedPoint, resampling: BootstrapSamples, step_s: float, inside: np.ndarray) -> Estimate:
    """The second clock over the first: the cost of one more step, from blocks of K and 2 K steps of the same round,
    over step_s of the rounds that have both."""
    indices = [i for i, r in enumerate(point.rounds) if r.double_block_s]
    if not indices:
        return UNKNOWN
    doubled = [point.rounds[i] for i in indices]
    slopes = _slopes([r.block_s for r in doubled], [r.double_block_s for r in doubled], [r.steps for r in doubled])
    units = [point.units[i] for i in indices]
    # Rounds without the second clock may have been faster or slower, so the first clock must leave them out, too.
    if len(indices) < len(point.rounds):
        step_s, inside, _ = centre(point, set(units), resampling)
    slope, slope_draws = resampling.centre(slopes, np.arange(len(units)), units, signed=True)
    return estimate(slope / step_s, slope_draws / inside, rounds=len(indices))


def round_medians(rounds: Sequence[RoundRecord]) -> np.ndarray:
    """(rounds,): the median seconds per step of each round."""
    return medians([each.block_s for each in rounds]) / np.array([each.steps for each in rounds])


def _slopes(single: Sequence[Sequence[float]], double: Sequence[Sequence[float]], steps: Sequence[int]) -> np.ndarray:
    """(rounds,): the seconds of one more step in each round, from the medians of blocks of K and of 2 K steps."""
    return (medians(double) - medians(single)) / np.array(steps)


def _clock_note(ratio: Estimate, step_s: float, steps: float) -> str:
    # The whole interval must lie outside. A noisy run would otherwise complain about its clocks each time.
    if ratio.hi < 1 - CLOCK_LIMIT:
        fixed_ms = digits((1 - ratio.value) * step_s * steps * 1e3)
        return NOTES["fixed cost"].format(percent=100 * ratio.value, fixed_ms=fixed_ms, steps=steps)
    return NOTES["late"].format(percent=100 * ratio.value) if ratio.lo > 1 + CLOCK_LIMIT else ""


def no_interval(timing: Timing) -> list[str]:
    """[a note] if there are too few rounds for an interval, else []."""
    if not (timing.step_s.known and timing.rounds < MIN_ROUNDS):
        return []
    return [NOTES["no interval"].format(rounds=timing.rounds)]


def unsettled(point: TimedPoint) -> list[str]:
    count = sum(not r.settled for r in point.rounds)
    return [NOTES["unsettled"].format(count=count, rounds=len(point.rounds))] if count else []


def medians(groups: Sequence[Sequence[float]]) -> np.ndarray:
    """(len(groups),): the median of each group. Groups must not be empty."""
    lengths = np.array([len(g) for g in groups])
    # Groups differ in length. Filled with infinity, they sort as one table, without a loop in Python.
    table = np.full((len(groups), lengths.max()), np.inf)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(groups)
    table.sort(axis=1)
    rows = np.arange(len(groups))
    return (table[rows, (lengths - 1) // 2] + table[rows, lengths // 2]) / 2


def moment(record: Record) -> float:
    """The Unix time of a line in seconds; NaN if it has none."""
    return datetime.fromisoformat(record.time).timestamp() if record.time else math.nan


def session(record: PointRecord | CaseRecord | RoundRecord) -> int:
    """The number of the session that measured it, from its worker's name ("session1/cpu8"); 0 if unknown."""
    match = re.match(r"session(\d+)/", record.worker)
    return int(match[1]) if match else 0


def elapsed_s(rounds: Iterable[RoundRecord]) -> float:
    """The seconds from the first round's start to the last one's end, summed over sessions; 0 if no line has a time."""
    spans: dict[int, tuple[float, float]] = {}
    for each in rounds:
        end = moment(each)
        if math.isfinite(end):
            # A line is written when its round ends, so the round began earlier by the time of its blocks.
            start = end - sum((*each.warmup_block_s, *each.block_s, *each.double_block_s))
            first, last = spans.get(session(each), (start, end))
            spans[session(each)] = (min(first, start), max(last, end))
    return sum(last - first for first, last in spans.values())


def wall_s(about: RoundRecord) -> float:
    """The wall seconds of all timed blocks of a round."""
    return sum(about.block_s) + sum(about.double_block_s)


def taken_by(about: RoundRecord) -> dict[str, float]:
    """Who took more of the CPUs' time during a round's blocks than it may, and the share; {} if nobody did."""
    cpu_time = wall_s(about) * about.cpus
    rounding_s = TICKS_S * math.sqrt(about.cpus * len(about.cpu_s))  # of independent readings: each CPU, each block
    spent = {"the hypervisor": sum(about.steal_s), "other processes": sum(about.others_s)}
    return {who: s / cpu_time for who, s in spent.items() if cpu_time and s > max(rounding_s, MOST_TAKEN * cpu_time)}


def throttled(about: RoundRecord) -> float:
    """The share of the CPUs' time during a round's blocks in which a quota stopped the process; 0 if it is small."""
    cpu_time = wall_s(about) * about.cpus
    share = sum(about.throttled_s) / cpu_time if cpu_time else 0.0
    return share if share > MOST_TAKEN else 0.0


def best_speeds(rounds: Iterable[RoundRecord]) -> dict[int, core_speeds.Best]:
    """The best speed of each CPU, by session: another start of a run may meet the machine in another state."""
    by_session: dict[int, list[RoundRecord]] = {}
    for each in rounds:
        by_session.setdefault(session(each), []).append(each)
    return {number: core_speeds.best(of) for number, of in by_session.items()}


def enough(rounds: int, workers: Iterable[str]) -> bool:
    """Whether these rounds of a point, by these processes, give an interval that knows how processes differ."""
    return rounds >= LEAST_LEFT and len({*workers}) >= MIN_PROCESSES


def counted(
    rounds: Mapping[str, Sequence[RoundRecord]], claiming: Collection[str]
) -> dict[str, tuple[RoundRecord, ...]]:
    """The rounds of each CPU point of a run with automatic rounds that its statistics use.

    A contended round measured the program and a neighbour together, and an efficiency is about the program. What a
    neighbour takes is counted apart from the time of the program, and so is the speed of the cores, by a fixed product
    between the blocks. So leaving rounds out does not select fast ones. A round is left out for all points if it is
    contended for one: a process that is pinned to one CPU does not see the neighbour on the next, which slows it down,
    too. All rounds count if a claiming point would not keep enough.

    claiming: the points that efficiencies rest on: neither oversubscribed nor ablations.
    """
    best = best_speeds(each for name in claiming for each in rounds[name])
    out = {
        (session(each), each.round)
        for name in claiming
        for each in rounds[name]
        if throttled(each) or taken_by(each) or core_speeds.slow_cores(each, best[session(each)])
    }
    left = {name: tuple(each for each in of if (session(each), each.round) not in out) for name, of in rounds.items()}
    if all(enough(len(left[name]), (each.worker for each in left[name])) for name in claiming):
        return left
    return {name: tuple(of) for name, of in rounds.items()}
