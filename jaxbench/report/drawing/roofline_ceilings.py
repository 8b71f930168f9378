# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ceilings of a roofline: FLOP/s of matrix products, bytes per second of streaming, measured and catalogued."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.ceilings import Ceilings
from jaxbench.report.drawing.marks import DASHES

_BLACK: Any = dict(color="black", linestyle="-", zorder=2)
_HEAVY, _THIN = 1.4, 0.7


@dataclass(frozen=True, kw_only=True)
class Roof:
    """One ceiling. value: FLOP/s, or bytes/s of a diagonal. label: with its value. style: of its line."""

    label: str
    value: float
    style: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Roofs:
    """The ceilings of one platform. flat: of FLOP/s. steep: of bytes/s, the steepest first; never empty."""

    flat: tuple[Roof, ...]
    steep: tuple[Roof, ...]

    def top(self, otherwise: float) -> float:
        """The highest ceiling, or `otherwise` when no matrix product was measured."""
        return max((roof.value for roof in self.flat), default=otherwise)


def of(card: dict[str, Any], platform: str, main: str) -> Roofs | None:
    """Those of the most cores that were measured; the dtype `main` is heavy. None when no bandwidth is known."""
    steep = _steep(card, platform)
    return Roofs(flat=_flat(card, platform, main), steep=steep) if steep else None


def _seen(card: dict[str, Any], platform: str, dtype: str) -> Ceilings:
    cores = [peak["cores"] for peak in card["peaks"] if peak["platform"] == platform]
    return ceilings.measured(card, platform, max(filter(None, cores), default=0), dtype)


def _flat(card: dict[str, Any], platform: str, main: str) -> tuple[Roof, ...]:
    kind = str(card["machine"].get("device_kind", ""))
    peaks = [peak for peak in card["peaks"] if (peak["platform"], peak["quantity"]) == (platform, "flop_per_s")]
    roofs = []
    for dtype in dict.fromkeys([main, *(peak["dtype"] for peak in peaks)]):
        seen, made = _seen(card, platform, dtype).flop.rate, ceilings.catalogued(platform, kind, dtype).flop.rate
        width = _HEAVY if dtype == main else _THIN
        roofs.append(Roof(label=f"{dtype} {quantities.flops(seen)}", value=seen, style={**_BLACK, "linewidth": width}))
        roofs.append(Roof(label=f"{dtype} peak {quantities.flops(made)}", value=made, style={**DASHES, "zorder": 1}))
    return tuple(roof for roof in roofs if math.isfinite(roof.value))


def _steep(card: dict[str, Any], platform: str) -> tuple[Roof, ...]:
    seen = _seen(card, platform, "")
    made = ceilings.catalogued(platform, str(card["machine"].get("device_kind", "")), "")
    named = [
        ("memory", seen.memory.rate, {**_BLACK, "linewidth": _HEAVY}),
        ("cache", seen.cache.rate, {**_BLACK, "linewidth": _THIN}),
        ("memory peak", made.memory.rate, {**DASHES, "zorder": 1}),
    ]
    roofs = [
        Roof(label=f"{name} {quantities.per_second(rate)}", value=rate, style=style)
        for name, rate, style in named
        if math.isfinite(rate)
    ]
    return tuple(sorted(roofs, key=lambda roof: -roof.value))
