# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a case asks of the machine, against the most that the machine can do, with the words for both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.cases import CasePoint
from jaxbench.analysis.ceilings import Ceilings
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.catalog import hardware

# How far above its ceiling a rate may lie before it is not believed. A maker rounds its peaks, and parts run above the
# clock they are sold with; a measured peak is itself a measurement, of another minute; and "the cache" is several,
# of which the card has one that streaming reached, so that it bounds only the order of magnitude.
SLACK = {"catalogue": 1.05, "measured": 1.10, "cache": 2.0}
RIDGE = 1.0  # FLOPs per byte: where one ceiling alone is known, a kernel below is taken to be bound by memory
OWN: dict[str, Any] = {"peaks": []}  # in place of a card that was made of the run itself
FLOP, BYTES, LINK = "FLOP/s", "B/s", "B/s over the link"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most of one kind of work per second. rate: NaN when unknown, `text` then says why.

    source: "catalogue" | "measured" | "". slack: how many times `rate` is still believed. no_share: why a share of it
    would mean nothing; "" when it means something.
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
        """Whether there can be a share of it."""
        return self.known and not self.no_share


@dataclass(frozen=True, kw_only=True)
class Demand:
    """One kind of work of a case. unit: FLOP, BYTES or LINK. amount: of one call. rate: amount per second.

    dtype: of the case; the operations of integers are shown as such.
    """

    unit: str
    amount: float
    rate: Estimate
    limit: Limit
    dtype: str = ""

    @property
    def least_s(self) -> float:
        """What one call needs at its ceiling. NaN when that is unknown."""
        return self.amount / self.limit.rate

    def shown(self, rate: float) -> str:
        return quantities.scaled(rate, quantities.operations(self.dtype) if self.unit == FLOP else self.unit)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Per second of one case, from its seconds per call; UNKNOWN where it does no such work."""

    flop_per_s: Estimate = UNKNOWN
    bytes_per_s: Estimate = UNKNOWN
    algbw: Estimate = UNKNOWN
    busbw: Estimate = UNKNOWN


def demands(
    point: CasePoint, rates: Rates, step_s: float, *, manifest: dict[str, Any], machine: dict[str, Any] | None
) -> tuple[Demand, ...]:
    """What the case asks for, each with its ceiling. machine: the machine's card, or None."""
    kind = _device_kind(point, manifest)
    found = ceilings.find(
        card=machine, platform=point.platform, device_kind=kind, cores=point.cores or 0, dtype=point.dtype
    )
    asked = []
    if rates.flop_per_s.known and point.flops:
        limit = _flop_limit(point, kind, found, machine)
        asked.append(Demand(unit=FLOP, amount=point.flops, rate=rates.flop_per_s, limit=limit, dtype=point.dtype))
    if rates.bytes_per_s.known and point.bytes_moved:
        limit = _bytes_limit(point, kind, found, machine, cache_bytes=manifest.get("cache_bytes"))
        asked.append(Demand(unit=BYTES, amount=point.bytes_moved, rate=rates.bytes_per_s, limit=limit))
    over = rates.busbw if point.family == "collective" else rates.algbw
    if over.known:
        asked.append(Demand(unit=LINK, amount=over.value * step_s, rate=over, limit=_link_limit(point, kind)))
    return tuple(asked)


@dataclass(frozen=True, kw_only=True)
class PeakShare:
    """The part of its peak that a case reaches; UNKNOWN when there is none.

    peak: which one, in words; "" when there is none, `why_not` then says why. source: of the peak, as in `Limit`.
    """

    part: Estimate = UNKNOWN
    peak: str = ""
    why_not: str = ""
    source: str = ""

    @property
    def note(self) -> str:
        """Which peak, or why none."""
        return f"percent of {self.peak}" if self.peak else f"no percentage of peak: {self.why_not}"


def share(asked: tuple[Demand, ...]) -> PeakShare:
    """The part of its peak that a case reaches.

    Of several ceilings the one counts that binds: at which a call would last longest.
    """
    known = [d for d in asked if d.limit.counts and _bound_by(d, asked)]
    if not known:
        near = [d.limit for d in asked if _bound_by(d, asked)]
        reasons = [limit.text for limit in near if not limit.no_share] or [limit.no_share for limit in near]
        return PeakShare(why_not="; ".join(reasons) or "it does no work that has one")
    binding = max(known, key=lambda d: d.least_s)
    rate, most, source = binding.rate, binding.limit.rate, binding.limit.source
    part = Estimate(value=rate.value / most, lo=rate.lo / most, hi=rate.hi / most)
    return PeakShare(part=part, peak=f"{_WORDS[source]} peak: {binding.limit.text}", source=source)


_WORDS = {"catalogue": "catalogued", "measured": "measured"}


def _bound_by(demand: Demand, asked: tuple[Demand, ...]) -> bool:
    """Whether this demand may be what binds: not, when the other's ceiling is unknown and the other is the likelier."""
    other = next((d for d in asked if {d.unit, demand.unit} == {FLOP, BYTES}), None)
    if other is None or other.limit.counts:
        return True
    flops, moved = (demand, other) if demand.unit == FLOP else (other, demand)
    computes = flops.amount >= RIDGE * moved.amount
    return computes if demand.unit == FLOP else not computes


def _device_kind(point: CasePoint, manifest: dict[str, Any]) -> str:
    if point.record is not None:
        return point.record.device_kind
    return str(manifest.get("device_kind", "")) if manifest.get("platform") == point.platform else point.platform


def _flop_limit(point: CasePoint, kind: str, found: Ceilings, machine: dict[str, Any] | None) -> Limit:
    rate, source = found.flop_per_s, found.flop_source
    if source == "catalogue":
        peak = hardware.find(kind)
        row = peak.rate(point.dtype) if peak is not None else None
        assert peak is not None and row is not None
        text = f"{quantities.flops(rate, point.dtype)} ({peak.name}, {row.column}){_doubt(row.verified)}"
    elif source == "measured":
        best = f"this machine's best {point.dtype} matmul {_up_to(point)} (machine.json)"
        text = f"{quantities.flops(rate, point.dtype)}, {best}"
    else:
        peak = hardware.find(kind)
        missing = f"the catalogue has no {point.dtype} peak for {peak.name}" if peak else hardware.why_not(kind)
        return Limit(text=f"{missing}, and {_no_card(machine, f'{point.dtype} matmul {_where(point)}')}")
    return Limit(rate=rate, source=source, text=text, slack=SLACK[source] * found.flop_room)


def _bytes_limit(
    point: CasePoint, kind: str, found: Ceilings, machine: dict[str, Any] | None, *, cache_bytes: int | None
) -> Limit:
    """Memory bandwidth bounds only what cannot lie in a cache. A transfer writes to memory and reads from it, too."""
    copies = point.family == "transfer"
    touched = min(float(point.resident_bytes or math.inf), math.inf if copies else float(point.bytes_moved or 0))
    no_share = "a copy is bound by its link before its memory" if copies else ""
    if ceilings.level(touched, cache_bytes if point.platform == "cpu" else None) == "cache":
        return _cache_limit(point, found, no_share or "its arrays fit in a cache, and caches have no single bandwidth")
    rate, source = found.memory_bytes_per_s, found.memory_source
    if source == "catalogue":
        peak = hardware.find(kind)
        assert peak is not None
        text = f"{quantities.per_second(rate)} ({peak.name}, mem_bw_gbps){_doubt(peak.memory_verified)}"
    elif source == "measured":
        text = f"{quantities.per_second(rate)}, this machine's best from memory {_up_to(point)} (machine.json)"
    else:
        why = f"{hardware.why_not(kind)}, and {_no_card(machine, f'streaming from memory {_where(point)}')}"
        return Limit(text=why, no_share=no_share)
    return Limit(rate=rate, source=source, text=text, slack=SLACK[source] * found.memory_room, no_share=no_share)


def _cache_limit(point: CasePoint, found: Ceilings, no_share: str) -> Limit:
    rate, source = found.cache_bytes_per_s, found.cache_source
    if not source:
        return Limit(text="its arrays fit in a cache, of which no bandwidth is known", no_share=no_share)
    text = f"{quantities.per_second(rate)}, this machine's best from a cache {_up_to(point)} (machine.json)"
    return Limit(rate=rate, source=source, text=text, slack=SLACK["cache"] * found.cache_room, no_share=no_share)


def _link_limit(point: CasePoint, kind: str) -> Limit:
    """The catalogue's link, one way, if it is what this case goes over."""
    if point.platform == "cpu":
        return Limit(text="CPU devices have no link of their own: they share the machine's memory")
    peak = hardware.find(kind)
    link = peak.link if peak is not None else None
    to_host = "host" in (point.source, point.target)
    if peak is None:
        return Limit(text=hardware.why_not(kind))
    if link is None:
        return Limit(text=f"the catalogue has no link of {peak.name}")
    if to_host != link.is_pcie:
        which = "to other devices" if to_host else "to the host (PCIe)"
        return Limit(text=f"the only catalogued link of {peak.name} is the one {which}")
    if link.devices > 1:
        return Limit(text=f"{link.devices} JAX devices are one {peak.name}, and the link inside it is not catalogued")
    rate, n = link.unidirectional_bytes_per_s, point.devices
    text = f"{quantities.per_second(rate)} one way ({peak.name}: {link.note}){_doubt(link.verified)}"
    if point.op == "all_reduce" and link.reduces_in_network:
        # A switch that adds up what passes lets a device send its S bytes once and receive the sum once: algbw may
        # reach the link's rate, and busbw, which counts the 2(n-1)/n S bytes that a ring must send, as many times that
        # rate. Published 8xH200 reach 473 GB/s at 4 GiB and 482 at 16 GiB of bus bandwidth over 450 GB/s one way.
        factor = 2 * (n - 1) / n
        rate, text = factor * rate, f"{factor:.3g} x {text}, with reduction in the network"
    return Limit(rate=rate, source="catalogue", text=text, slack=SLACK["catalogue"])


def _where(point: CasePoint) -> str:
    if point.platform != "cpu":
        return "on this device"
    return f"on {point.cores} core{'s' if point.cores != 1 else ''}"


def _up_to(point: CasePoint) -> str:
    """Where a measured peak is from: fewer cores may have reached more (`ceilings.measured`)."""
    return _where(point).replace("on ", "on up to ") if point.platform == "cpu" and point.cores != 1 else _where(point)


def _no_card(machine: dict[str, Any] | None, what: str) -> str:
    if machine is OWN:
        return "the machine's card was made of this very run"
    if machine is None:
        return "this machine has no card ('jaxbench machine' makes one)"
    return f"the machine's card has no {what}"


def _doubt(verified: bool) -> str:
    return "" if verified else ", which the catalogue marks as unverified"
