# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ceilings of a roofline: measured and catalogued FLOP/s of matrix products and bytes/s of streaming."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.ceilings import Ceilings
from jaxbench.report.drawing.marks import DASHES

_BLACK: Any = dict(color="black", linestyle="-", zorder=2)
_PEAK: Any = {**DASHES, "zorder": 1}
_HEAVY, _THIN = 1.4, 0.7


@dataclass(frozen=True, kw_only=True)
class Roof:
    """One ceiling. value: FLOP/s, or bytes/s of a diagonal. label: its name and value. style: of its line."""

    label: str
    value: float
    style: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Roofs:
    """The ceilings of one platform. flat: FLOP/s. steep: bytes/s, the steepest first; never empty."""

    flat: tuple[Roof, ...]
    steep: tuple[Roof, ...]

    def top(self, otherwise: float) -> float:
        """The highest ceiling, or `otherwise` if no matrix product was measured."""
        return max((roof.value for roof in self.flat), default=otherwise)


def of(card: dict[str, Any], platform: str, main: str) -> Roofs | None:
    """The ceilings on the most cores that were measured, `main` drawn heavy. None if no bandwidth is known."""
    steep = _steep(card, platform)
    return Roofs(flat=_flat(card, platform, main), steep=steep) if steep else None


def _measured(card: dict[str, Any], platform: str, dtype: str) -> Ceilings:
    cores = [peak["cores"] for peak in card["peaks"] if peak["platform"] == platform]
    return ceilings.measured(card, platform, max(filter(None, cores), default=0), dtype)


def _flat(card: dict[str, Any], platform: str, main: str) -> tuple[Roof, ...]:
    kind = str(card["machine"].get("device_kind", ""))
    peaks = [peak for peak in card["peaks"] if (peak["platform"], peak["quantity"]) == (platform, "flop_per_s")]
    roofs = []
    for dtype in dict.fromkeys([main, *(peak["dtype"] for peak in peaks)]):
        rate = _measured(card, platform, dtype).flop.rate
        peak = ceilings.catalogued(platform, kind, dtype).flop.rate
        width = _HEAVY if dtype == main else _THIN
        roofs.append(Roof(label=f"{dtype} {quantities.flops(rate)}", value=rate, style={**_BLACK, "linewidth": width}))
        roofs.append(Roof(label=f"{dtype} peak {quantities.flops(peak)}", value=peak, style=_PEAK))
    return tuple(roof for roof in roofs if math.isfinite(roof.value))


def _steep(card: dict[str, Any], platform: str) -> tuple[Roof, ...]:
    measured = _measured(card, platform, "")
    catalogued = ceilings.catalogued(platform, str(card["machine"].get("device_kind", "")), "")
    named = [
        ("memory", measured.memory.rate, {**_BLACK, "linewidth": _HEAVY}),
        ("cache", measured.cache.rate, {**_BLACK, "linewidth": _THIN}),
        ("memory peak", catalogued.memory.rate, _PEAK),
    ]
    roofs = [
        Roof(label=f"{name} {quantities.per_second(rate)}", value=rate, style=style)
        for name, rate, style in named
        if math.isfinite(rate)
    ]
    return tuple(sorted(roofs, key=lambda roof: -roof.value))
