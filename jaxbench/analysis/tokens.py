# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Throughput in tokens, and in real tokens, which exclude padding."""

from __future__ import annotations

import math

from jaxbench.analysis.quantities import devices, scaled
from jaxbench.analysis.scaling import Row


def real_share(row: Row) -> float:
    """The share of a step's tokens that its loss counts; NaN if the loss does not weight tokens."""
    return row.point.fact("real_share")


def per_second(row: Row) -> float:
    """All tokens per second, including padding; NaN if examples are not sequences, or without times."""
    return row.timing.examples_per_s.value * row.point.fact("tokens")


def real_per_second(row: Row) -> float:
    return per_second(row) * real_share(row)


def sentences(rows: list[Row]) -> list[str]:
    """Real and all tokens per second for each strategy, scaling and arm, on its smallest and largest device counts."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if math.isfinite(real_per_second(row)) and not row.point.oversubscribed:
            name = ", ".join(filter(None, (f"{row.point.strategy} {row.point.scaling}", row.point.arm)))
            families.setdefault(name, []).append(row)
    lines = []
    for name, family in families.items():
        ends = family[:: max(1, len(family) - 1)]
        lines.append(f"{name}: {'; '.join(map(_sentence, ends))}.")
    return lines


def _sentence(row: Row) -> str:
    real, total = (scaled(value, "").replace(" ", "") for value in (real_per_second(row), per_second(row)))
    return f"{real} real of {total} tokens/s ({100 * real_share(row):.3g} %) on {devices(row.point.devices)}"
