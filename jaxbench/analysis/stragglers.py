# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which process of a point is slow: the time of each process over the median of all, block by block.

In a whole step, the processes wait for each other in every collective, so all of them take as long as the slowest. The
step without its collectives (the ablation "local") shows each process at its own speed. docs/metrics, Stragglers,
defines the numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from jaxbench.analysis.quantities import times
from jaxbench.analysis.run_rows import Row, fault
from jaxbench.core.schema import RoundRecord
from jaxbench.records.manifest import Surroundings
from jaxbench.statistics.bootstrap import MIN_PROCESSES, MIN_ROUNDS, Estimate, Unit, estimate
from jaxbench.statistics.timing import measure as timing_of

NONE_SLOW = (
    "No process is slow in most rounds. The slowest process of a block, which varies, took at most {times} the "
    "median's time ({point})."
)
SLOW = (
    "{point}: process {process} of {count}{host} {what}, {times} the median's time, and is the slowest in {slowest} of "
    "{rounds} rounds."
)
ONLY_LOCAL = " Only a step without communication shows which process is slow."
LEAST = 0.01  # a process that is slower by less than this is not called slow, however certain that is
CHANCE = 0.05  # the largest probability that one of several equal processes is called slow


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast the processes of one program are relative to each other."""

    point: str  # the id of the program: of a step, or of its ablation "local"
    relative: tuple[Estimate, ...]  # the time of each process over the median; intervals have a joint confidence
    slowest_over_median: Estimate  # of each block, whichever it is: above 1 even for equal processes, as times vary
    slowest_in: tuple[int, ...]  # in how many of the `rounds` each process was the slowest
    rounds: int
    worker: str  # the common name of the processes in the newest round

    @property
    def slow(self) -> int | None:
        """The process that was the slowest in most rounds; None if that may be chance, or if it loses below LEAST."""
        process, count = int(np.argmax(self.slowest_in)), max(self.slowest_in)
        # The binomial tail for one process, times their number, because the most frequent one is selected.
        equal = len(self.slowest_in) * special.bdtrc(count - 1, self.rounds, 1 / len(self.slowest_in))
        often = 2 * count > self.rounds and equal <= CHANCE
        return process if often and self.relative[process].lo > 1 + LEAST else None


@dataclass(frozen=True, kw_only=True)
class Stragglers:
    """The paces of one point."""

    step: Pace  # in the whole step
    local: Pace | None  # without collectives; None if not measured

    @property
    def clearest(self) -> Pace:
        """The pace in which processes wait for each other the least."""
        return self.local or self.step


def of(row: Row) -> Stragglers | None:
    """The paces of a row; None for one process, without rounds, and if the point is oversubscribed, because then its
    processes share cores."""
    if row.point.oversubscribed or not usable(row):
        return None
    local = row.ablations.get("local")
    alone = pace(local) if local is not None and not fault(local) and usable(local) else None
    return Stragglers(step=pace(row), local=alone)


def find(rows: Sequence[Row]) -> list[Stragglers]:
    """The paces of all rows with several processes, in order."""
    return [found for row in rows if (found := of(row)) is not None]


def usable(row: Row) -> list[tuple[Unit, RoundRecord]]:
    """The rounds of a point that all of its processes timed, each with its (session, round)."""
    rounds = zip(row.point.units, row.point.rounds, strict=True)
    return [(unit, each) for unit, each in rounds if len(each.process_block_s) == row.point.processes]


def over_median(each: RoundRecord) -> np.ndarray:
    """The time of each process over the median of all, for each block of a round. Returns (processes, blocks)."""
    seconds = np.array(each.process_block_s)
    return np.asarray(seconds / np.median(seconds, axis=0))


def averaged(row: Row) -> Row | None:
    """The row with the mean over processes instead of the slowest process of each block; None unless every round has
    the times of several processes."""
    if row.point.processes < 2 or len(usable(row)) < len(row.point.rounds):
        return None
    rounds = tuple(
        dataclasses.replace(each, block_s=tuple(np.mean(each.process_block_s, axis=0).tolist()), process_block_s=())
        for each in row.point.rounds
    )
    point = dataclasses.replace(row.point, rounds=rounds)
    # With the same draws as other rows, so that it pairs with them.
    timing = timing_of(point, row.timing.resampling, examples=point.global_batch)
    return dataclasses.replace(row, point=point, timing=timing)


def pace(row: Row) -> Pace:
    """The pace of a point with `usable` rounds. Its intervals are for these starts of the processes."""
    units, rounds = zip(*usable(row), strict=True)
    blocks = [over_median(each) for each in rounds]
    # The median of a round's blocks, so that one interrupted block does not make a process the slowest of its round.
    of_rounds = np.array([np.median(over, axis=1) for over in blocks])
    samples = np.concatenate([over.max(axis=0) for over in blocks])
    owners = np.repeat(np.arange(len(blocks)), [over.shape[1] for over in blocks])
    value, drawn = row.timing.resampling.centre(samples, owners, units)
    # A round in which several tie counts for none of them.
    leads = of_rounds == of_rounds.max(axis=1, keepdims=True)
    return Pace(
        point=row.point_id,
        relative=_relative(row, units, np.log(of_rounds)),
        slowest_over_median=estimate(value, np.maximum(drawn, 1), rounds=len(units)),  # the slowest is never below 1
        slowest_in=tuple(int(count) for count in leads[leads.sum(axis=1) == 1].sum(axis=0)),
        rounds=len(units),
        worker=rounds[-1].worker,
    )


def _relative(row: Row, units: Sequence[Unit], logs: np.ndarray) -> tuple[Estimate, ...]:
    """The geometric mean of each process with Student's intervals. The units are starts of the process group if there
    are at least MIN_PROCESSES, else rounds.

    logs: (rounds, processes). Each interval has level 1 - CHANCE / processes (Bonferroni), because the slowest process
    is selected among them.
    """
    resampling = row.timing.resampling
    starts = resampling.process[[resampling.units.index(unit) for unit in units]]
    if len(np.unique(starts)) >= MIN_PROCESSES:  # rounds of one start share its memory layout, and are not independent
        logs = np.array([logs[starts == start].mean(axis=0) for start in np.unique(starts)])
    count, processes = logs.shape
    value = np.exp(logs.mean(axis=0))
    if len(units) < MIN_ROUNDS:
        return tuple(Estimate(value=float(mean)) for mean in value)
    reach = special.stdtrit(count - 1, 1 - CHANCE / (2 * processes)) * logs.std(axis=0, ddof=1) / math.sqrt(count)
    ends = zip(value, value * np.exp(-reach), value * np.exp(reach), strict=True)
    return tuple(Estimate(value=float(mean), lo=float(lo), hi=float(hi)) for mean, lo, hi in ends)


def sentences(rows: Sequence[Row], workers: Mapping[str, Surroundings]) -> list[str]:
    """One sentence for each point with a slow process. Without any, one on the point with the largest slowest / median.

    workers: from the manifest, with the host of each process if there are several.
    """
    found = find(rows)
    if not found:
        return []
    if slow := [one for one in found if one.clearest.slow is not None]:
        return [sentence(one, workers.get(one.clearest.worker, Surroundings()).get("hosts", ())) for one in slow]
    worst = max((one.clearest for one in found), key=lambda pace: pace.slowest_over_median.value)
    return [NONE_SLOW.format(times=times(worst.slowest_over_median), point=worst.point)]


def sentence(one: Stragglers, hosts: Sequence[str] = ()) -> str:
    """A point with a slow process: "shard_map/strong/2/local: process 1 of 2 is slow, 1.31 x [1.24, 1.38] ..."."""
    pace = one.clearest
    process = int(pace.slow or 0)
    host = f" (on {hosts[process]})" if len(set(hosts)) > 1 else ""
    what = "is slow" if one.local is not None else "ends its blocks last"
    text = SLOW.format(
        point=pace.point,
        process=process,
        count=len(pace.relative),
        host=host,
        what=what,
        times=times(pace.relative[process]),
        slowest=pace.slowest_in[process],
        rounds=pace.rounds,
    )
    return text if one.local is not None else text + ONLY_LOCAL
