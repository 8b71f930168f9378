# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The arms of a lever sweep. Each is compared with its baseline: the first arm of its (strategy, scaling, devices)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.scaling import Row
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate
from jaxbench.statistics.timing import Timing


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmResult:
    """One arm of one group (strategy, scaling, devices).

    Attributes:
      label: the arm's name in tables and figures: the value of the swept lever, or the full name of the arm.
      baseline: the first arm of the same group, measured or not. The baseline of the first arm is itself.
      ratio: step time over the baseline's, from the rounds that both share. UNKNOWN without an interval.
      speedup: examples per second over the baseline's, from the same rounds: 1 / ratio if the batches are equal.
      memory_ratio: `peak_bytes` over the baseline's; NaN: unknown.
      verdict: baseline | faster | slower (the whole interval of `speedup` is on that side of 1) | cannot tell | "" (not
        measured, or it runs another part of the step, so the work differs).
      why: the reason for "cannot tell", as a clause.
    """

    row: Row
    label: str
    baseline: Row
    ratio: Estimate = UNKNOWN
    speedup: Estimate = UNKNOWN
    memory_ratio: float = math.nan
    verdict: str = ""
    why: str = ""

    @property
    def point(self) -> MeasuredPoint:
        return self.row.point

    @property
    def timing(self) -> Timing:
        return self.row.timing

    @property
    def usable(self) -> bool:
        """Whether it was measured and no check failed."""
        return self.timing.step_s.known and self.point.check_ok is not False

    @property
    def quotable(self) -> bool:
        """Whether its row may be quoted, as in `Row.quotable`."""
        return self.row.quotable

    @property
    def peak_bytes(self) -> float:
        return self.point.peak_bytes

    @property
    def temp_bytes(self) -> float:
        return self.point.temp_bytes

    def outcome(self, name: str) -> float:
        return self.point.outcome(name)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmGroup:
    """The arms of one (strategy, scaling, devices). name: the fields that differ between groups; "" for one group."""

    name: str
    strategy: str
    scaling: str
    devices: int
    arms: list[ArmResult]

    @property
    def oversubscribed(self) -> bool:
        return any(arm.point.oversubscribed for arm in self.arms)

    @staticmethod
    def speedup(arm: ArmResult, over: ArmResult) -> Estimate:
        """The speed of `arm` over the speed of `over` in examples per second, from the rounds that both share."""
        return paired_ratio.ratio(arm, over).under(arm.point.examples / over.point.examples)


def analyse(rows: Sequence[Row], swept: Sequence[str]) -> list[ArmGroup]:
    """Every group of the run with its arms in the order of the plan. swept: the names of the levers that differ."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.point.strategy, row.point.scaling, row.point.devices), []).append(row)
    keys = list(groups)
    return [
        ArmGroup(
            name=_name(key, keys), strategy=key[0], scaling=key[1], devices=key[2],
            arms=[_arm(row, group[0], swept) for row in group],
        )
        for key, group in groups.items()
    ]  # fmt: skip


def arms_of(places: Sequence[ArmGroup]) -> list[ArmResult]:
    return [arm for place in places for arm in place.arms]


def label(point: MeasuredPoint, swept: Sequence[str]) -> str:
    """The value of the one swept lever; the arm's full name if several levers, or a ladder, are swept."""
    if list(swept) == ["batch"]:
        return str(point.global_batch)
    if len(swept) == 1 and swept[0] in point.levers:
        return point.levers[swept[0]]
    return point.arm or "as configured"


def _name(key: tuple[str, str, int], keys: Sequence[tuple[str, str, int]]) -> str:
    differs = [len({other[i] for other in keys}) > 1 for i in range(3)]
    words = [part for part, shown in zip((key[0], key[1]), differs, strict=False) if shown]
    return ", ".join([*([" ".join(words)] if words else []), *([devices(key[2])] if differs[2] else [])])


def _arm(row: Row, baseline: Row, swept: Sequence[str]) -> ArmResult:
    name = label(row.point, swept)
    if not row.timing.step_s.known:
        return ArmResult(row=row, label=name, baseline=baseline)
    memory = row.point.peak_bytes / baseline.point.peak_bytes
    if row is baseline:
        one = Estimate(value=1.0) if row.timing.step_s.has_interval else UNKNOWN
        facts = dict(ratio=one, speedup=one, memory_ratio=memory, verdict="baseline")
        return ArmResult(row=row, label=name, baseline=baseline, **facts)  # type: ignore[arg-type]
    if not baseline.timing.step_s.known:
        why = f"its baseline {baseline.point.point} has no times"
        return ArmResult(row=row, label=name, baseline=baseline, verdict="cannot tell", why=why)
    ratio = paired_ratio.ratio(row, baseline)
    work_ratio = row.point.examples / baseline.point.examples
    speedup = ratio.under(work_ratio)
    same_part = row.point.levers.get("part") == baseline.point.levers.get("part")
    verdict, why = judge(row, baseline, speedup) if same_part else ("", "")
    return ArmResult(
        row=row, label=name, baseline=baseline, ratio=ratio, speedup=speedup, memory_ratio=memory, verdict=verdict,
        why=why,
    )  # fmt: skip


def judge(row: Row, baseline: Row, speedup: Estimate) -> tuple[str, str]:
    """(faster | slower | cannot tell, the reason for "cannot tell")."""
    for each in (row, baseline):
        if each.point.check_ok is not True:
            fault = "did not pass its checks" if each.point.check_ok is False else "was never checked"
            return "cannot tell", f"{each.point.point} {fault}"
        if each.gate == "refused":
            return "cannot tell", f"{each.point.point} was refused by a gate, {each.gate_reason}"
    if row.point.oversubscribed:
        return "cannot tell", "with more devices than cores, the times do not show the speed"
    if not speedup.has_interval:
        return "cannot tell", f"fewer than the {MIN_ROUNDS} shared rounds that an interval needs"
    if speedup.lo > 1:
        return "faster", ""
    return ("slower", "") if speedup.hi < 1 else ("cannot tell", "the interval contains 1")
