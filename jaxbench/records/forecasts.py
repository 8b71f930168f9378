# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts of steps on hardware that is not here: `forecast.jsonl`, a kind of record of its own.

No field is a measured time, and none is called like one. Three grades are never mixed: *exact* numbers are the
compiler's, of a point with basis "compiled"; *estimated* times are a band; *at best* is a bound that no step beats.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.schema import Collective
from jaxbench.records.store import write_atomic

FILE = "forecast.jsonl"
COMPILED, RECKONED, MEASURED = "compiled", "reckoned", "measured"
ESTIMATED, AT_BEST = "estimated", "at best"


@dataclass(frozen=True, kw_only=True)
class ForecastRecord:
    """One point on one target.

    Attributes:
      point: its id, as a run would name it. target: "v5e:16x16", or the link of a forecast from a measured step.
      basis: compiled (for just these devices) | reckoned (from compiled points of other device counts or depths) |
        measured (from a measured step). sources: what it is reckoned from.
      status: ok | too large | unsupported | failed | slow (the compiler took longer than its limit). reason: of the
        others, the compiler's.
      peak_bytes: memory of a step on one device, and memory_bytes what a device has. None: unknown.
      collectives: by kind and axis, as one device takes part in them.
      grade: of the times below: estimated | at best; "" without times.
      low_s: everything that can be is hidden, and high_s: nothing is, or None for a bound; widened by the method's
        error. scheduled_s: in the compiler's order.
      work_s: without communication. communication_s: all messages one after the other. seconds_by: work_s by the way in
        which it was found. kernels: of a step on one device; 0: unknown. error: of the method, relative.
      flops: analytic, of a step on all devices. peak_flop_per_s: of a device, for utilisation.
      notes: what a reader must know, as sentences.
    """

    point: str
    target: str
    experiment: str
    device_kind: str
    strategy: str
    scaling: str
    devices: int
    global_batch: int
    basis: str
    status: str
    arm: str = ""
    reason: str = ""
    sources: tuple[str, ...] = ()
    peak_bytes: int | None = None
    memory_bytes: int | None = None
    collectives: tuple[Collective, ...] = ()
    parameters: int = 0
    flops: float | None = None
    grade: str = ""
    low_s: float | None = None
    scheduled_s: float | None = None
    high_s: float | None = None
    work_s: float | None = None
    communication_s: float | None = None
    seconds_by: dict[str, float] = dataclasses.field(default_factory=dict)
    kernels: float = 0.0
    error: float = 0.0
    peak_flop_per_s: float | None = None
    notes: tuple[str, ...] = ()
    schema: int = 1
    kind: str = "forecast"

    @property
    def fits(self) -> bool | None:
        """Whether a step's memory is within a device's; None: unknown."""
        if self.status == "too large":
            return False
        if self.peak_bytes is None or not self.memory_bytes:
            return None
        return self.peak_bytes <= self.memory_bytes

    @property
    def wire_bytes(self) -> int:
        """Sent by one device in a step."""
        return sum(each.wire_bytes for each in self.collectives)

    def utilisation(self, seconds: float | None) -> float | None:
        """Model FLOP utilisation at a step of so many seconds; None: unknown."""
        if not seconds or not self.flops or not self.peak_flop_per_s:
            return None
        return self.flops / (seconds * self.devices * self.peak_flop_per_s)

    def rate(self, seconds: float | None) -> float | None:
        """Examples per second at a step of so many seconds."""
        return self.global_batch / seconds if seconds else None


def write(folder: Path, records: Sequence[ForecastRecord]) -> None:
    """Writes `forecast.jsonl`, one line a record: the same records make the same bytes."""
    lines = (json.dumps(dataclasses.asdict(record), sort_keys=True) + "\n" for record in records)
    write_atomic(folder / FILE, "".join(lines))


def read(folder: Path) -> list[ForecastRecord]:
    """Raises UserError for a folder without forecasts, and for a damaged line."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"'{folder}' has no {FILE}: make one with 'jaxbench forecast'.") from error
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_record(json.loads(line)))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{folder / FILE}, line {number}, is damaged ({error}): make the forecast again."
            ) from error
    return records


def _record(line: dict[str, Any]) -> ForecastRecord:
    arrays: dict[str, Any] = {name: tuple(line.get(name, ())) for name in ("sources", "notes")}
    collectives = tuple(Collective(**each) for each in line.get("collectives", ()))
    record = ForecastRecord(**{**line, **arrays, "collectives": collectives})
    times = (record.low_s, record.scheduled_s, record.high_s)
    if any(seconds is not None and not 0 < seconds < math.inf for seconds in times):
        raise ValueError("a time is not positive")
    return record
