# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Formats a number for a sentence or a cell."""

from __future__ import annotations


def digits(value: float, count: int = 3) -> str:
    """Three digits: "12.3", "0.0123", "1030", "10,300". With an exponent only below 0.0001 and from 10 million on."""
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{count}g}"
    rounded = float(f"{value:.{count}g}")
    return f"{rounded:,.10g}" if abs(rounded) >= 1e4 else f"{rounded:.10g}"


def size(count: float | None) -> str:
    """Bytes: "9,472 B" or "12.30 MB"; "" if unknown."""
    return "" if count is None else f"{count / 1e6:,.2f} MB" if count >= 1e5 else f"{count:,.0f} B"


def counted(count: float, noun: str) -> str:
    """A count with its noun: "1 step", "2,000 steps", "2 processes", "1.5 cores"."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "tch")) else "s"
    return f"{count:,.10g} {noun}{ending}"
