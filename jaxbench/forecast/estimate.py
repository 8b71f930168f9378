# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A compiled point as a forecast: the exact numbers of the compiler, and a band or a bound of its time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from jaxbench.analysis.compiled import CompiledRow
from jaxbench.catalog import links
from jaxbench.catalog.targets import Target
from jaxbench.digits import digits
from jaxbench.forecast import schedule, work
from jaxbench.forecast.network import Network
from jaxbench.forecast.schedule import Event, Times
from jaxbench.forecast.work import Chip, Cost
from jaxbench.records.forecasts import AT_BEST, COMPILED, ESTIMATED, ForecastRecord

_SHORT = ", shorter than in any published run: what lies between kernels is not counted, so this is a bound."
# A TPU's compiler, whose schedule otherwise takes more memory where it expects room.
SAVES_MEMORY = "--config.lever.compiler=async_all_gather+xla_tpu_scheduler_percent_shared_memory_limit=50"
SLOW = "no answer within"  # of the message of a compiler that took longer than its limit
_HOW = {
    "cycles": "the compiler's cycles", "roofline": "the roofline of products", "memory": "bytes at the memory's rate",
    "kernel": "the FLOPs of attention kernels", "unknown": "the bytes of kernels without an estimate",
}  # fmt: skip


def exact(row: CompiledRow, experiment: str, target: Target) -> ForecastRecord:
    """What the compiler says of a point: no time."""
    point, record = row.point, row.record
    status = "ok" if record is not None else row.status
    forecast = ForecastRecord(
        point=row.name, target=target.text, experiment=experiment, device_kind=target.device_kind,
        strategy=point["strategy"], scaling=point["scaling"], arm=point["arm"], devices=point["devices"],
        global_batch=point["global_batch"], basis=COMPILED, status="slow" if SLOW in row.reason else status,
        reason=_reason(row, target), peak_bytes=row.needed_bytes, memory_bytes=row.memory_bytes,
    )  # fmt: skip
    if record is None:
        return forecast
    wrong = (f"Its communication is not what its strategy must send: {row.why}.",) if row.right is False else ()
    return dataclasses.replace(
        forecast, collectives=record.collectives, parameters=record.parameters,
        flops=record.flops, notes=wrong,
    )  # fmt: skip


def _reason(row: CompiledRow, target: Target) -> str:
    """Why there is no program; "" if there is."""
    if row.record is not None:
        return ""
    hint = f" Try {SAVES_MEMORY}, which makes the compiler save memory."
    return row.why + (hint if target.platform == "tpu" and row.status == "too large" else "")


def program(text: str, mesh: Mapping[str, int], target: Target) -> tuple[Event, ...]:
    """The schedule of a compiled text on a target; () if the catalogue lacks a rate of its chip."""
    on = work.chip(target.device_kind)
    return () if on is None else schedule.read(text, mesh, on)


def timed(forecast: ForecastRecord, events: tuple[Event, ...], target: Target, network: Network) -> ForecastRecord:
    """The forecast with times."""
    on = work.chip(target.device_kind)
    if on is None or not events:
        why = f"No time: the catalogue lacks a rate of {target.device_kind}."
        return dataclasses.replace(forecast, notes=(*forecast.notes, why))
    by: dict[str, float] = {}
    kernels = 0
    for event, count in schedule.every(events):
        if isinstance(event, Cost):
            by[event.how] = by.get(event.how, 0.0) + event.seconds * count
            kernels += count
    notes = (*forecast.notes, *_notes(events, by))
    return banded(
        dataclasses.replace(forecast, seconds_by=dict(sorted(by.items())), kernels=kernels, notes=notes),
        schedule.times(events, network.seconds), target.platform, on,
    )  # fmt: skip


def banded(forecast: ForecastRecord, times: Times, family: str, on: Chip) -> ForecastRecord:
    """The times of a step, widened by the method's error on published runs of the family; a bound alone where kernels
    are shorter than in those, so that what lies between them, which is not counted, may be most of the step."""
    method = links.error(family)
    best = times.work_s < method.kernel_s * forecast.kernels
    low_s, high_s = times.hidden_s * (1 - method.error), times.bare_s * (1 + method.error)
    if method.ends == "slow":
        low_s, high_s = times.hidden_s, max(times.bare_s, times.hidden_s * (1 + method.error))
    notes = tuple(note for note in forecast.notes if not note.endswith(_SHORT))
    if best:
        notes = (*notes, f"{digits(1e6 * times.work_s / forecast.kernels)} us a kernel{_SHORT}")
    return dataclasses.replace(
        forecast,
        notes=notes,
        grade=AT_BEST if best else ESTIMATED,
        low_s=low_s,
        scheduled_s=min(max(times.scheduled_s, times.hidden_s), times.bare_s),  # lines through depths may cross
        high_s=None if best else high_s,
        work_s=times.work_s,
        communication_s=times.communication_s,
        error=method.error,
        peak_flop_per_s=on.peak_flop_per_s,
    )


def _notes(events: tuple[Event, ...], by: Mapping[str, float]) -> list[str]:
    total = sum(by.values()) or 1.0
    parts = [f"{_HOW[how]} ({100 * seconds / total:.0f} %)" for how, seconds in sorted(by.items()) if seconds]
    notes = [f"Work from {', '.join(parts)}."] if parts else []
    costs = [event for event, _ in schedule.every(events) if isinstance(event, Cost)]
    for how, what in (("unknown", "have no estimate: only their bytes count"), ("kernel", "count by their own FLOPs")):
        names = sorted({cost.name for cost in costs if cost.how == how})
        notes += [f"The kernels {', '.join(names)} {what}."] if names else []
    if loops := schedule.unknown_loops(events):
        notes.append(f"{loops} loops of unknown length count once.")
    return notes
