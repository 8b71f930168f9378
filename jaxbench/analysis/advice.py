# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What would help: advice that follows from the factors of a waterfall, with the numbers behind it."""

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

WORTH = 1.0  # percentage points of efficiency: a factor that loses less gets no advice
HARDLY = 0.1  # up to this share of hidden communication, overlap is the advice
MORE = 4  # the advice for a pipeline: this many times the micro-batches
FEW = 3  # gradient arrays: joining fewer of them saves little


def sentences(waterfalls: Sequence[Waterfall]) -> list[str]:
    """At most one sentence for each factor, largest loss first.

    It is about the strategy and scaling that lose most to the factor on their largest device count. A factor gets no
    sentence if its confidence interval contains 0, or if it loses less than `WORTH`.
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
    """The advice on one factor; "" if there is none. members: the waterfalls of one strategy and scaling."""
    last = max(members, key=lambda one: one.point.devices)
    if factor == SMALLER_SHARE:
        return _larger_share(members, last)
    if factor == COMMUNICATION:
        found = "; ".join(filter(None, (_overlap(last), _fewer_bytes(last, waterfalls), _one_payload(last))))
        return f"{found}." if found else ""
    return {SHARED_MACHINE: _shared_machine, BUBBLE: _micro_batches, INPUT: _batches_ahead}[factor](last)


def _lost(one: Waterfall, name: str) -> float:
    """The loss in percentage points; 0 for a factor with an interval that contains 0."""
    factor = one.factor(name)
    return factor.lost.value if factor is not None and factor.clear else 0.0


def _on(one: Waterfall) -> str:
    return f"on {devices(one.point.devices)}"


def _share(one: Waterfall) -> int:
    """The per-device batch; 0 if the strategy does not divide the batch, or if the ablation was not measured."""
    alone = one.row.explained_by.get("alone")
    share = alone.point.global_batch if alone is not None else 0
    return share if share * one.point.devices == one.point.global_batch else 0


def _larger_share(members: Sequence[Waterfall], last: Waterfall) -> str:
    """The per-device batch at which the loss ends, from the per-device batches of the other device counts."""
    share, record = _share(last), last.point.record
    if not share or record is None:
        return ""
    cost = f"{points(_lost(last, SMALLER_SHARE))} points {_on(last)}"
    known = sorted((one for one in members if _share(one) and not one.missing), key=_share)
    free = next((one for one in known if _lost(one, SMALLER_SHARE) < WORTH), None)
    if free is None:
        rest = _larger_batches(last) or "run with --config.explain=more to find the batch at which the loss ends"
        return (
            f"a per-device batch of {share} {record.unit} costs {cost}, and the largest one that was measured "
            f"({_share(known[-1]) if known else share}) still loses time: {rest}."
        )
    return (
        f"a per-device batch of {share} {record.unit} costs {cost}; {_share(free)} {record.unit} cost less than "
        f"{WORTH:g} point ({_on(free)}). Use a global batch of {_share(free) * last.point.devices} instead of "
        f"{last.point.global_batch} {_on(last)}."
    )


def _larger_batches(last: Waterfall) -> str:
    """The speed of one device with 2 and 4 times the batch of the base; "" if that was not measured."""
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
        f"contention between the devices costs {points(factor.lost.value)} points {_on(last)}. Each step takes "
        f"{1 / factor.value.value:.2f}x as long when all devices run, before any communication, so overlap or fewer "
        "bytes cannot help."
    )


def _micro_batches(last: Waterfall) -> str:
    stages, parts, chunks = bubble.stages(last.point), bubble.micro_batches(last.point), bubble.chunks(last.point)
    now, then = (bubble.idle(stages, count, chunks) for count in (parts, MORE * parts))
    return (
        f"with {parts} micro-batches {100 * now:.0f} % of the schedule of {stages} stages is idle. With "
        f"{MORE * parts} it would be {100 * then:.0f} % (--config.lever.accumulate={MORE * parts})."
    )


def _batches_ahead(last: Waterfall) -> str:
    waited = last.point.outcome("waited_share")
    share = f" (the step waits {100 * waited:.0f} % of its time)" if math.isfinite(waited) else ""
    return (
        f"waiting for input costs {points(_lost(last, INPUT))} points {_on(last)}{share}: prepare more batches ahead "
        "(--config.lever.input=pipeline:8)."
    )


def _overlap(last: Waterfall) -> str:
    hidden = last.hidden
    if not hidden.known or (hidden.hi if hidden.has_interval else hidden.value) > 2 * HARDLY or hidden.value > HARDLY:
        return ""
    return (
        f"{percent(hidden)} of the communication is hidden {_on(last)}: improve the overlap. Hiding all "
        f"{seconds(last.communication_s.value)} of it would regain at most {points(_lost(last, COMMUNICATION))} points"
    )


def _fewer_bytes(last: Waterfall, waterfalls: Sequence[Waterfall]) -> str:
    """If the collectives alone take longer than the rest of the step: which strategy of the run sends fewer bytes."""
    alone, local, mine = last.communication_s, last.local_s, _sent(last)
    if not (alone.known and local.known and alone.value > local.value and mine):
        return ""
    same = [w for w in waterfalls if (w.point.devices, w.point.scaling) == (last.point.devices, last.point.scaling)]
    least = min((one for one in same if _sent(one)), key=_sent)
    text = (
        f"its collectives alone take {seconds(alone.value)} {_on(last)}, the rest of the step {seconds(local.value)}; "
        f"a device sends {scaled(mine, 'B')} per step"
    )
    if _sent(least) < mine:
        return f"{text}, and {scaled(_sent(least), 'B')} with {least.point.strategy}"
    return f"{text}, and no other strategy of this run sends less"


def _one_payload(last: Waterfall) -> str:
    """Advice for CPU processes with one all-reduce per gradient array. XLA combines these on accelerators only."""
    record = last.point.record
    if record is None or record.processes == 1 or record.platform != "cpu":
        return ""
    sums = [each for each in record.passport.collectives if each.kind == "all-reduce"]
    arrays = sum(each.count - each.scalars for each in sums)
    if arrays < FEW or len(sums) < len(record.passport.collectives):
        return ""
    return (
        f"between CPU processes each of its {arrays} gradient arrays has its own all-reduce with its own latency: "
        "--config.strategy=shard_map --config.lever.reduction=fused sends them as one"
    )


def _sent(one: Waterfall) -> int:
    """The bytes that one device sends in a step; 0: unknown."""
    record = one.point.record
    return sum(each.wire_bytes for each in record.passport.collectives) if record is not None else 0
