# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The ceilings of a roofline: measured and catalogued FLOP/s of matrix products and bytes/s of streaming."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.ceilings import Ceilings
from jaxbench.report.drawing.marks import DASHES

_PEAK: Any = {**DASHES, "zorder": 1}
_HEAVY, _THIN = (dict[str, Any](color="black", linestyle="-", zorder=2, linewidth=width) for width in (1.4, 0.7))


class Roof(NamedTuple):
    """One ceiling. value: FLOP/s, or bytes/s for a diagonal. label: its name and value. style: its line's style."""

    label: str
    value: float
    style: dict[str, Any]


def flat(card: dict[str, Any], platform: str, main: str) -> list[Roof]:
    """The FLOP/s ceilings of each precision on the largest measured number of cores. `main` is drawn heavy."""
    peaks = [peak for peak in card["peaks"] if (peak["platform"], peak["quantity"]) == (platform, "flop_per_s")]
    roofs = []
    for dtype in dict.fromkeys([main, *(peak["dtype"] for peak in peaks)]):
        measured, catalogued = (ceiling.flop.rate for ceiling in _ceilings(card, platform, dtype))
        roofs.append((f"{dtype} {quantities.flops(measured)}", measured, _HEAVY if dtype == main else _THIN))
        roofs.append((f"{dtype} peak {quantities.flops(catalogued)}", catalogued, _PEAK))
    return [Roof(*roof) for roof in roofs if math.isfinite(roof[1])]


def steep(card: dict[str, Any], platform: str) -> list[Roof]:
    """The bytes/s ceilings, steepest first; [] if no bandwidth is known."""
    measured, catalogued = _ceilings(card, platform, "")
    named = [
        ("memory", measured.memory.rate, _HEAVY),
        ("cache", measured.cache.rate, _THIN),
        ("memory peak", catalogued.memory.rate, _PEAK),
    ]
    known = [(name, rate, style) for name, rate, style in named if math.isfinite(rate)]
    return [
        Roof(f"{name} {quantities.per_second(rate)}", rate, style)
        for name, rate, style in sorted(known, key=lambda roof: -roof[1])
    ]


def _ceilings(card: dict[str, Any], platform: str, dtype: str) -> tuple[Ceilings, Ceilings]:
    """(measured ceilings, catalogued ceilings)."""
    cores = [peak["cores"] for peak in card["peaks"] if peak["platform"] == platform]
    measured = ceilings.measured(card, platform, max(filter(None, cores), default=0), dtype)
    return measured, ceilings.catalogued(platform, str(card["machine"].get("device_kind", "")), dtype)
