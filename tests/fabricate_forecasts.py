# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiled points of a step with known expected communication, for tests of forecasts."""

from __future__ import annotations

import dataclasses

from jaxbench.catalog import targets
from jaxbench.core.schema import Collective
from jaxbench.features.forecast import estimate, network, work
from jaxbench.features.forecast.estimate import CompiledForecast
from jaxbench.features.forecast.forecasts import ForecastRecord
from jaxbench.features.forecast.schedule import Send, Times, Wait, among
from jaxbench.features.forecast.work import Cost

FULL = 800_000_000


def compiled(devices: int, *, state: int = 64 * 10**9, kept: int = 10**9, gathered: int = FULL, target: str = "h100"):
    """A step of fsdp: a part of the state on each device, one array gathered behind half of the work."""
    gather = among(Collective(kind="all-gather", count=1, bytes=gathered, group=1), devices)
    events = (Send("g", gather, 1), Cost(seconds=0.05, how="roofline", flops=1e12), Wait("g"),
              Cost(seconds=0.05 + 0.08 / devices, how="memory"))  # fmt: skip
    about = targets.parse(f"{target}:{devices}")
    record = ForecastRecord(
        point=f"fsdp/weak/{devices}", target=about.text, experiment="gpt", device_kind=about.device_kind,
        strategy="fsdp", scaling="weak", devices=devices, global_batch=4 * devices, basis="compiled", status="ok",
        peak_bytes=kept + state // devices, memory_bytes=about.memory_bytes, collectives=(gather,),
        flops=1e12 * devices, parameters=10**9, family="tpu" if about.platform == "tpu" else "xla",
    )  # fmt: skip
    return CompiledForecast(record, events)


def at(count: int, few: CompiledForecast | None = None, many: CompiledForecast | None = None) -> ForecastRecord:
    target = targets.parse(f"h100:{count}")
    return estimate.at_count(few or compiled(4), many or compiled(8), count, target, network.of(target))


def in_kernels(record: ForecastRecord, count: float) -> ForecastRecord:
    """The same step of a GPU, divided into a number of kernels."""
    assert record.work_s is not None and record.communication_s is not None and record.scheduled_s is not None
    on = work.chip(record.device_kind)
    assert on is not None
    times = Times(work_s=record.work_s, communication_s=record.communication_s, scheduled_s=record.scheduled_s)
    return estimate.banded(dataclasses.replace(record, kernels=count), times, on)


def compiled_tpu(devices: int) -> CompiledForecast:
    made = compiled(devices)
    return CompiledForecast(dataclasses.replace(made.forecast, device_kind="TPU v5 lite", family="tpu"), made.events)
