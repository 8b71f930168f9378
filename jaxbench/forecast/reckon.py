# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Extrapolates from compiled points to other device counts, and to more blocks than were compiled.

Device counts: the work and memory of a device are a + b / n, a replicated part plus a part divided among n devices,
fitted to two compiled counts. The arrays that all devices sum or gather are taken from the compiled program. Depth:
every number of a model of equal blocks is a + b x blocks, fitted to two compiled depths. Neither is exact, and a record
names its sources.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbench.catalog.targets import Target
from jaxbench.errors import UserError
from jaxbench.forecast import estimate, schedule
from jaxbench.forecast.network import Network
from jaxbench.forecast.schedule import Event, Times
from jaxbench.forecast.work import Cost, chip
from jaxbench.records.forecasts import RECKONED, ForecastRecord
from jaxbench.records.schema import Collective

# Strategies that send gradients and parameters among all devices. The compiler chooses the collectives.
_WHOLE = ("jit_auto", "jit_explicit", "pmap", "shard_map", "zero1", "zero2", "fsdp")
_SAME = 0.02  # the messages at two counts are of the same arrays if their sizes differ by less than this, relative


@dataclass(frozen=True)
class CompiledForecast:
    """A compiled point: its forecast and its schedule."""

    forecast: ForecastRecord
    events: tuple[Event, ...]


def shared(few: tuple[int, float], many: tuple[int, float], count: int) -> float:
    """a + b / count through two (devices, value), with b >= 0, because a device never does more if there are more."""
    (n, at_n), (m, at_m) = few, many
    part = max(0.0, (at_n - at_m) / (1 / n - 1 / m))
    return max(at_n, at_m) if part == 0.0 else at_m + part * (1 / count - 1 / m)


def at_count(
    few: CompiledForecast, many: CompiledForecast, count: int, target: Target, network: Network
) -> ForecastRecord:
    """The forecast for `count` devices from two compiled counts. target: the target with `count` devices. Raises
    UserError if no formula gives the messages for other device counts."""
    n, m = few.forecast.devices, many.forecast.devices
    there = schedule.regrouped(many.events, m, n)
    notes: tuple[str, ...] = ()
    if n > 1 and abs(_sent(there) - _sent(few.events)) > _SAME * max(_sent(few.events), 1):
        differ = f"on {n} devices a device sends {_sent(few.events):,} bytes, but {m} devices imply {_sent(there):,}"
        if many.forecast.strategy not in _WHOLE:
            raise UserError(
                f"{many.forecast.strategy} cannot be extrapolated in the number of devices here: {differ}: compile "
                "each count instead, without --counts."
            )
        notes = (f"The compiler chose other messages for fewer devices: {differ}.",)
    was = _work(many.events)
    work_s = shared((n, _work(few.events)), (m, was), count)
    events = _slower(schedule.regrouped(many.events, m, count), work_s / was if was else 1.0)
    peaks = few.forecast.peak_bytes, many.forecast.peak_bytes
    weak = many.forecast.scaling == "weak"
    base = dataclasses.replace(
        many.forecast,
        point="/".join(filter(None, (many.forecast.strategy, many.forecast.scaling, str(count), many.forecast.arm))),
        target=target.text,
        devices=count,
        basis=RECKONED,
        sources=(*many.forecast.sources, f"{n} devices", f"{m} devices"),
        global_batch=many.forecast.global_batch * count // m if weak else many.forecast.global_batch,
        flops=(many.forecast.flops or 0) * (count / m if weak else 1) or None,
        peak_bytes=None if None in peaks else round(shared((n, peaks[0]), (m, peaks[1]), count)),  # type: ignore[arg-type]
        collectives=_regrouped(many.forecast.collectives, m, count),
        notes=notes,
    )
    return estimate.timed(base, events, target, network)


def at_depth(
    shallow: ForecastRecord, deep: ForecastRecord, depths: tuple[int, int], blocks: int, family: str
) -> ForecastRecord:
    """The forecast for a model of `blocks` equal blocks, from two compiled depths."""
    share = (blocks - depths[0]) / (depths[1] - depths[0])

    def line(low: float | None, high: float | None) -> float:
        return (low or 0.0) + share * ((high or 0.0) - (low or 0.0))

    made = dataclasses.replace(
        deep, basis=RECKONED, sources=(*deep.sources, *(f"{depth} blocks" for depth in depths)),
        peak_bytes=None if deep.peak_bytes is None else round(line(shallow.peak_bytes, deep.peak_bytes)),
        parameters=round(line(shallow.parameters, deep.parameters)), flops=line(shallow.flops, deep.flops),
        kernels=line(shallow.kernels, deep.kernels),
        collectives=tuple(_deeper(shallow.collectives, each, share) for each in deep.collectives),
        seconds_by={how: line(shallow.seconds_by.get(how, 0.0), deep.seconds_by[how]) for how in deep.seconds_by},
    )  # fmt: skip
    on = chip(deep.device_kind)
    if shallow.work_s is None or deep.work_s is None or on is None:
        return made
    names = ("work_s", "communication_s", "scheduled_s")
    return estimate.banded(
        made, Times(**{name: line(getattr(shallow, name), getattr(deep, name)) for name in names}), family, on
    )


def _deeper(shallow: Sequence[Collective], deep: Collective, share: float) -> Collective:
    same = [each for each in shallow if (each.kind, each.axis, each.group) == (deep.kind, deep.axis, deep.group)]
    low = same[0] if same else dataclasses.replace(deep, count=0, bytes=0, elements=0, wire_bytes=0)
    names = ("count", "bytes", "elements", "wire_bytes")
    values = {name: (getattr(low, name), getattr(deep, name)) for name in names}
    return dataclasses.replace(deep, **{name: round(a + share * (b - a)) for name, (a, b) in values.items()})


def _regrouped(collectives: Sequence[Collective], old: int, new: int) -> tuple[Collective, ...]:
    return tuple(schedule.among(each, new) if each.group == old else each for each in collectives)


def _sent(events: tuple[Event, ...]) -> int:
    return sum(e.collective.wire_bytes * times for e, times in schedule.every(events) if isinstance(e, schedule.Send))


def _work(events: tuple[Event, ...]) -> float:
    return sum(event.seconds * times for event, times in schedule.every(events) if isinstance(event, Cost))


def _slower(events: tuple[Event, ...], factor: float) -> tuple[Event, ...]:
    made: list[Event] = []
    for event in events:
        if isinstance(event, Cost):
            made.append(dataclasses.replace(event, seconds=factor * event.seconds))
        elif isinstance(event, schedule.Loop):
            made.append(dataclasses.replace(event, events=_slower(event.events, factor)))
        else:
            made.append(event)
    return tuple(made)
