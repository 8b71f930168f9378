# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts for more devices of the same kind, from a measured step.

The local work is the measured step of one device. The messages among more devices follow from the compiled step's
collectives. If the run has no step with collectives, they follow from the gradient's bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxbench.analysis.scaling import Row
from jaxbench.errors import UserError
from jaxbench.forecast import network as network_lib
from jaxbench.forecast import schedule
from jaxbench.forecast.network import Network
from jaxbench.records.forecasts import ESTIMATED, MEASURED, ForecastRecord
from jaxbench.records.schema import Collective

_SUMS = ("jit_auto", "jit_explicit", "pmap", "shard_map")  # strategies that all-reduce the whole gradient once


def forecast(rows: Sequence[Row], count: int, target: str, network: Network) -> ForecastRecord:
    """The step on `count` devices with one strategy and scaling. rows: its measured points. target: the link's name.

    The range is from all communication hidden to none hidden, over the interval of the measured step. If alpha is
    assumed, the upper end uses the longest measured alpha. Raises UserError if no point has a time, or if the messages
    are unknown.
    """
    timed = [row for row in rows if row.timing.step_s.known and not row.wrong and row.point.record is not None]
    if not timed:
        raise UserError("--from: no measured point of this strategy in the run passed its checks: rerun it.")
    base = min(timed, key=lambda row: row.point.devices)
    if base.point.devices != 1:
        raise UserError(
            f"--from: the run's smallest point has {base.point.devices} devices, but the local work needs one device: "
            "measure --config.mesh.devices=1, too."
        )
    record, point = base.point.record, base.point
    assert record is not None
    step = base.timing.step_s
    share = 1.0 if point.scaling == "weak" else 1.0 / count
    collectives, notes = _messages(timed, count)
    sent_s, slowly_s = (_sent_s(collectives, each) for each in (network, network_lib.slowest(network)))
    if slowly_s > sent_s:
        notes.append(
            "The latency of a message is assumed: measure the link with 'jaxbench run collectives' and give --card."
        )
    low, high = (step.lo, step.hi) if step.has_interval else (step.value, step.value)
    if share < 1:
        notes.append("Local work is taken in proportion to the per-device batch; small batches are slower than that.")
    batch = point.global_batch * (count if point.scaling == "weak" else 1)
    return ForecastRecord(
        point="/".join(filter(None, (point.strategy, point.scaling, str(count), point.arm))), target=target,
        experiment=record.experiment, device_kind=record.device_kind, strategy=point.strategy, scaling=point.scaling,
        arm=point.arm, devices=count, global_batch=batch, basis=MEASURED, status="ok", sources=(point.point,),
        collectives=collectives, parameters=record.passport.parameters, grade=ESTIMATED,
        flops=record.passport.flops_per_step * (count if point.scaling == "weak" else 1),
        low_s=max(share * low, sent_s), scheduled_s=share * step.value + sent_s, high_s=share * high + slowly_s,
        work_s=share * step.value, communication_s=sent_s, seconds_by={"measured": share * step.value},
        notes=tuple(notes),
    )  # fmt: skip


def _sent_s(collectives: Sequence[Collective], network: Network) -> float:
    """The seconds of all messages in sequence. A collective is `count` messages of equal size."""
    return sum(
        each.count * network.seconds(dataclasses.replace(each, count=1, wire_bytes=each.wire_bytes // each.count), 1)
        for each in collectives
    )


def _messages(timed: Sequence[Row], count: int) -> tuple[tuple[Collective, ...], list[str]]:
    """(the collectives of a step on `count` devices, notes on their origin)."""
    if count == 1:
        return (), []
    record = max(timed, key=lambda row: row.point.devices).point.record
    assert record is not None
    if found := tuple(schedule.among(each, count) for each in record.passport.collectives if each.bytes):
        return found, [f"Messages of the step compiled for {record.devices} devices."]
    if record.strategy not in _SUMS:
        raise UserError(f"--from: {record.strategy} was measured on one device only: measure it on two, or compile it.")
    size = 4 * record.passport.parameters
    one = Collective(kind="all-reduce", count=1, bytes=size, elements=record.passport.parameters, group=1)
    return (schedule.among(one, count),), ["Messages: the gradient's bytes in one all-reduce."]
