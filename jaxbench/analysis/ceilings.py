# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What cannot be exceeded: the catalogue's peaks where the device is in it, else what the machine's card measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jaxbench.catalog import hardware

CACHES = 4  # a working set above this many last-level caches is in memory
UNKNOWN_CACHE_BYTES = 2**30  # above this it is in memory when the cache's size is not known


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """The limits of one device, or of the cores that a CPU process may use. NaN and source "": unknown.

    A source is "catalogue" (a peak that its maker states) or "measured" (the best that the machine's card holds).

    Attributes:
      flop_per_s: of matrix products in one dtype.
      memory_bytes_per_s, cache_bytes_per_s: of streaming from memory and from the last-level cache or nearer.
      link_bytes_per_s: from one device to the others, in one direction. Only catalogued: the best collective that was
        seen is no limit for another.
    """

    flop_per_s: float = math.nan
    flop_source: str = ""
    memory_bytes_per_s: float = math.nan
    memory_source: str = ""
    cache_bytes_per_s: float = math.nan
    cache_source: str = ""
    link_bytes_per_s: float = math.nan
    link_source: str = ""


def find(*, card: dict[str, Any] | None, platform: str, device_kind: str, cores: int, dtype: str) -> Ceilings:
    """Each ceiling from the catalogue where it is in there, otherwise from the card.

    Args:
      card: the machine's card (`machine_card.read`), or None.
      platform, device_kind, cores: of the case. Cores tell CPU peaks apart; an accelerator's do not depend on them.
      dtype: whose peak `flop_per_s` is. Bandwidths are the same for every dtype.
    """
    made, seen = catalogued(platform, device_kind, dtype), measured(card, platform, cores, dtype)
    chosen: dict[str, Any] = {}
    for rate, source in _FIELDS:
        best = made if getattr(made, source) else seen
        chosen |= {rate: getattr(best, rate), source: getattr(best, source)}
    return Ceilings(**chosen)


_FIELDS = (
    ("flop_per_s", "flop_source"),
    ("memory_bytes_per_s", "memory_source"),
    ("cache_bytes_per_s", "cache_source"),
    ("link_bytes_per_s", "link_source"),
)


def catalogued(platform: str, device_kind: str, dtype: str) -> Ceilings:
    """What the catalogue alone says; it has no caches. All unknown for a CPU, whose kind says nothing."""
    peak = hardware.find(device_kind)
    if peak is None or peak.kind != platform:
        return Ceilings()
    rate = peak.rate(dtype)
    return _known(
        "catalogue",
        flop=rate.flop_per_s if rate is not None else None,
        memory=peak.memory_bytes_per_s,
        link=peak.link.unidirectional_bytes_per_s if peak.link is not None else None,
    )


def measured(card: dict[str, Any] | None, platform: str, cores: int, dtype: str) -> Ceilings:
    """What the machine's card alone says. On a CPU only peaks measured on as many cores count."""
    if card is None:
        return Ceilings()
    peaks = [p for p in card["peaks"] if p["platform"] == platform and (platform != "cpu" or p["cores"] == cores)]
    rates = [p for p in peaks if p["quantity"] == "bytes_per_s"]
    return _known(
        "measured",
        flop=_best(p for p in peaks if p["quantity"] == "flop_per_s" and p["dtype"] == dtype),
        memory=_best(p for p in rates if p["level"] == "memory"),
        cache=_best(p for p in rates if p["level"] == "cache"),
    )


def level(working_set_bytes: float, cache_bytes: int | None) -> str:
    """ "memory" or "cache": where a working set of this size must lie. cache_bytes: the last-level cache, if known."""
    limit = CACHES * cache_bytes if cache_bytes else UNKNOWN_CACHE_BYTES
    return "memory" if working_set_bytes > limit else "cache"


def _best(entries: Iterable[dict[str, Any]]) -> float | None:
    return max((float(entry["value"]) for entry in entries), default=None)


def _known(source: str, **rates: float | None) -> Ceilings:
    """flop, memory, cache, link: None is unknown."""
    fields: dict[str, Any] = {}
    for name, rate in rates.items():
        if rate is not None and rate > 0:
            unit = "flop_per_s" if name == "flop" else f"{name}_bytes_per_s"
            fields |= {unit: rate, f"{name}_source": source}
    return Ceilings(**fields)
