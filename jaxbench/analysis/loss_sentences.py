# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on waterfalls: what each factor loses, how much communication is hidden, and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis import busy, waterfall
from jaxbench.analysis.quantities import devices, interval, percent, scaled, seconds, times
from jaxbench.analysis.run_rows import fault
from jaxbench.analysis.waterfall import (
    BUBBLE,
    CLOCK,
    COMMUNICATION,
    CONTENTION,
    EXTRA_WORK,
    INPUT,
    RUNTIME,
    SLOWEST_PROCESS,
    SMALLER_BATCH,
    STAGE_WORK,
    TERMS,
    UNEQUAL,
    UNEXPLAINED,
    Factor,
    Waterfall,
    Withheld,
)
from jaxbench.statistics import core_speeds, paired_ratio
from jaxbench.statistics.bootstrap import Estimate

_TO = {
    UNEQUAL: "to devices of unequal speed",
    CLOCK: "to a lower clock",
    RUNTIME: "to one runtime for all devices",
    EXTRA_WORK: "to extra work",
    SMALLER_BATCH: "to a smaller per-device batch",
    CONTENTION: "to contention",
    STAGE_WORK: "to stages that do more than a K-th of the work",
    SLOWEST_PROCESS: "to the slowest process",
    BUBBLE: "to the pipeline's bubble",
    INPUT: "to waiting for input",
    COMMUNICATION: "to communication that is not hidden",
    UNEXPLAINED: "unexplained",
}
_FROM = {
    **{name: words.replace("to ", "from ", 1) for name, words in _TO.items()},
    COMMUNICATION: "from communication",
    STAGE_WORK: "from stages that do less than a K-th of the work",
    UNEXPLAINED: "unexplained",
}
# Advice by what it is about, with the numbers of the waterfall.
ADVICE = {
    "free batch": "a per-device batch of {share} {unit} costs {cost}; {free} {unit} cost less than {worth:g} point "
    "({on_free}). Use a global batch of {better} instead of {batch} {on}.",
    "no free batch": "a per-device batch of {share} {unit} costs {cost}, and the largest one that was measured "
    "({largest}) still loses time: {rest}.",
    "larger batches": "one device is {found} as with {batch}",
    "explain more": "run with --config.explain=more to find the batch at which the loss ends",
    CONTENTION: "contention between the devices costs {cost}. Each step takes {slower:.2f}x as long when all devices "
    "run, before any communication, so overlap or fewer bytes cannot help.",
    "a slow device": "{name} was {ratio:.1f} times slower than the fastest of these devices, and all wait for it: a "
    "lower clock (heat or a power limit), another process on it, or a slower kind of device.",
    "a slow CPU": "{name} was {ratio:.1f} times slower than the fastest CPU of these devices, and all wait for it: "
    "another tenant of the same physical core, a lower clock, or a slower kind of core.",
    RUNTIME: "{count} processes of one device each would take {apart} per step instead of {local}, before any "
    "communication. So one process for all devices costs {cost}, and not the machine "
    "(--config.mesh.processes=per_device).",
    BUBBLE: "with {parts} micro-batches {now:.0f} % of the schedule of {stages} stages is idle. With {more} it would "
    "be {then:.0f} % (--config.lever.accumulate={more}).",
    INPUT: "waiting for input costs {cost}{waits}: prepare more batches ahead (--config.lever.input=pipeline:8).",
    "waits": " (the step waits {percent:.0f} % of its time)",
    "overlap": "{hidden} of the communication is hidden {on}: improve the overlap. Hiding all {communication} of it "
    "would regain at most {points} points",
    "bytes": "its collectives alone take {alone} {on}, the rest of the step {local}; a device sends {sent} per step, "
    "and {other}",
    "fewer bytes": "{sent} with {strategy}",
    "no fewer bytes": "no other strategy of this run sends less",
    "one payload": "between CPU processes each of its {arrays} gradient arrays has its own all-reduce with its own "
    "latency: --config.strategy=shard_map --config.lever.reduction=fused sends them as one",
    "busy": "{family}: {why}, so its losses say little about the program. Measure again on a quiet machine.",
    "withheld": "{points}: no waterfall, because {why}. {remedy}",
    "quiet": "Measure again on a quiet machine.",
    "more rounds": "More rounds need a larger --config.measure.rounds, or a larger --config.measure.budget_s.",
}
WORTH = 1.0  # percentage points of efficiency: a factor that loses less gets no advice
HARDLY = 0.1  # up to this share of hidden communication, overlap is the advice
MORE = 4  # the advice for a pipeline: this many times the micro-batches
FEW = 3  # gradient arrays: joining fewer of them saves little


def sentences(waterfalls: Sequence[Waterfall]) -> list[str]:
    """One sentence for each waterfall. It starts with strategy and scaling if the run has several."""
    several = len({one.family for one in waterfalls}) > 1
    return [f"{one.family}, {sentence(one)}" if several else sentence(one) for one in waterfalls]


def withheld(found: Sequence[Withheld]) -> list[str]:
    """One sentence for the points that have no waterfall for the same reason."""
    alike: dict[tuple[str, bool], list[str]] = {}
    for each in found:
        point = each.row.point
        name = f"{point.strategy} {point.scaling}, {devices(point.devices)}"
        alike.setdefault((each.why, each.busy), []).append(name)
    return [
        ADVICE["withheld"].format(
            points="; ".join(names), why=why, remedy=ADVICE["quiet" if busy_machine else "more rounds"]
        )
        for (why, busy_machine), names in alike.items()
    ]


def sentence(one: Waterfall) -> str:
    """One waterfall: "2 devices: 81 % [78, 84]. Lost: 3 to a smaller per-device batch, 9 to contention, ..."."""
    clear = [factor for factor in one.factors if factor.resolved]
    lost = [f"{points(f.lost.value)} {_TO[f.name]}{_of_schedule(one, f)}" for f in clear if f.lost.value > 0]
    gained = [f"{points(-f.lost.value)} {_FROM[f.name]}" for f in clear if f.lost.value < 0]
    within = [f"{TERMS.get(f.name, f.name)} {_range(f.lost)}" for f in one.factors if not (f.resolved or f.negligible)]
    parts = [f"{devices(one.point.devices)}: {percent(one.efficiency)}."]
    parts += [f"Lost: {', '.join(lost)}."] if lost else []
    parts += [f"Gained: {', '.join(gained)}."] if gained else []
    parts += [f"Not clear from 0: {', '.join(within)}."] if within else []
    parts += [f"Not measured: {'; '.join(one.missing)}."] if one.missing else []
    return " ".join(parts)


def _of_schedule(one: Waterfall, factor: Factor) -> str:
    """For the bubble: its share of the step without communication, and its share by the formula for its schedule."""
    if factor.name != BUBBLE:
        return ""
    time, schedule = 100 * (1 - factor.value.value), 100 * waterfall.bubble_share(one.point)
    return f" ({time:.0f} % of the time, {schedule:.0f} % of the schedule)"


def points(value: float) -> str:
    """Percentage points of efficiency: "9"; below 1 with one decimal, "0.4"; or "less than 0.1"."""
    if value < 0.05:
        return "less than 0.1"
    return f"{value:.0f}" if value >= 0.95 else f"{value:.1f}"


def _range(lost: Estimate) -> str:
    """The ends of an interval: "-1 to 3"."""
    digits = 0 if max(-lost.lo, lost.hi) >= 0.95 else 1  # as `points`
    return f"{lost.lo:z.{digits}f} to {lost.hi:z.{digits}f}"


def communication(waterfalls: Sequence[Waterfall]) -> list[str]:
    """Sentences: the time of each step's collectives alone, how much of it is hidden, and the profile's prediction."""
    result = []
    for one in waterfalls:
        if one.communication_s.known:
            text = f"{one.point.point}: the collectives alone take {interval(one.communication_s, seconds)}"
            text += f", {percent(one.hidden)} of it hidden" if one.hidden.known else ""
            known = math.isfinite(one.predicted_s)
            text += f"; alpha and beta of the machine profile predict {seconds(one.predicted_s)}" if known else ""
            result.append(f"{text}.")
    return result


def advice(waterfalls: Sequence[Waterfall]) -> list[str]:
    """At most one sentence for each factor, largest loss first.

    While somebody else used the machine in many rounds of a point (`analysis/busy.py`), its losses may be theirs. Then
    a sentence says so, and there is no advice about the program. Otherwise a sentence is about the strategy and scaling
    that lose most to the factor on their largest device count. A factor gets no sentence if its confidence interval
    contains 0, or if it loses less than `WORTH`.
    """
    disturbed = {one: each for one in waterfalls if (each := busy.of(one.row)) is not None}
    outside = [ADVICE["busy"].format(family=one.family, why=each.sentence) for one, each in disturbed.items()]
    waterfalls = [one for one in waterfalls if one not in disturbed]
    families: dict[str, list[Waterfall]] = {}
    for one in waterfalls:
        families.setdefault(one.family, []).append(one)
    # On the most devices a loss is largest, and its remedy worth most.
    largest = {name: max(members, key=lambda one: one.point.devices) for name, members in families.items()}
    found = []
    for factor in (SMALLER_BATCH, UNEQUAL, CONTENTION, RUNTIME, BUBBLE, INPUT, COMMUNICATION):
        name = max(largest, key=lambda name: _lost(largest[name], factor), default="")
        if name and _lost(largest[name], factor) >= WORTH and (text := _text(factor, families[name], waterfalls)):
            found.append((_lost(largest[name], factor), f"{name}: {text}"))
    return [*outside, *(sentence for _, sentence in sorted(found, key=lambda one: -one[0]))]


def _text(factor: str, members: Sequence[Waterfall], waterfalls: Sequence[Waterfall]) -> str:
    """The advice on one factor; "" if there is none. members: the waterfalls of one strategy and scaling."""
    last = max(members, key=lambda one: one.point.devices)
    if factor == SMALLER_BATCH:
        return _larger_share(members, last)
    if factor == COMMUNICATION:
        found = "; ".join(filter(None, (_overlap(last), _fewer_bytes(last, waterfalls), _one_payload(last))))
        return f"{found}." if found else ""
    other = {
        UNEQUAL: _unequal,
        CONTENTION: _shared_machine,
        RUNTIME: _one_runtime,
        BUBBLE: _micro_batches,
        INPUT: _batches_ahead,
    }
    return other[factor](last)


def _lost(one: Waterfall, name: str) -> float:
    """The loss in percentage points; 0 for a factor with an interval that contains 0."""
    factor = one.factor(name)
    return factor.lost.value if factor is not None and factor.resolved else 0.0


def _on_devices(one: Waterfall) -> str:
    return f"on {devices(one.point.devices)}"


def _cost_clause(one: Waterfall, factor: str) -> str:
    return f"{points(_lost(one, factor))} points {_on_devices(one)}"


def _share(one: Waterfall) -> int:
    """The per-device batch; 0 if the strategy does not divide the batch, or if the ablation was not measured."""
    alone = one.row.ablations.get("alone")
    share = alone.point.global_batch if alone is not None else 0
    return share if share * one.point.devices == one.point.global_batch else 0


def _larger_share(members: Sequence[Waterfall], last: Waterfall) -> str:
    """The per-device batch at which the loss ends, from the per-device batches of the other device counts."""
    share, record = _share(last), last.point.record
    if not share or record is None:
        return ""
    known = sorted((one for one in members if _share(one) and not one.missing), key=_share)
    free = next((one for one in known if _lost(one, SMALLER_BATCH) < WORTH), None)  # the smallest that loses nothing
    facts = {"share": share, "unit": record.unit, "cost": _cost_clause(last, SMALLER_BATCH)}
    if free is None:
        rest = _larger_batches(last) or ADVICE["explain more"]
        return ADVICE["no free batch"].format(largest=_share(known[-1]) if known else share, rest=rest, **facts)
    return ADVICE["free batch"].format(
        free=_share(free),
        worth=WORTH,
        on_free=_on_devices(free),
        better=_share(free) * last.point.devices,
        batch=last.point.global_batch,
        on=_on_devices(last),
        **facts,
    )


def _larger_batches(last: Waterfall) -> str:
    """The speed of one device with 2 and 4 times the batch of the base; "" if that was not measured."""
    batch, found = last.base.point.global_batch, []
    for name, row in last.base.ablations.items():
        if name.startswith("batch=") and not fault(row):
            gain = paired_ratio.ratio(last.base, row).times(row.point.global_batch / batch)
            if gain.known:
                found.append(f"{times(gain)} as fast with a batch of {row.point.global_batch}")
    return ADVICE["larger batches"].format(found=", ".join(found), batch=batch) if found else ""


def _shared_machine(last: Waterfall) -> str:
    factor = last.factor(CONTENTION)
    if factor is None:
        return ""
    return ADVICE[CONTENTION].format(cost=_cost_clause(last, CONTENTION), slower=1 / factor.value.value)


def _unequal(last: Waterfall) -> str:
    """Names the slowest device and its likely causes."""
    name, ratio = core_speeds.slowest(last.point.rounds)
    kind = "a slow CPU" if last.point.platform == "cpu" else "a slow device"
    return ADVICE[kind].format(name=name, ratio=ratio)


def _one_runtime(last: Waterfall) -> str:
    apart, local = last.row.ablations["processes"].timing.step_s, last.local_s
    return ADVICE[RUNTIME].format(
        count=last.point.devices,
        apart=seconds(apart.value),
        local=seconds(local.value),
        cost=_cost_clause(last, RUNTIME),
    )


def _micro_batches(last: Waterfall) -> str:
    parts, stages, chunks = (
        waterfall.micro_batches(last.point),
        waterfall.stages(last.point),
        waterfall.chunks(last.point),
    )
    now, then = (100 * waterfall.idle_share(stages, count, chunks) for count in (parts, MORE * parts))
    return ADVICE[BUBBLE].format(parts=parts, stages=stages, now=now, then=then, more=MORE * parts)


def _batches_ahead(last: Waterfall) -> str:
    waited = last.point.outcome("waited_share")
    waits = ADVICE["waits"].format(percent=100 * waited) if math.isfinite(waited) else ""
    return ADVICE[INPUT].format(cost=_cost_clause(last, INPUT), waits=waits)


def _overlap(last: Waterfall) -> str:
    """Advice to overlap communication; nothing unless surely little of it is hidden."""
    hidden = last.hidden
    # The interval counts, too: the advice needs a share that is surely small.
    if not hidden.known or (hidden.hi if hidden.has_interval else hidden.value) > 2 * HARDLY or hidden.value > HARDLY:
        return ""
    return ADVICE["overlap"].format(
        hidden=percent(hidden),
        on=_on_devices(last),
        communication=seconds(last.communication_s.value),
        points=points(_lost(last, COMMUNICATION)),
    )


def _fewer_bytes(last: Waterfall, waterfalls: Sequence[Waterfall]) -> str:
    """If the collectives alone take longer than the rest of the step: which strategy of the run sends fewer bytes."""
    alone, local, mine = last.communication_s, last.local_s, _sent(last)
    if not (alone.known and local.known and alone.value > local.value and mine):
        return ""
    same = [w for w in waterfalls if (w.point.devices, w.point.scaling) == (last.point.devices, last.point.scaling)]
    least = min((one for one in same if _sent(one)), key=_sent)  # not empty: it includes `last`
    sent, strategy = scaled(_sent(least), "B"), least.point.strategy
    other = ADVICE["fewer bytes"].format(sent=sent, strategy=strategy) if _sent(least) < mine else ""
    return ADVICE["bytes"].format(
        alone=seconds(alone.value),
        on=_on_devices(last),
        local=seconds(local.value),
        sent=scaled(mine, "B"),
        other=other or ADVICE["no fewer bytes"],
    )


def _one_payload(last: Waterfall) -> str:
    """Advice for CPU processes with one all-reduce per gradient array. XLA combines these on accelerators only."""
    record = last.point.record
    if record is None or record.processes == 1 or record.platform != "cpu":
        return ""
    # Only if all of its communication are all-reduces: the other strategies have no gradient arrays to join.
    sums = [each for each in record.compile_report.collectives if each.kind == "all-reduce"]
    arrays = sum(each.count - each.scalars for each in sums)  # a scalar, such as the loss, is no gradient
    if arrays < FEW or len(sums) < len(record.compile_report.collectives):
        return ""
    return ADVICE["one payload"].format(arrays=arrays)


def _sent(one: Waterfall) -> int:
    """The bytes that one device sends in a step; 0: unknown."""
    record = one.point.record
    return sum(each.wire_bytes for each in record.compile_report.collectives) if record is not None else 0
