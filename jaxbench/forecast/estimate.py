# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes a forecast from a compiled point: the compiler's exact numbers, and a range or a lower bound of its time."""

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

_SHORT = ", shorter than in any published run. The gaps between kernels are not counted, so this is a lower bound."
# Makes a TPU's compiler schedule to save memory. Otherwise it uses more memory if it expects some to spare.
SAVES_MEMORY = "--config.lever.compiler=async_all_gather+xla_tpu_scheduler_percent_shared_memory_limit=50"
SLOW = "no answer within"  # a part of the message of a compiler that exceeded its time limit
_HOW = {
    "cycles": "the compiler's cycles", "roofline": "the roofline of products", "memory": "bytes at the memory's rate",
    "kernel": "the FLOPs of attention kernels", "unknown": "the bytes of kernels without an estimate",
}  # fmt: skip


def exact(row: CompiledRow, experiment: str, target: Target) -> ForecastRecord:
    """The forecast with the compiler's numbers and no times."""
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
    wrong = (f"Its communication is not as expected: {row.why}.",) if row.right is False else ()
    return dataclasses.replace(
        forecast, collectives=record.collectives, parameters=record.parameters,
        flops=record.flops, notes=wrong,
    )  # fmt: skip


def _reason(row: CompiledRow, target: Target) -> str:
    """Why there is no compiled program; "" if there is one."""
    if row.record is not None:
        return ""
    hint = f" Try {SAVES_MEMORY}, which makes the compiler save memory."
    return row.why + (hint if target.platform == "tpu" and row.status == "too large" else "")


def program(text: str, mesh: Mapping[str, int], target: Target) -> tuple[Event, ...]:
    """The schedule of a compiled text on a target; () if the catalogue does not have the rates of its chip."""
    on = work.chip(target.device_kind)
    return () if on is None else schedule.read(text, mesh, on)


def timed(forecast: ForecastRecord, events: tuple[Event, ...], target: Target, network: Network) -> ForecastRecord:
    """The forecast with times from a schedule and a network."""
    on = work.chip(target.device_kind)
    if on is None or not events:
        why = f"No time: the catalogue does not have all rates of {target.device_kind}."
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
    """The forecast with the range of its step time, widened by the method's error on published runs of the family.

    If its kernels are shorter than in those runs, it only has a lower bound. The gaps between kernels are not counted,
    and with short kernels they may be most of the step.
    """
    method = links.error(family)
    best = times.work_s < method.kernel_s * forecast.kernels
    low_s, high_s = times.hidden_s * (1 - method.error), times.bare_s * (1 + method.error)
    if method.ends == "slow":
        low_s, high_s = times.hidden_s, max(times.bare_s, times.hidden_s * (1 + method.error))
    notes = tuple(note for note in forecast.notes if not note.endswith(_SHORT))
    if best:
        notes = (*notes, f"{digits(1e6 * times.work_s / forecast.kernels)} us per kernel{_SHORT}")
    return dataclasses.replace(
        forecast,
        notes=notes,
        grade=AT_BEST if best else ESTIMATED,
        low_s=low_s,
        scheduled_s=min(max(times.scheduled_s, times.hidden_s), times.bare_s),  # extrapolated times may cross
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
