# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a device cannot exceed: its catalogued peaks if the catalogue has it, else what the machine's card measured."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from jaxbench.catalog import hardware

CACHES = 4  # a working set larger than this many last-level caches is in memory
UNKNOWN_CACHE_BYTES = 2**30  # the same limit when the size of the cache is unknown


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """One limit, per second. rate: NaN when unknown.

    Attributes:
      source: "catalogue" (a peak that the maker states) | "measured" (the best on the machine's card) | "" (unknown).
      room: upper end of the interval of a measured rate, over the rate. A value within it contradicts nothing.
    """

    rate: float = math.nan
    source: str = ""
    room: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """The limits of one device, or of the cores that a CPU process may use.

    Attributes:
      flop: FLOP/s of matrix products in one dtype.
      memory, cache: bytes/s of streaming from memory, and from the last-level cache or a nearer one.
      link: bytes/s from one device to the others, in one direction. Only catalogued: the best collective that was
        measured is no limit for another.
    """

    flop: Ceiling = Ceiling()
    memory: Ceiling = Ceiling()
    cache: Ceiling = Ceiling()
    link: Ceiling = Ceiling()


def find(*, card: dict[str, Any] | None, platform: str, device_kind: str, cores: int, dtype: str) -> Ceilings:
    """Each ceiling from the catalogue where it has one, otherwise from the card.

    Args:
      card: the machine's card (`machine_card.read`), or None.
      platform, device_kind, cores: of the case. Only CPU peaks depend on the number of cores.
      dtype: of the peak `flop`. Bandwidths are the same for every dtype.
    """
    catalogue = vars(catalogued(platform, device_kind, dtype))
    known = {name: ceiling for name, ceiling in catalogue.items() if ceiling.source}
    return dataclasses.replace(measured(card, platform, cores, dtype), **known)


def catalogued(platform: str, device_kind: str, dtype: str) -> Ceilings:
    """The catalogue's ceilings; it has none of caches. All unknown for a CPU, whose device kind names no model."""
    peak = hardware.find(device_kind)
    if peak is None or peak.kind != platform:
        return Ceilings()
    rate = peak.rate(dtype)
    rates = {
        "flop": rate.flop_per_s if rate is not None else None,
        "memory": peak.memory_bytes_per_s,
        "link": peak.link.unidirectional_bytes_per_s if peak.link is not None else None,
    }
    return Ceilings(**{name: Ceiling(rate=value, source="catalogue") for name, value in rates.items() if value})


def measured(card: dict[str, Any] | None, platform: str, cores: int, dtype: str) -> Ceilings:
    """The card's ceilings.

    A CPU peak must have been measured on as many cores. Where fewer cores reached more (a busy machine, a size that
    does not split well), theirs counts: all of them can do what one can.
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
    known = {n: g for n, g in groups.items() if any(platform != "cpu" or p["cores"] == cores for p in g)}
    return Ceilings(**{name: _best(group) for name, group in known.items()})


def level(working_set_bytes: float, cache_bytes: int | None) -> str:
    """ "memory" or "cache": where a working set of this size must be. cache_bytes: the last-level cache, if known."""
    limit = CACHES * cache_bytes if cache_bytes else UNKNOWN_CACHE_BYTES
    return "memory" if working_set_bytes > limit else "cache"


def _best(entries: list[dict[str, Any]]) -> Ceiling:
    best = max(entries, key=lambda entry: float(entry["value"]))
    rate, upper = float(best["value"]), float(best.get("hi") or best["value"])
    return Ceiling(rate=rate, source="measured", room=max(1.0, upper / rate)) if rate > 0 else Ceiling()
