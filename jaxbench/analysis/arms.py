# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The arms of a lever sweep. Each is compared with its baseline: the first arm of its (strategy, scaling, devices)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.run_rows import Row
from jaxbench.levers import PART
from jaxbench.statistics import paired_ratio
from jaxbench.statistics.bootstrap import MIN_ROUNDS, UNKNOWN, Estimate, estimate, quantile

# Why a comparison is inconclusive.
WHY = {
    "wrong": "{point} did not pass its checks",
    "unchecked": "{point} was never checked",
    "refused": "{point} was refused by a gate, {reason}",
    "oversubscribed": "with more devices than cores, the times do not show the speed",
    "few rounds": f"fewer than the {MIN_ROUNDS} shared rounds that an interval needs",
    "contains 1": "the interval contains 1",
}
MIN_LATENCIES = 100  # with fewer single calls, the 99th percentile would be the maximum


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmGroup:
    """The arms of one (strategy, scaling, devices)."""

    name: str  # the fields that differ between the groups of the run; "" for a single group
    strategy: str
    scaling: str
    devices: int
    arms: list[Row]  # in the order of the plan: the first one is the baseline

    @property
    def oversubscribed(self) -> bool:
        return any(arm.point.oversubscribed for arm in self.arms)

    @staticmethod
    def speedup(arm: Row, over: Row) -> Estimate:
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
            name=_name(key, keys),
            strategy=key[0],
            scaling=key[1],
            devices=key[2],
            arms=[_arm(row, group[0], swept) for row in group],
        )
        for key, group in groups.items()
    ]


def arms_of(groups: Sequence[ArmGroup]) -> list[Row]:
    return [arm for group in groups for arm in group.arms]


def label(point: MeasuredPoint, swept: Sequence[str]) -> str:
    """The value of the one swept lever; the arm's full name if several levers, or a ladder, are swept."""
    if list(swept) == ["batch"]:  # the lever's value may be 0, the experiment's own batch
        return str(point.global_batch)
    if len(swept) == 1 and swept[0] in point.levers:
        return point.levers[swept[0]]
    return point.arm or "as configured"


def _name(key: tuple[str, str, int], keys: Sequence[tuple[str, str, int]]) -> str:
    """The parts of (strategy, scaling, devices) in which the groups of a run differ."""
    differs = [len({other[i] for other in keys}) > 1 for i in range(3)]
    words = [part for part, shown in zip((key[0], key[1]), differs, strict=False) if shown]
    return ", ".join([*([" ".join(words)] if words else []), *([devices(key[2])] if differs[2] else [])])


def _arm(row: Row, baseline: Row, swept: Sequence[str]) -> Row:
    """The row compared with its baseline: ratio, gain, memory and verdict."""
    row = dataclasses.replace(row, label=label(row.point, swept), against=None if row is baseline else baseline)
    if PART.of(row.point.levers) == "inference":
        row = _with_latency(row)
    if not row.timing.step_s.known:
        return row
    memory = row.point.peak_bytes / baseline.point.peak_bytes  # NaN if either is unknown
    if row.against is None:  # 1 by definition, but a run without intervals has no ratios at all
        one = Estimate(value=1.0) if row.timing.step_s.has_interval else UNKNOWN
        return dataclasses.replace(row, ratio=one, gain=one, memory_ratio=memory, verdict="baseline")
    if not baseline.timing.step_s.known:
        why = f"its baseline {baseline.point_id} has no times"
        return dataclasses.replace(row, verdict="cannot tell", why=why)
    ratio = paired_ratio.ratio(row, baseline)
    # Arms may have other batches, so they are judged by examples per second.
    gain = ratio.under(row.point.examples / baseline.point.examples)
    # A part of a step does less work, so "faster" would say nothing.
    same_part = row.point.levers.get("part") == baseline.point.levers.get("part")
    verdict, why = gain_verdict(row, baseline, gain) if same_part else ("", "")
    return dataclasses.replace(row, ratio=ratio, gain=gain, memory_ratio=memory, verdict=verdict, why=why)


def _with_latency(row: Row) -> Row:
    """The row with percentiles of blocks of one call: a longer block is an average and has no percentiles."""
    rounds = [(unit, r) for unit, r in zip(row.point.units, row.point.rounds, strict=True) if r.steps == 1]
    if not rounds:
        why = "its blocks have more than one call" if row.point.rounds else "it was not measured"
        return dataclasses.replace(row, why_no_p99=why)
    samples = np.concatenate([r.block_s for _, r in rounds])
    owners = np.repeat(np.arange(len(rounds)), [len(r.block_s) for _, r in rounds])
    resampling, units = row.timing.resampling, [unit for unit, _ in rounds]
    # The same factors for both percentiles: another process would shift all of its calls alike.
    weights, differing = resampling.of(units), resampling.differing(row.point_id, units)

    def percentile(q: float) -> Estimate:
        # A latency that occurred, and not a mean of two, as in `quantile`.
        value = float(np.quantile(samples, q, method="inverted_cdf"))
        drawn = resampling.widened(value, quantile(samples, owners, weights, q), units)
        return estimate(value, drawn * differing, rounds=len(rounds))

    if len(samples) >= MIN_LATENCIES:
        return dataclasses.replace(row, p50=percentile(0.5), p99=percentile(0.99))
    why = f"{len(samples)} single calls, and a 99th percentile needs {MIN_LATENCIES}"
    return dataclasses.replace(row, p50=percentile(0.5), why_no_p99=why)


def gain_verdict(row: Row, baseline: Row, gain: Estimate) -> tuple[str, str]:
    """(faster | slower | cannot tell, the reason for "cannot tell")."""
    for arm in (row, baseline):
        if arm.point.check_ok is not True:
            fault = "wrong" if arm.point.check_ok is False else "unchecked"
            return "cannot tell", WHY[fault].format(point=arm.point_id)
        if arm.gate == "refused":
            return "cannot tell", WHY["refused"].format(point=arm.point_id, reason=arm.gate_reason)
    if row.point.oversubscribed:
        return "cannot tell", WHY["oversubscribed"]
    if not gain.has_interval:
        return "cannot tell", WHY["few rounds"]
    if gain.lo > 1:
        return "faster", ""
    return ("slower", "") if gain.hi < 1 else ("cannot tell", WHY["contains 1"])
