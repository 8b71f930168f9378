# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""When worker sets that take turns have measured enough, and which points their next rounds visit.

A pure function of the plan and the records, without a clock, so that a run that was killed and continued goes on as it
would have. What stopping by the data does to the coverage of an interval is corrected in `bootstrap.OPTIONAL_STOPPING`.

The ratio of two points is formed within rounds. So a visit helps only if the round has both, and time is shared out
between *claims*, pairs of points: to the widest first, and to those that are almost as wide.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from jaxbench.core.schema import PointRecord, Record, RoundRecord
from jaxbench.records.manifest import LookEntry, Plan, PlannedPoint
from jaxbench.statistics import timing, turns
from jaxbench.statistics.bootstrap import MIN_PROCESSES, MIN_ROUNDS, BootstrapSamples, Unit
from jaxbench.statistics.timing import elapsed_s, round_medians, session

HALF_WIDTH = 0.03  # of the interval of each efficiency; 1 is 100 %
LEAST_ROUNDS, LEAST_S = 30, 25.0  # of fewer rounds or seconds, a neighbour may have slowed down all of them, or none
STEADY = 0.75  # of `turns.Turns.alike`: below it noise lasts, and a narrow interval before the budget ends may be luck
NEXT = 0.6  # claims of at least this share of the widest half width, which is an estimate, are narrowed with it
ABLATION_ROUNDS = 6  # of a point that explains another one, if that resolves its factor
ABLATION_SHARE = 3  # it has at most every third round of the point that it explains, while a claim is not precise


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The ratio of two points, in the rounds that have both.

    Attributes:
      point, base: their ids. base: "" for a single point: its step time is the claim.
      half_width: of the interval of the efficiency, or of the ratio over its value; inf without an interval.
      rounds: that both share.
    """

    point: str
    base: str
    half_width: float
    rounds: int

    @property
    def points(self) -> tuple[str, ...]:
        return (self.point, self.base) if self.base else (self.point,)

    @property
    def narrow(self) -> bool:
        return self.half_width <= HALF_WIDTH and self.rounds >= LEAST_ROUNDS


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the rounds so far say.

    Attributes:
      ended: "precise" | "budget" | "nothing" (nothing can be measured) | "" to go on.
      spent_s: seconds from the first round to the last.
      claims: all of them, the widest first.
      visits: the points that each of the next rounds visits, one round per worker set; () if it has ended.
    """

    ended: str
    spent_s: float
    claims: tuple[Claim, ...]
    visits: tuple[str, ...]

    @property
    def half_width(self) -> float:
        """Of the widest claim; inf if it has no interval."""
        return self.claims[0].half_width if self.claims else math.inf

    def to_json(self) -> LookEntry:
        """As the manifest keeps a look (`sweep.job.Automatic`). rounds: those of the widest claim."""
        known = round(self.half_width, 5) if math.isfinite(self.half_width) else None
        point, rounds = (self.claims[0].point, self.claims[0].rounds) if self.claims else ("", 0)
        return {
            "rounds": rounds,
            "ended": self.ended,
            "half_width": known,
            "point": point if known else "",
            "spent_s": round(self.spent_s, 3),
        }


def look(plan: Plan, records: Iterable[Record], *, sets: int, failed: Collection[str] = ()) -> Look:
    """What the rounds so far say. To be asked before the first round and after every `sets` rounds, so that each set
    visits each point as often as the others.

    Args:
      plan: of the manifest. Of each of its points it reads point, strategy, scaling, arm, devices, global_batch,
        oversubscribed and explains; and auto["budget_s"], the seconds that rounds may take. Points that are
        oversubscribed are in no visit: they are measured afterwards.
      records: in the order of the file. Rounds have numbers that increase with time, and one worker set each.
      sets: how many worker sets take turns; 2 or more, and 3 or more for an interval that knows how processes differ.
      failed: points that are not to be visited any more.
    """
    points = {p["point"]: p for p in plan["points"] if not p.get("oversubscribed") and p["point"] not in failed}
    records = list(records)
    found: dict[str, dict[Unit, RoundRecord]] = {name: {} for name in points}
    for record in records:  # the first record of each round counts
        if isinstance(record, RoundRecord) and record.point in found:
            found[record.point].setdefault((session(record), record.round), record)
    rounds = {name: dict(sorted(of.items())) for name, of in found.items()}
    spent = elapsed_s(each for of in rounds.values() for each in of.values())
    workers = [(unit, each.worker) for of in rounds.values() for unit, each in of.items()]
    # On accelerators the load of the CPUs does not slow down a step, so no round is left out.
    if plan.get("platform") == "cpu":
        claiming = [name for name, about in points.items() if rounds[name] and not about.get("explains")]
        left = timing.counted({name: list(of.values()) for name, of in rounds.items()}, claiming)
        rounds = {name: {(session(each), each.round): each for each in left[name]} for name in rounds}
    work = {r.point: r.compile_report.flops_per_step for r in records if isinstance(r, PointRecord)}
    values = {
        name: dict(zip(of, np.log(round_medians(list(of.values()))), strict=True)) if of else {}
        for name, of in rounds.items()
    }
    times = Times(points, values, workers, spent, work)
    return look_at(points, times, sets=sets, budget_s=float(plan["auto"]["budget_s"]))


def look_at(points: Mapping[str, PlannedPoint], times: Times, *, sets: int, budget_s: float) -> Look:
    """The same of times that were read. points: of the plan, by id."""
    claims = tuple(sorted((times.claim(*pair) for pair in _pairs(points)), key=lambda claim: -claim.half_width))
    taken, visits = len(times.resampling.units), _visits(claims, points, times)
    # Late: one more round of each set, as long as those so far, would end after the budget.
    late = taken > 0 and times.spent_s + sets * times.spent_s / taken > budget_s
    ended = "nothing" if not claims else "precise" if not visits else "budget" if late else ""
    return Look(ended=ended, spent_s=times.spent_s, claims=claims, visits=() if ended else visits)


def _visits(claims: Sequence[Claim], points: Mapping[str, PlannedPoint], times: Times) -> tuple[str, ...]:
    """The points that the next rounds need, in the order of the plan; () if none does."""
    wanted: set[str] = set()
    # Until then a narrow interval may be luck, so every claim gets further rounds.
    early = times.spent_s < LEAST_S or not times.steady
    open_ = [claim for claim in claims if early or not claim.narrow]
    for claim in open_:
        # Half widths are estimates: which claim is the widest is uncertain, so those of nearly its width go on with it.
        if early or claim.rounds < LEAST_ROUNDS or claim.half_width >= NEXT * open_[0].half_width:
            wanted.update(claim.points)
    bases = {claim.point: claim.points for claim in claims}
    for name, about in points.items():
        whole = about.get("explains", "")
        if not whole or times.resolved(name, whole, ABLATION_ROUNDS):
            continue
        # Efficiencies come first. Ablations explain them, and take most of the time once all claims are precise.
        due = not open_ or times.count(name) == 0 or ABLATION_SHARE * times.count(name) < times.count(whole)
        if due or whole not in points:
            # With its whole point and that point's base, because a factor is a ratio within rounds.
            wanted.update((name, *bases.get(whole, (whole,))))
    return tuple(name for name in points if name in wanted)


class Times:
    """The logarithm of the time of each point in each round, and how rounds depend on each other."""

    def __init__(
        self,
        points: Mapping[str, PlannedPoint],
        values: Mapping[str, Mapping[Unit, float]],
        workers: Iterable[tuple[Unit, str]],
        spent_s: float,
        work: Mapping[str, float] = MappingProxyType({}),
    ):
        """points: of the plan, by id. values: of each of them, by unit. work: of a step, where it is known."""
        self.points, self.values, self.spent_s, self.work = points, values, spent_s, work
        workers = dict.fromkeys(workers)
        # One draw: a look needs only the variances, and it must cost little next to a round.
        self.resampling = BootstrapSamples((unit for unit, _ in workers), workers, draws=1, auto_rounds=True)
        claiming = {name: of for name, of in values.items() if of and not points[name].get("explains")}
        compared = turns.pairs([_family(points[name]) for name in claiming])
        self.resampling.fit([(list(of), np.array(list(of.values()))) for of in claiming.values()], compared)

    @property
    def steady(self) -> bool:
        """Whether the noise does not outlast a round."""
        return self.resampling.turns is not None and self.resampling.turns.alike >= STEADY

    def count(self, name: str) -> int:
        return len(self.values.get(name, ()))

    def shared(self, *names: str) -> list[Unit]:
        return sorted(set.intersection(*(set(self.values[name]) for name in names)))

    def means(self, units: Sequence[Unit], *names: str) -> list[turns.Mean] | None:
        """The mean of each over these rounds; None without an interval that knows how processes differ."""
        if self.resampling.turns is None or len(units) < MIN_ROUNDS or self.resampling.processes(units) < MIN_PROCESSES:
            return None
        return [self.resampling.mean(np.array([self.values[name][unit] for unit in units]), units) for name in names]

    def claim(self, point: str, base: str) -> Claim:
        names = (point, base) if base else (point,)
        units = self.shared(*names)
        means, half = self.means(units, *names), math.inf
        if means is not None:
            nothing = turns.Mean(value=0.0, loadings=np.zeros_like(means[0].loadings))
            top, bottom = (*means, nothing)[:2]
            ideal = self._ideal(point, base)
            value = ideal * math.exp(bottom.value - top.value) if ideal else 1.0
            # An interval from value / e^h to value * e^h is 2 value sinh(h) wide. The bound avoids an overflow after
            # few rounds.
            half = value * math.sinh(min(turns.half_width(top, bottom), 50.0))
        return Claim(point=point, base=base, half_width=half, rounds=len(units))

    def _ideal(self, point: str, base: str) -> float:
        """The efficiency if the steps of both take equally long: the work of one, in FLOPs or else in examples, over
        the base's and over the ratio of their devices; 0 of a pair that claims no efficiency."""
        about, of = self.points[point], self.points.get(base, self.points[point])
        relative = int(about["devices"]) / int(of["devices"])
        if relative == 1:
            return 0.0
        if self.work.get(base) and self.work.get(point):  # sums over rows, such as boosted trees, state no FLOPs
            return self.work[point] / self.work[base] / relative
        return float(about["global_batch"]) / float(of["global_batch"]) / relative

    def resolved(self, part: str, whole: str, least: int) -> bool:
        """Whether a point that explains another has enough rounds, and the interval of the ratio of their times is
        narrow or excludes 1; or whether it has three times as many."""
        if whole not in self.values:
            return self.count(part) >= least
        units = self.shared(part, whole)
        means = self.means(units, part, whole) if len(units) >= least else None
        if means is None:
            return False
        half, apart = turns.half_width(*means), abs(means[0].value - means[1].value)
        return half <= HALF_WIDTH or half < apart or len(units) >= 3 * least


def _family(about: PlannedPoint) -> tuple[tuple[object, ...], int]:
    """What points of one efficiency have in common, and the number of devices."""
    return tuple(about.get(name) for name in turns.FAMILY), int(about.get("devices", 1))


def _pairs(points: Mapping[str, PlannedPoint]) -> list[tuple[str, str]]:
    """(point, base) of each efficiency; without any, of each ratio to the first point; or a single point and ""."""
    whole = [about for about in points.values() if not about.get("explains")]
    found = turns.pairs([_family(about) for about in whole])
    return [(whole[at]["point"], whole[base]["point"]) for at, base in found] or [(p["point"], "") for p in whole]
