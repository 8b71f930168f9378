# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forecasts of steps on absent hardware: `forecast.jsonl`, with its own kind of record.

No field is a measured time or is named like one. Three grades are never mixed. *Exact* numbers come from the compiler,
at a point with basis "compiled". *Estimated* times are a range. *At best* is a lower bound on the time.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxbench.core.schema import Collective
from jaxbench.core.store import write_atomic
from jaxbench.errors import UserError
from jaxbench.records.documents import Positive, decode
from jaxbench.records.reading import read_lines

FILE = "forecast.jsonl"
COMPILED, RECKONED, MEASURED = "compiled", "reckoned", "measured"
ESTIMATED, AT_BEST = "estimated", "at best"
NVLINK, PEER, STAGED = "NVLink", "peer-to-peer", "staged"  # links within a host: names of by_link
# The names in sentences.
LINKS = {NVLINK: NVLINK, PEER: "PCIe with peer-to-peer", STAGED: "PCIe without peer-to-peer"}


@dataclass(frozen=True, kw_only=True)
class ForecastRecord:
    """One point on one target.

    Attributes:
      point: its id, as a run would name it.
      target: such as "v5e:16x16", or the link for a forecast from a measured step.
      basis: compiled (for exactly these devices) | reckoned (extrapolated from compiled points with other device counts
        or depths) | measured (from a measured step).
      sources: the points that it is extrapolated from.
      status: ok | too large | unsupported | failed | slow (the compiler exceeded its time limit).
      reason: the compiler's message if the status is not ok.
      peak_bytes: the memory of a step on one device; None: unknown.
      memory_bytes: the memory that a device has; None: unknown.
      collectives: by kind and axis, for one participating device.
      grade: of the times below: estimated | at best; "" without times.
      low_s, high_s: the band in which nine in ten published runs of the same family of programs lay. high_s is None
        for a bound.
      scheduled_s: the step time in the compiler's order.
      work_s: the time without communication.
      communication_s: the time of all messages one after another.
      host_s, host_bytes: the time of all copies between a device and its host one after another, and their bytes.
      seconds_by: the parts of work_s by estimation method.
      large_s: the part of work_s that its matrix products would take at the rate of large ones.
      link: the link within a host that the times are for, in words; "" if there is one link only.
      by_link: scheduled_s with each link that a host may have: NVLink, peer-to-peer (PCIe) and staged (PCIe, through
        the memory of the host); {} if nothing is sent within a host of GPUs.
      slowest_s: the time with nothing hidden on the slowest such link that was measured; 0: the link is known.
      kernels: the number of kernels in a step on one device; 0: unknown.
      family: of programs, which determines the band. runs: the published runs behind the band.
      flops: analytic FLOPs of a step on all devices.
      peak_flop_per_s: the peak of one device, for utilisation.
      passes: how often a stage of a pipeline runs forward, and backward; 0: no pipeline.
      bubble_s: the part of work_s in which a stage of a pipeline is idle.
      attention: the kinds of attention in the compiled text, as in `CompileReport`.
      notes: sentences that a reader needs.
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
    low_s: Positive | None = None
    scheduled_s: Positive | None = None
    high_s: Positive | None = None
    work_s: float | None = None
    communication_s: float | None = None
    host_s: float = 0.0
    host_bytes: int = 0
    seconds_by: dict[str, float] = dataclasses.field(default_factory=dict)
    large_s: float = 0.0
    link: str = ""
    by_link: dict[str, float] = dataclasses.field(default_factory=dict)
    slowest_s: float = 0.0
    kernels: float = 0.0
    family: str = ""
    runs: int = 0
    peak_flop_per_s: float | None = None
    passes: int = 0
    bubble_s: float = 0.0
    attention: str = ""
    notes: tuple[str, ...] = ()
    schema: int = 1
    kind: str = "forecast"

    @property
    def fits(self) -> bool | None:
        """Whether a step fits into a device's memory; None: unknown."""
        if self.status == "too large":  # the compiler refused, often without saying how much it needs
            return False
        if self.peak_bytes is None or not self.memory_bytes:
            return None
        return self.peak_bytes <= self.memory_bytes

    @property
    def only_plain(self) -> bool:
        """Whether its times are a bound of a program that flash attention would make faster."""
        return self.grade == AT_BEST and "plain" in self.attention

    @property
    def wire_bytes(self) -> int:
        """The bytes that one device sends in a step."""
        return sum(each.wire_bytes for each in self.collectives)

    def utilisation(self, seconds: float | None) -> float | None:
        """Model FLOP utilisation if a step takes `seconds`; None: unknown."""
        if not seconds or not self.flops or not self.peak_flop_per_s:
            return None
        return self.flops / (seconds * self.devices * self.peak_flop_per_s)

    @property
    def hidden_s(self) -> float | None:
        """The time if all communication that can be hidden is; None: unknown."""
        return None if self.work_s is None else max(self.work_s, self.communication_s or 0.0, self.host_s)

    @property
    def bare_s(self) -> float | None:
        """The time if no communication is hidden; None: unknown."""
        return None if self.work_s is None else self.work_s + (self.communication_s or 0.0) + self.host_s

    @property
    def link_name(self) -> str:
        """The name in `by_link` of the link that the times are for."""
        return NVLINK if not self.link else PEER if PEER in self.link else STAGED

    def link_factor(self, seconds: float | None) -> float | None:
        """The share of a step of `seconds` that is work; the rest waits for a link. None: unknown."""
        return min(1.0, self.work_s / seconds) if seconds and self.work_s else None

    def rate(self, seconds: float | None) -> float | None:
        """Examples per second if a step takes `seconds`; None: unknown."""
        return self.global_batch / seconds if seconds else None


def write(folder: Path, records: Sequence[ForecastRecord]) -> None:
    """Writes `forecast.jsonl`, one line per record. Equal records give equal bytes."""
    lines = (json.dumps(dataclasses.asdict(record), sort_keys=True) + "\n" for record in records)
    write_atomic(folder / FILE, "".join(lines))


def read(folder: Path) -> list[ForecastRecord]:
    """The forecasts in `folder`. Raises UserError for a folder without forecasts, and for a damaged line."""
    if not (folder / FILE).exists():
        raise UserError(f"'{folder}' has no {FILE}: make one with 'jaxbench forecast'.")
    return [*read_lines(folder / FILE, partial(decode, ForecastRecord), "make the forecast again.")]
