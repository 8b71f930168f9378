# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What cannot be exceeded: the catalogue's peaks where the device is in it, else what the machine's card measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxbench.catalog import hardware

CACHES = 4  # a working set above this many last-level caches is in memory
UNKNOWN_CACHE_BYTES = 2**30  # above this it is in memory when the cache's size is not known


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """The limits of one device, or of the cores that a CPU process may use. NaN and source "": unknown.

    A source is "catalogue" (a peak that its maker states) or "measured" (the best that the machine's card holds). A
    room says how many times a measured rate its own interval reaches up to: what is above the rate and still inside
    it is no contradiction.

    Attributes:
      flop_per_s: of matrix products in one dtype.
      memory_bytes_per_s, cache_bytes_per_s: of streaming from memory and from the last-level cache or nearer.
      link_bytes_per_s: from one device to the others, in one direction. Only catalogued: the best collective that was
        seen is no limit for another.
    """

    flop_per_s: float = math.nan
    flop_source: str = ""
    flop_room: float = 1.0
    memory_bytes_per_s: float = math.nan
    memory_source: str = ""
    memory_room: float = 1.0
    cache_bytes_per_s: float = math.nan
    cache_source: str = ""
    cache_room: float = 1.0
    link_bytes_per_s: float = math.nan
    link_source: str = ""
    link_room: float = 1.0


def find(*, card: dict[str, Any] | None, platform: str, device_kind: str, cores: int, dtype: str) -> Ceilings:
    """Each ceiling from the catalogue where it is in there, otherwise from the card.

    Args:
      card: the machine's card (`machine_card.read`), or None.
      platform, device_kind, cores: of the case. Cores tell CPU peaks apart; an accelerator's do not depend on them.
      dtype: whose peak `flop_per_s` is. Bandwidths are the same for every dtype.
    """
    made, seen = catalogued(platform, device_kind, dtype), measured(card, platform, cores, dtype)
    chosen: dict[str, Any] = {}
    for name, rate in _FIELDS.items():
        best = made if getattr(made, f"{name}_source") else seen
        chosen |= {field: getattr(best, field) for field in (rate, f"{name}_source", f"{name}_room")}
    return Ceilings(**chosen)


_FIELDS = {
    "flop": "flop_per_s",
    "memory": "memory_bytes_per_s",
    "cache": "cache_bytes_per_s",
    "link": "link_bytes_per_s",
}


def catalogued(platform: str, device_kind: str, dtype: str) -> Ceilings:
    """What the catalogue alone says; it has no caches. All unknown for a CPU, whose kind says nothing."""
    peak = hardware.find(device_kind)
    if peak is None or peak.kind != platform:
        return Ceilings()
    rate = peak.rate(dtype)
    link = peak.link.unidirectional_bytes_per_s if peak.link is not None else None
    rates = {"flop": rate.flop_per_s if rate is not None else None, "memory": peak.memory_bytes_per_s, "link": link}
    return _known("catalogue", {name: (value, 1.0) for name, value in rates.items() if value is not None})


def measured(card: dict[str, Any] | None, platform: str, cores: int, dtype: str) -> Ceilings:
    """What the machine's card alone says.

    On a CPU a peak must have been measured on as many cores; where fewer reached more (a busy machine, a size that
    does not split well), theirs counts, since all of them can do what one can.
    """
    if card is None:
        return Ceilings()
    peaks = [p for p in card["peaks"] if p["platform"] == platform and (platform != "cpu" or p["cores"] <= cores)]
    rates = [p for p in peaks if p["quantity"] == "bytes_per_s"]
    groups = {
        "flop": [p for p in peaks if p["quantity"] == "flop_per_s" and p["dtype"] == dtype],
        "memory": [p for p in rates if p["level"] == "memory"],
        "cache": [p for p in rates if p["level"] == "cache"],
    }
    asked = {n: g for n, g in groups.items() if any(platform != "cpu" or p["cores"] == cores for p in g)}
    return _known("measured", {name: _best(group) for name, group in asked.items()})


def level(working_set_bytes: float, cache_bytes: int | None) -> str:
    """ "memory" or "cache": where a working set of this size must lie. cache_bytes: the last-level cache, if known."""
    limit = CACHES * cache_bytes if cache_bytes else UNKNOWN_CACHE_BYTES
    return "memory" if working_set_bytes > limit else "cache"


def _best(entries: list[dict[str, Any]]) -> tuple[float, float]:
    """The largest value, and how many times it the upper end of its interval is."""
    best = max(entries, key=lambda entry: float(entry["value"]))
    value, upper = float(best["value"]), float(best.get("hi") or best["value"])
    return value, max(1.0, upper / value) if value > 0 else 1.0


def _known(source: str, rates: dict[str, tuple[float, float]]) -> Ceilings:
    """rates: (rate, room) by the name of the ceiling."""
    fields: dict[str, Any] = {}
    for name, (rate, room) in rates.items():
        if rate > 0:
            fields |= {_FIELDS[name]: rate, f"{name}_source": source, f"{name}_room": room}
    return Ceilings(**fields)
