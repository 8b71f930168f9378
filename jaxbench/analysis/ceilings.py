# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The limits of a device: its peaks in the catalogue if it is there, else the measured peaks of the machine profile."""

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
      source: "catalogue" (the vendor's peak) | "measured" (the best rate in the machine profile) | "" (unknown).
      room: the upper end of a measured rate's interval over the rate. A value within it does not exceed the ceiling.
    """

    rate: float = math.nan
    source: str = ""
    room: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """The limits of one device, or of the cores that a CPU process may use.

    Attributes:
      flop: FLOP/s of matrix products in one dtype.
      memory, cache: bytes/s of streaming from memory, and from the last-level cache or a nearer cache.
      link: bytes/s from one device to the others, in one direction. Only from the catalogue, because the best measured
        collective does not limit another one.
    """

    flop: Ceiling = Ceiling()
    memory: Ceiling = Ceiling()
    cache: Ceiling = Ceiling()
    link: Ceiling = Ceiling()


def find(*, card: dict[str, Any] | None, platform: str, device_kind: str, cores: int, dtype: str) -> Ceilings:
    """Each ceiling from the catalogue if it is there, otherwise from the machine profile.

    Args:
      card: the machine profile (`machine_card.read`), or None.
      platform, device_kind, cores: where the case runs. Only CPU peaks depend on the number of cores.
      dtype: the dtype of the peak `flop`. Bandwidths are the same for every dtype.
    """
    catalogue = vars(catalogued(platform, device_kind, dtype))
    known = {name: ceiling for name, ceiling in catalogue.items() if ceiling.source}
    return dataclasses.replace(measured(card, platform, cores, dtype), **known)


def catalogued(platform: str, device_kind: str, dtype: str) -> Ceilings:
    """The catalogue's ceilings. It has no cache bandwidths. For a CPU all are unknown, because its device kind is not a
    model name."""
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
    """The ceilings in the machine profile.

    A CPU peak must have been measured on the same number of cores. If fewer cores were faster (a busy machine, a size
    that does not split well), their rate counts, because more cores can do at least as much.
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
    """Where a working set of this size is: "memory" or "cache". cache_bytes: the last-level cache; None: unknown."""
    limit = CACHES * cache_bytes if cache_bytes else UNKNOWN_CACHE_BYTES
    return "memory" if working_set_bytes > limit else "cache"


def _best(entries: list[dict[str, Any]]) -> Ceiling:
    best = max(entries, key=lambda entry: float(entry["value"]))
    rate, upper = float(best["value"]), float(best.get("hi") or best["value"])
    return Ceiling(rate=rate, source="measured", room=max(1.0, upper / rate)) if rate > 0 else Ceiling()
