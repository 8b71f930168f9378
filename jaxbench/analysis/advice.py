# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What would help: sentences that follow from the factors of a waterfall, each with the number that it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis import bubble, paired_ratio
from jaxbench.analysis.loss_sentences import points
from jaxbench.analysis.quantities import devices, percent, scaled, seconds, times
from jaxbench.analysis.scaling import fault
from jaxbench.analysis.waterfall import (
    BUBBLE,
    COMMUNICATION,
    INPUT,
    SHARED_MACHINE,
    SMALLER_SHARE,
    Waterfall,
)

WORTH = 1.0  # points: a factor that loses less gets no advice
HARDLY = 0.1  # of the communication: less is hardly hidden
MORE = 4  # times as many micro-batches
FEW = 3  # arrays: joining fewer of them saves little


def sentences(waterfalls: Sequence[Waterfall]) -> list[str]:
    """One for each factor, the largest loss first: of the strategy and scaling that lose most to it on most devices.

    None for a factor whose interval contains 0, or that loses less than `WORTH`.
    """
    families: dict[str, list[Waterfall]] = {}
    for one in waterfalls:
        families.setdefault(one.family, []).append(one)
    largest = {name: max(members, key=lambda one: one.point.devices) for name, members in families.items()}
    found = []
    for factor in (SMALLER_SHARE, SHARED_MACHINE, BUBBLE, INPUT, COMMUNICATION):
        name = max(largest, key=lambda name: _lost(largest[name], factor), default="")
        if name and _lost(largest[name], factor) >= WORTH and (text := _text(factor, families[name], waterfalls)):
            found.append((_lost(largest[name], factor), f"{name}: {text}"))
    return [sentence for _, sentence in sorted(found, key=lambda one: -one[0])]


def _text(factor: str, members: Sequence[Waterfall], waterfalls: Sequence[Waterfall]) -> str:
    """members: of one strategy and scaling."""
    last = max(members, key=lambda one: one.point.devices)
    if factor == SMALLER_SHARE:
        return _larger_share(members, last)
    if factor == COMMUNICATION:
        found = "; ".join(filter(None, (_overlap(last), _fewer_bytes(last, waterfalls), _one_payload(last))))
        return f"{found}." if found else ""
    return {SHARED_MACHINE: _shared_machine, BUBBLE: _micro_batches, INPUT: _batches_ahead}[factor](last)


def _lost(one: Waterfall, name: str) -> float:
    """In points; 0 for a factor within the noise."""
    factor = one.factor(name)
    return factor.lost.value if factor is not None and factor.clear else 0.0


def _on(one: Waterfall) -> str:
    return f"on {devices(one.point.devices)}"


def _share(one: Waterfall) -> int:
    """Examples that one device has; 0 where the batch is not what is divided, or was not measured."""
    alone = one.row.explained_by.get("alone")
    share = alone.point.global_batch if alone is not None else 0
    return share if share * one.point.devices == one.point.global_batch else 0


def _larger_share(members: Sequence[Waterfall], last: Waterfall) -> str:
    """The batch at which the smaller share stops costing, from the shares of the other device counts."""
    share, record = _share(last), last.point.record
    if not share or record is None:
        return ""
    cost = f"{points(_lost(last, SMALLER_SHARE))} points {_on(last)}"
    known = sorted((one for one in members if _share(one) and not one.missing), key=_share)
    free = next((one for one in known if _lost(one, SMALLER_SHARE) < WORTH), None)
    if free is None:
        rest = _larger_batches(last) or "run with --config.explain=more to find the batch at which it stops"
        return (
            f"a share of {share} {record.unit} costs {cost}, and the largest that was measured "
            f"({_share(known[-1]) if known else share}) still costs: {rest}."
        )
    return (
        f"a share of {share} {record.unit} costs {cost}, one of {_share(free)} less than {WORTH:g} ({_on(free)}): with "
        f"a global batch of {_share(free) * last.point.devices} instead of {last.point.global_batch}, each of "
        f"{devices(last.point.devices)} would have that."
    )


def _larger_batches(last: Waterfall) -> str:
    """What one device gains from 2 and 4 times the batch of the base; "" where that was not measured."""
    batch, found = last.base.point.global_batch, []
    for name, row in last.base.explained_by.items():
        if name.startswith("batch=") and not fault(row):
            gain = paired_ratio.ratio(last.base, row).times(row.point.global_batch / batch)
            if gain.known:
                found.append(f"{times(gain)} as fast with a batch of {row.point.global_batch}")
    return f"one device is {', '.join(found)} as with {batch}" if found else ""


def _shared_machine(last: Waterfall) -> str:
    factor = last.factor(SHARED_MACHINE)
    if factor is None:
        return ""
    return (
        f"{points(factor.lost.value)} points are lost {_on(last)} before anything is sent, because all at once take "
        f"{1 / factor.value.value:.2f} times as long as one alone: neither overlap nor fewer bytes bring them back."
    )


def _micro_batches(last: Waterfall) -> str:
    stages, parts, chunks = bubble.stages(last.point), bubble.micro_batches(last.point), bubble.chunks(last.point)
    now, then = (bubble.idle(stages, count, chunks) for count in (parts, MORE * parts))
    return (
        f"{100 * now:.0f} % of the schedule of {stages} stages is idle with {parts} micro-batches, and "
        f"{100 * then:.0f} % would be with {MORE * parts} (--config.lever.accumulate={MORE * parts})."
    )


def _batches_ahead(last: Waterfall) -> str:
    waited = last.point.outcome("waited_share")
    share = f" (the step waits in {100 * waited:.0f} % of its time)" if math.isfinite(waited) else ""
    return (
        f"{points(_lost(last, INPUT))} points are lost {_on(last)} to waiting for input{share}: prepare more batches "
        "ahead (--config.lever.input=pipeline:8)."
    )


def _overlap(last: Waterfall) -> str:
    hidden = last.hidden
    if not hidden.known or (hidden.hi if hidden.has_interval else hidden.value) > 2 * HARDLY or hidden.value > HARDLY:
        return ""
    return (
        f"{percent(hidden)} of the communication is hidden {_on(last)}: overlap is what is missing, and hiding all of "
        f"its {seconds(last.communication_s.value)} would bring back at most {points(_lost(last, COMMUNICATION))} "
        "points"
    )


def _fewer_bytes(last: Waterfall, waterfalls: Sequence[Waterfall]) -> str:
    """Where the collectives alone take longer than everything else: which strategy of the run sends less."""
    alone, local, mine = last.communication_s, last.local_s, _sent(last)
    if not (alone.known and local.known and alone.value > local.value and mine):
        return ""
    same = [w for w in waterfalls if (w.point.devices, w.point.scaling) == (last.point.devices, last.point.scaling)]
    least = min((one for one in same if _sent(one)), key=_sent)
    text = (
        f"its collectives alone take {seconds(alone.value)} {_on(last)}, the rest of the step {seconds(local.value)}: "
        f"of the {scaled(mine, 'B')} that a device sends in a step"
    )
    if _sent(least) < mine:
        return f"{text}, {least.point.strategy} would send {scaled(_sent(least), 'B')}"
    return f"{text}, no other strategy of this run saves any"


def _one_payload(last: Waterfall) -> str:
    """Of processes on CPUs that sum every gradient by itself: XLA joins all-reduces for accelerators only."""
    record = last.point.record
    if record is None or record.processes == 1 or record.platform != "cpu":
        return ""
    sums = [each for each in record.passport.collectives if each.kind == "all-reduce"]
    arrays = sum(each.count - each.scalars for each in sums)
    if arrays < FEW or len(sums) < len(record.passport.collectives):
        return ""
    return (
        f"between processes on CPUs each of its {arrays} arrays of gradients has an all-reduce of its own, and each of "
        "those a start that costs: --config.strategy=shard_map --config.lever.reduction=fused sends them as one"
    )


def _sent(one: Waterfall) -> int:
    """Bytes that a device sends in a step; 0: unknown."""
    record = one.point.record
    return sum(each.wire_bytes for each in record.passport.collectives) if record is not None else 0
