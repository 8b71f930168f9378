# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The FLOPs and bytes that a case needs compared with the machine's limits, with names for both."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.cases import CasePoint
from jaxbench.analysis.ceilings import Ceiling, Ceilings
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.catalog import hardware

# A rate above this many times its ceiling is refused. Vendors round their peaks, and chips run above their nominal
# clock. A measured peak is itself a measurement from another time. "The cache" is several caches: the machine profile
# has the bandwidth of the cache that streaming reached, so it bounds only the order of magnitude.
SLACK = {"catalogue": 1.05, "measured": 1.10, "cache": 2.0}
RIDGE = 1.0  # FLOPs per byte: if only one ceiling is known, a kernel below this counts as memory-bound
OWN: dict[str, Any] = {"peaks": []}  # stands for a machine profile that was made from the run itself
FLOP, BYTES, LINK = "FLOP/s", "B/s", "B/s over the link"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The maximum rate of one kind of work.

    Attributes:
      rate: per second; NaN if unknown.
      source: as in `Ceiling`.
      text: the limit in words, or why it is unknown.
      slack: a value up to this many times `rate` is plausible.
      no_share: why a share of this limit is meaningless; "" if it is meaningful.
    """

    rate: float = math.nan
    source: str = ""
    text: str = ""
    slack: float = math.nan
    no_share: str = ""

    @property
    def known(self) -> bool:
        return math.isfinite(self.rate)

    @property
    def counts(self) -> bool:
        """Whether a share of it is meaningful."""
        return self.known and not self.no_share


@dataclass(frozen=True, kw_only=True)
class Demand:
    """One kind of work of a case.

    Attributes:
      unit: FLOP, BYTES or LINK.
      amount: the work of one call. rate: the work per second.
      limit: its ceiling.
      dtype: the dtype of the case; integer operations are shown as OP/s.
    """

    unit: str
    amount: float
    rate: Estimate
    limit: Limit
    dtype: str = ""

    @property
    def least_s(self) -> float:
        """The seconds of one call at the ceiling; NaN if that is unknown."""
        return self.amount / self.limit.rate

    def shown(self, rate: float) -> str:
        return quantities.scaled(rate, quantities.operations(self.dtype) if self.unit == FLOP else self.unit)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates of one case, from its seconds per call; UNKNOWN for work that it does not do."""

    flop_per_s: Estimate = UNKNOWN
    bytes_per_s: Estimate = UNKNOWN
    algbw: Estimate = UNKNOWN
    busbw: Estimate = UNKNOWN


def demands(
    point: CasePoint, rates: Rates, step_s: float, *, manifest: dict[str, Any], machine: dict[str, Any] | None
) -> tuple[Demand, ...]:
    """The kinds of work of a case, each with its ceiling. machine: the machine profile, or None."""
    kind = _device_kind(point, manifest)
    known = ceilings.find(
        card=machine, platform=point.platform, device_kind=kind, cores=point.cores or 0, dtype=point.dtype
    )
    result = []
    if rates.flop_per_s.known and point.flops:
        limit = _flop_limit(point, kind, known.flop, machine)
        result.append(Demand(unit=FLOP, amount=point.flops, rate=rates.flop_per_s, limit=limit, dtype=point.dtype))
    if rates.bytes_per_s.known and point.bytes_moved:
        limit = _bytes_limit(point, kind, known, machine, cache_bytes=manifest.get("cache_bytes"))
        result.append(Demand(unit=BYTES, amount=point.bytes_moved, rate=rates.bytes_per_s, limit=limit))
    link_rate = rates.busbw if point.family == "collective" else rates.algbw
    if link_rate.known:
        result.append(
            Demand(unit=LINK, amount=link_rate.value * step_s, rate=link_rate, limit=_link_limit(point, kind))
        )
    return tuple(result)


@dataclass(frozen=True, kw_only=True)
class PeakShare:
    """The share of its peak that a case reaches; UNKNOWN without a peak.

    peak: the peak in words; "" without a peak, and then `why_not` gives the reason. source: as in `Ceiling`.
    """

    part: Estimate = UNKNOWN
    peak: str = ""
    why_not: str = ""
    source: str = ""

    @property
    def note(self) -> str:
        """The peak, or why there is none."""
        return f"percent of {self.peak}" if self.peak else f"no percentage of peak: {self.why_not}"


def share(demands: tuple[Demand, ...]) -> PeakShare:
    """The share of the binding ceiling that a case reaches. The ceiling binds at which a call would take longest."""
    shared = [d for d in demands if d.limit.counts and _may_bind(d, demands)]
    if not shared:
        limits = [d.limit for d in demands if _may_bind(d, demands)]
        reasons = [limit.text for limit in limits if not limit.no_share] or [limit.no_share for limit in limits]
        return PeakShare(why_not="; ".join(reasons) or "none of its work has a peak")
    binding = max(shared, key=lambda d: d.least_s)
    rate, upper, source = binding.rate, binding.limit.rate, binding.limit.source
    adjective = "catalogued" if source == "catalogue" else source
    part = Estimate(value=rate.value / upper, lo=rate.lo / upper, hi=rate.hi / upper)
    return PeakShare(part=part, peak=f"{adjective} peak: {binding.limit.text}", source=source)


def _may_bind(demand: Demand, demands: tuple[Demand, ...]) -> bool:
    """Whether this demand may bind. It may not if the other demand is likelier to bind and has an unknown ceiling."""
    other = next((d for d in demands if {d.unit, demand.unit} == {FLOP, BYTES}), None)
    if other is None or other.limit.counts:
        return True
    flops, moved = (demand, other) if demand.unit == FLOP else (other, demand)
    computes = flops.amount >= RIDGE * moved.amount
    return computes if demand.unit == FLOP else not computes


def _device_kind(point: CasePoint, manifest: dict[str, Any]) -> str:
    if point.record is not None:
        return point.record.device_kind
    return str(manifest.get("device_kind", "")) if manifest.get("platform") == point.platform else point.platform


def _flop_limit(point: CasePoint, kind: str, ceiling: Ceiling, machine: dict[str, Any] | None) -> Limit:
    peak = hardware.find(kind)
    row = peak.rate(point.dtype) if peak is not None else None
    text = quantities.flops(ceiling.rate, point.dtype)
    if ceiling.source == "catalogue":
        assert peak is not None and row is not None
        return _limit(ceiling, f"{text} ({peak.name}, {row.column}){_doubt(row.verified)}")
    if ceiling.source == "measured":
        return _limit(ceiling, f"{text}, this machine's best {point.dtype} matmul {_up_to(point)} (machine.json)")
    missing = f"the catalogue has no {point.dtype} peak for {peak.name}" if peak else hardware.why_not(kind)
    return Limit(text=f"{missing}, and {_no_card(machine, f'{point.dtype} matmul {_where(point)}')}")


def _limit(ceiling: Ceiling, text: str, *, slack: float | None = None, no_share: str = "") -> Limit:
    room = (slack or SLACK[ceiling.source]) * ceiling.room
    return Limit(rate=ceiling.rate, source=ceiling.source, text=text, slack=room, no_share=no_share)


def _bytes_limit(
    point: CasePoint, kind: str, known: Ceilings, machine: dict[str, Any] | None, *, cache_bytes: int | None
) -> Limit:
    """The bandwidth limit of a case: of memory, or of a cache that holds its arrays. Transfers also use memory."""
    copies = point.family == "transfer"
    touched = float(point.resident_bytes or math.inf) if copies else _touched(point)
    no_share = "a copy is bound by its link before its memory" if copies else ""
    if ceilings.level(touched, cache_bytes if point.platform == "cpu" else None) == "cache":
        no_share = no_share or "its arrays fit in a cache, and caches have no single bandwidth"
        if not known.cache.source:
            return Limit(text="its arrays fit in a cache of unknown bandwidth", no_share=no_share)
        text = f"{quantities.per_second(known.cache.rate)}, this machine's best from a cache {_up_to(point)}"
        return _limit(known.cache, f"{text} (machine.json)", slack=SLACK["cache"], no_share=no_share)
    text = quantities.per_second(known.memory.rate)
    if known.memory.source == "catalogue":
        peak = hardware.find(kind)
        assert peak is not None
        return _limit(
            known.memory, f"{text} ({peak.name}, mem_bw_gbps){_doubt(peak.memory_verified)}", no_share=no_share
        )
    if known.memory.source == "measured":
        best = f"this machine's best from memory {_up_to(point)} (machine.json)"
        return _limit(known.memory, f"{text}, {best}", no_share=no_share)
    why = f"{hardware.why_not(kind)}, and {_no_card(machine, f'streaming from memory {_where(point)}')}"
    return Limit(text=why, no_share=no_share)


def _touched(point: CasePoint) -> float:
    """The bytes that a call reads or writes before it returns to the same ones.

    A call that moves more bytes than it holds passes over its arrays several times. Each pass may be in place, so
    between two passes it may touch no more than one array. A cache may hold that array although it cannot hold all.
    """
    moved, held = float(point.bytes_moved or 0), float(point.resident_bytes or math.inf)
    bits = re.search(r"\d+", point.dtype)
    return moved if moved <= held else (point.elements or 0) * int(bits[0] if bits else 8) / 8


def _link_limit(point: CasePoint, kind: str) -> Limit:
    """The catalogue's link in one direction, if this case uses it."""
    if point.platform == "cpu":
        return Limit(text="CPU devices have no link of their own: they share the machine's memory")
    peak = hardware.find(kind)
    link = peak.link if peak is not None else None
    to_host = "host" in (point.source, point.target)
    if peak is None:
        return Limit(text=hardware.why_not(kind))
    if link is None:
        return Limit(text=f"the catalogue has no link for {peak.name}")
    if to_host != link.is_pcie:
        which = "to other devices" if to_host else "to the host (PCIe)"
        return Limit(text=f"the only catalogued link of {peak.name} is the one {which}")
    if link.devices > 1:
        return Limit(text=f"{link.devices} JAX devices are one {peak.name}, and the link inside it is not catalogued")
    rate, n = link.unidirectional_bytes_per_s, point.devices
    text = f"{quantities.per_second(rate)} one way ({peak.name}: {link.note}){_doubt(link.verified)}"
    if point.op == "all_reduce" and link.reduces_in_network:
        # If the switch reduces, a device sends its S bytes once and receives the sum once. So algbw may reach the
        # link's rate. busbw counts the 2(n-1)/n S bytes that a ring must send, so it may reach 2(n-1)/n times that.
        # Published 8xH200 results reach 473 GB/s of bus bandwidth at 4 GiB and 482 at 16 GiB over 450 GB/s one way.
        factor = 2 * (n - 1) / n
        rate, text = factor * rate, f"{factor:.3g} x {text}, with reduction in the network"
    return Limit(rate=rate, source="catalogue", text=text, slack=SLACK["catalogue"])


def _where(point: CasePoint) -> str:
    if point.platform != "cpu":
        return "on this device"
    return f"on {point.cores} core{'s' if point.cores != 1 else ''}"


def _up_to(point: CasePoint) -> str:
    """Where a peak was measured. Fewer cores may have reached more (`ceilings.measured`)."""
    return _where(point).replace("on ", "on up to ") if point.platform == "cpu" and point.cores != 1 else _where(point)


def _no_card(machine: dict[str, Any] | None, what: str) -> str:
    if machine is OWN:
        return "the machine profile was made from this run"
    if machine is None:
        return "this machine has no profile ('jaxbench machine' makes one)"
    return f"the machine profile has no {what}"


def _doubt(verified: bool) -> str:
    return "" if verified else ", which the catalogue marks as unverified"
