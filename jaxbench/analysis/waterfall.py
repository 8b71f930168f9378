# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Why an efficiency is not 100 %: a product of factors, each measured in the same rounds.

The times are t1: one device with all of the work; ta: one device alone with its per-device batch; tl: the same while
all n devices run, without communication; tn: the whole step; tc: its collectives alone. The factors of

    E = work t1 / (n tn) = [work t1 / (n ta)] x [ta / tl] x [tl / tn]

are the smaller per-device batch, contention, and communication that is not hidden. docs/metrics has the other factors.
Among them are the slowest process over the mean of all, a pipeline's bubble (from a step in which the stages wait for
each other but send almost nothing), and waiting for input (from the same step with its input resident).
The unexplained rest is a factor, too, so the product is exactly E.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis import alpha_beta, busy, energy, stragglers
from jaxbench.analysis.busy import Busy
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.run_rows import Row, fault
from jaxbench.levers import ACCUMULATE, MESH, SCHEDULE
from jaxbench.records.machine_profile import MachineProfile
from jaxbench.records.manifest import Surroundings
from jaxbench.statistics import core_speeds, paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate
from jaxbench.statistics.paired_ratio import SharedTimes

EXTRA_WORK, SMALLER_BATCH, CONTENTION = "extra work", "smaller share", "shared machine"
UNEQUAL, RUNTIME, CLOCK = "unequal devices", "shared runtime", "clock"
STAGE_WORK, SLOWEST_PROCESS = "work of a stage", "slowest process"
BUBBLE, INPUT, COMMUNICATION = "pipeline bubble", "waiting for input", "communication"
UNEXPLAINED = "not explained"
# Records and comparison.json keep the names above. Sentences and figures use the terms that a reader would search for.
TERMS = {
    SMALLER_BATCH: "smaller per-device batch",
    CONTENTION: "contention",
    RUNTIME: "one runtime",
    UNEXPLAINED: "unexplained",
}
NAMES = (
    EXTRA_WORK,
    SMALLER_BATCH,
    STAGE_WORK,
    UNEQUAL,
    CLOCK,
    CONTENTION,
    RUNTIME,
    SLOWEST_PROCESS,
    BUBBLE,
    INPUT,
    COMMUNICATION,
    UNEXPLAINED,
)
PARTS = ("alone", "processes", "local", "schedule", "communication")
RESIDENT = "resident"  # the ablation of a step that waits for input: the same step with its input on the devices
FEW_ROUNDS = f"{{count}} rounds have the point, its base and all of its parts, and an interval needs {MIN_ROUNDS}"
OTHER_WORK = "a smaller batch has {share:.2f}x the products of a device's part of the step"
COUNTED = 0.005  # two programs do the same work if their FLOPs differ by less than this, relative
SHARE = 0.05  # a part of the batch is the same work as a device's part of the step if their FLOPs differ by less
# FLOPs measure the work of a step only if matrix products dominate its time. At the rate of a large product, they must
# fill LEAST_FILLED of the time; smaller products often reach half of that rate. And the measured times must show at
# least LEAST_SHOWN of the cost that the FLOPs predict.
LEAST_FILLED, LEAST_SHOWN = 0.25, 0.5
SMALL = 0.5  # percentage points of efficiency that are worth mentioning
EXACTLY_1 = 1e-9  # a factor is left out if every draw of it is this close to 1


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One factor of an efficiency.

    Attributes:
      name: one of `NAMES`.
      value: 1 means no loss. It has no interval if it is counted instead of measured.
      lost: percentage points of efficiency: the product of the factors before it, minus the product including it. The
        losses of all factors add up to 100 minus the efficiency.
    """

    name: str
    value: Estimate
    lost: Estimate

    @property
    def resolved(self) -> bool:
        """Whether the interval of the loss excludes 0; without an interval, whether it is at least half a point."""
        if self.lost.has_interval:
            return self.lost.lo > 0 or self.lost.hi < 0
        return abs(self.lost.value) >= SMALL

    @property
    def negligible(self) -> bool:
        """Whether the interval contains 0 and ends within `SMALL` of it. Such a factor gets no bar or words."""
        return not self.resolved and not max(-self.lost.lo, self.lost.hi) >= SMALL


@dataclass(frozen=True)
class Withheld:
    """A row with ablations but without a waterfall. why: a clause. busy: because the machine was, and not because there
    are too few rounds."""

    row: Row
    why: str
    busy: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Waterfall:
    """The factors of one row's efficiency.

    Attributes:
      efficiency: the product of the factors, over all rounds of the row and its base.
      factors: in the order of `NAMES`. Factors that are exactly 1 or were not measured are left out.
      communication_s: the time of its collectives alone. hidden: the share of it during which devices also compute.
      predicted_s: the time of its collectives by alpha and beta of the machine profile; NaN: unknown.
      missing: a clause for each ablation that was not measured. Its loss is then in the unexplained factor.
      local_s: the time of the step without communication, including the bubble.
      rounds, processes: of the factors, in which the row, its base and all ablations were measured.
    """

    row: Row
    base: Row
    efficiency: Estimate
    factors: tuple[Factor, ...]
    communication_s: Estimate = UNKNOWN
    hidden: Estimate = UNKNOWN
    predicted_s: float
    missing: tuple[str, ...] = ()
    local_s: Estimate = UNKNOWN
    rounds: int
    processes: int

    @property
    def point(self) -> MeasuredPoint:
        return self.row.point

    @property
    def devices(self) -> int:
        return self.row.point.devices

    @property
    def family(self) -> str:
        """Strategy, scaling and the arm, if there is one: "shard_map strong"."""
        return " ".join(filter(None, (self.point.strategy, self.point.scaling, self.point.arm)))

    def factor(self, name: str) -> Factor | None:
        return next((factor for factor in self.factors if factor.name == name), None)

    def lost(self, *names: str) -> Estimate:
        """The loss to these factors together, as a fraction: 0 for factors that are exactly 1. UNKNOWN if one was not
        measured. The loss to several factors has no interval."""
        found = [self.factor(name) for name in names]
        if (self.missing and None in found) or (len(names) == 1 and names[0] in self._unmeasured):
            return UNKNOWN
        if len(found) == 1 and found[0] is not None:
            return found[0].lost.over(100)
        return Estimate(value=sum(factor.lost.value for factor in found if factor is not None) / 100)

    @property
    def _unmeasured(self) -> set[str]:
        """Factors that this kind of point, or an older run, has no measurement for: contention includes them."""
        unequal = set() if math.isfinite(core_speeds.balance(self.point.rounds)) else {UNEQUAL}
        return unequal | (set() if "processes" in self.row.ablations else {RUNTIME})

    @property
    def numbers(self) -> dict[str, Estimate]:
        """Its numbers in ``summary.csv``: losses by name, those without a column as UNEXPLAINED, and its times."""
        with_column = (SMALLER_BATCH, CONTENTION, COMMUNICATION, UNEQUAL, RUNTIME)
        others = [name for name in NAMES if name not in with_column]
        return {
            **{name: self.lost(name) for name in with_column},
            UNEXPLAINED: self.lost(*others),
            "communication_s": self.communication_s,
            "hidden": self.hidden,
            "predicted_s": Estimate(value=self.predicted_s),
        }


def explain(rows: Sequence[Row], waterfalls: Sequence[Waterfall]) -> list[Row]:
    """The rows with the numbers of their waterfalls."""
    numbers = {waterfall.point.point: waterfall.numbers for waterfall in waterfalls}
    return [dataclasses.replace(row, derived=numbers.get(row.point_id, {})) for row in rows]


def find(
    rows: Sequence[Row], profile: MachineProfile | None = None, workers: Mapping[str, Surroundings] | None = None
) -> list[Waterfall]:
    """The waterfall of every row that has ablations, in the order of the rows.

    A row has none if it is oversubscribed, refused or wrong, if its base has more than one device, if it shares too few
    rounds with its ablations for an interval, or if the machine was busy in most of its rounds (`withheld`).
    profile: of the machine. workers: from the manifest.
    """
    found = [
        _of(base, row, alpha_beta.communication_s(row.point, profile, workers))
        for base, row in _explained(rows)
        if not _mostly_busy(row)
    ]
    return [one for one in found if one.efficiency.has_interval]


def withheld(rows: Sequence[Row]) -> list[Withheld]:
    """The rows that have ablations but no waterfall, with the reason."""
    found = []
    for base, row in _explained(rows):
        shared = len(paired_ratio.shared_units([base, row, *_usable(base, row).values()]))
        if (each := _mostly_busy(row)) is not None:
            found.append(Withheld(row, each.sentence, busy=True))
        elif shared < MIN_ROUNDS:
            found.append(Withheld(row, FEW_ROUNDS.format(count=shared), busy=False))
    return found


def _mostly_busy(row: Row) -> Busy | None:
    found = busy.of(row)
    return found if found is not None and found.mostly else None


def _explained(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """(base, row) of each row that has ablations and an efficiency that they can explain."""
    by_point = {row.point_id: row for row in rows}
    found = []
    for row in rows:
        base = by_point.get(row.base.point) if row.base is not None else None
        explains = base is not None and base is not row and base.point.devices == 1
        judged = not row.wrong and row.efficiency.known and row.gate != "refused" and not row.point.oversubscribed
        if base is not None and explains and judged and set(row.ablations) & set(PARTS):
            found.append((base, row))
    return found


def _of(base: Row, row: Row, predicted_s: float) -> Waterfall:
    """The waterfall of one row: its factors, and what they leave unexplained."""
    usable = _usable(base, row)
    shared = paired_ratio.times([base, row, *usable.values()], own=True)
    # By name (1 + draws,): the value, then its draws.
    times = dict(zip(("one", "all", *usable), np.column_stack([shared.step_s, shared.draws]), strict=True))
    # In weak scaling of the batch, the base runs the per-device batch, so its time is the time alone.
    same_share = "alone" not in row.ablations and row.work == row.point.devices
    if same_share:
        times["alone"] = times["one"]
    values, communication = _factors(base, row, times)
    both = paired_ratio.times([base, row])  # also rounds without ablations, so that the efficiency is the row's own
    ratio = np.array([both.step_s[0] / both.step_s[1], *(both.draws[0] / both.draws[1])])
    whole = row.work / row.point.devices * ratio
    rest = whole / np.prod(list(values.values()), axis=0) if values else whole
    steps = {name: values[name] for name in NAMES if name in values} | {UNEXPLAINED: rest}
    # Not missing: the base has the same per-device batch, or there are no stages that could wait. Older runs, sharded
    # steps and accelerators have no processes of one device each.
    needless = {"alone": same_share, "schedule": stages(row.point) == 1, "processes": "processes" not in row.ablations}
    missing = [(row, name) for name in PARTS if name not in usable and not needless.get(name)]
    if any(RESIDENT in side.ablations for side in (base, row)):
        missing += [(side, RESIDENT) for side in (base, row) if _fault(side, RESIDENT)]
    reasons = tuple(f"{side.point_id}/{name} ({_fault(side, name)})" for side, name in missing)
    return Waterfall(
        row=row,
        base=base,
        efficiency=shared.estimate(whole[0], whole[1:]),
        factors=_steps(shared, steps),
        predicted_s=predicted_s,
        missing=reasons,
        rounds=shared.rounds,
        processes=min(each.timing.processes for each in (base, row, *usable.values())),
        **{name: shared.estimate(value[0], value[1:]) for name, value in communication.items()},
    )


def _fault(row: Row, part: str) -> str:
    """Why an ablation cannot be used, as a clause; "" if it can. A loss that compares all examples of the global batch
    does less work for a part of the batch than a device does for its part of the loss."""
    found = row.ablations.get(part)
    if found is None:
        return "it was not planned"
    if why := fault(found):
        return why
    counts = [each.point.record.compile_report.product_flops_per_step for each in (found, row) if each.point.record]
    plain = part == "alone" and found.point.global_batch != row.point.global_batch
    if plain and len(counts) == 2 and all(counts):
        share = row.point.devices * float(counts[0] or 0) / float(counts[1] or 0)
        if abs(share - 1) > SHARE:
            return OTHER_WORK.format(share=share)
    return ""


def _usable(base: Row, row: Row) -> dict[str, Row]:
    """The rows with times for the factors, by their names in `_factors`."""
    usable = {name: row.ablations[name] for name in PARTS if not _fault(row, name)}
    if "local" in usable and (mean := stragglers.averaged(usable["local"])) is not None:
        usable["mean"] = mean
    if not (_fault(base, RESIDENT) or _fault(row, RESIDENT)):
        usable |= {"one resident": base.ablations[RESIDENT], "all resident": row.ablations[RESIDENT]}
    return usable


def _factors(base: Row, row: Row, times: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(the factors that can be computed from these times, the known times of the communication).

    times: by name (1 + draws,) seconds: the value, then all draws. The names are one, all, alone, processes, local,
      schedule, communication; mean: of `local` over its processes; one resident, all resident: with resident input.
    """
    n, same = row.point.devices, np.ones_like(times["one"])
    factors: dict[str, np.ndarray] = {}
    known: dict[str, np.ndarray] = {}
    if (unfed := _unfed(base, row, times)) is None:  # otherwise waiting for input would be in every other factor
        return factors, known
    one, all_ = unfed
    factors[INPUT] = (all_ / times["all"]) / (one / times["one"])
    if "alone" in times:
        alone = one if "alone" not in row.ablations else times["alone"]
        factors[EXTRA_WORK] = same * _extra_work(base, row, float(row.work * one[0] / (n * alone[0])))
        # A stage has the micro-batches of one device, so its products are not smaller: there are fewer or more of them.
        share = STAGE_WORK if stages(row.point) == n > 1 else SMALLER_BATCH
        factors[share] = row.work * one / (n * alone) / factors[EXTRA_WORK]
    if "local" in times:
        local, mean = times.get("schedule", times["local"]), times.get("mean", times["local"])
        known["local_s"] = local
        factors[BUBBLE] = times["local"] / local  # 1 without stages
        factors[SLOWEST_PROCESS] = mean / times["local"]  # a step lasts as long as its slowest process
        if "alone" in times:
            # The slowest device sets the pace of all, and `alone` took turns on them.
            balance = core_speeds.balance(row.point.rounds)
            factors[UNEQUAL] = same * (balance if math.isfinite(balance) else 1.0)
            # Without processes of their own, what one runtime costs its devices is a part of contention.
            apart = times.get("processes", mean)
            factors[CLOCK] = same * _clock(base, row)
            factors[CONTENTION] = alone / apart / factors[UNEQUAL] / factors[CLOCK]
            factors[RUNTIME] = apart / mean
        seen = all_ - local  # what communication adds to the step: the part that is not hidden
        if "communication" in times:
            seen = np.clip(seen, 0, times["communication"])  # noise can exceed either end
            known["hidden"] = 1 - seen / times["communication"]
        factors[COMMUNICATION] = local / (local + seen)
    if "communication" in times:
        known["communication_s"] = times["communication"]
    return factors, known


def _clock(base: Row, row: Row) -> float:
    """The mean clock of the devices over that of the base's device; 1: unknown. Heat and power limits lower it when
    more devices work at the same time."""
    ratio = energy.clock_of(row.point.rounds) / energy.clock_of(base.point.rounds)
    return ratio if math.isfinite(ratio) and ratio > 0 else 1.0


def _unfed(base: Row, row: Row, times: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """The times of one and of all devices without waiting for input: the steps with resident input; None if these
    failed. Older records have a waited share instead."""
    if "all resident" in times:
        return times["one resident"], times["all resident"]
    if any(RESIDENT in side.ablations for side in (base, row)):
        return None
    waits = [float(np.nan_to_num(each.point.outcome("waited_share"))) for each in (base, row)]
    return times["one"] * (1 - waits[0]), times["all"] * (1 - waits[1])


def _filled(row: Row) -> float:
    """The share of a one-device step that its products would take at the rate of a large product; 1: unknown."""
    record, rate = row.point.record, row.use.product_flop_per_s
    if record is None or not math.isfinite(rate):
        return 1.0
    return float(record.compile_report.product_flops_per_step or 0) / rate / row.timing.step_s.value


def _extra_work(base: Row, row: Row, measured: float) -> float:
    """The FLOPs of matrix products on one device over those on n devices for the same work; 1: equal.

    With stages it is 1: each tick of their loop chooses a branch, and the count takes the most expensive branch even in
    idle ticks. It is also 1 if products do not dominate the base's time, as for boosted trees, which have the same
    products for any number of rows. measured: the same ratio from times.
    """
    if stages(row.point) > 1:
        return 1.0
    alone = row.ablations.get("alone")
    counts = [
        each.point.record.compile_report.product_flops_per_step for each in (base, alone) if each and each.point.record
    ]
    if len(counts) < 2 or not all(counts):
        return 1.0
    ratio = float(counts[0] or 0) * row.work / (row.point.devices * float(counts[1] or 0))
    if abs(ratio - 1) <= COUNTED or _filled(base) < LEAST_FILLED:
        return 1.0
    return ratio if (1 / measured - 1) / (1 / ratio - 1) >= LEAST_SHOWN else 1.0


def _steps(shared: SharedTimes, values: dict[str, np.ndarray]) -> tuple[Factor, ...]:
    """The factors. values: by name (1 + draws,), in order from 100 % down."""
    factors, before = [], np.ones_like(next(iter(values.values())))
    for name, value in values.items():
        lost, before = 100 * before * (1 - value), before * value
        if np.nanmax(np.abs(value - 1)) > EXACTLY_1:
            factors.append(Factor(name=name, value=_estimate(shared, value), lost=_estimate(shared, lost)))
    return tuple(factors)


def _estimate(shared: SharedTimes, value: np.ndarray) -> Estimate:
    """value: (1 + draws,), the value, then all draws. No interval if all draws are equal, as for counted numbers."""
    if np.ptp(value[np.isfinite(value)]) <= EXACTLY_1 * abs(value[0]):
        return Estimate(value=float(value[0]))
    return shared.estimate(float(value[0]), value[1:])


def idle_share(stages: float, parts: float, chunks: int = 1) -> float:
    """The idle share of all slots of a schedule: (K - 1) / (V M + K - 1) (Huang et al., arXiv:1811.06965)."""
    return (stages - 1) / (chunks * parts + stages - 1)


def stages(point: MeasuredPoint) -> int:
    """K, the number of stages: the size of the mesh axis `stage`; 1 without that axis."""
    for axis in MESH.of(point.levers).split(","):
        name, _, size = axis.partition("=")
        if name == "stage":
            return int(size)
    return point.devices if point.strategy == "pipeline" else 1


def micro_batches(point: MeasuredPoint) -> int:
    """M, the number of micro-batches."""
    return ACCUMULATE.of(point.levers)


def chunks(point: MeasuredPoint) -> int:
    """V, the chunks of blocks per stage."""
    return SCHEDULE.of(point.levers).chunks


def bubble_share(point: MeasuredPoint) -> float:
    """The share of time that a stage of this point waits for work; 0 without stages."""
    return idle_share(stages(point), micro_batches(point), chunks(point))
