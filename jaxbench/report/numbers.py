# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Formats numbers for table cells: three digits, then the interval; "" if the value is unknown."""

from __future__ import annotations

import math
from functools import partial

from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval, percent

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))


def milliseconds(estimate: Estimate) -> str:
    """Milliseconds with three or more digits: "12.3 [12.1, 12.4]"."""
    return _scaled(estimate, 1e-3)


def time(estimate: Estimate) -> str:
    """A time with value and interval in the same unit: "12.3 [12.1, 12.4] µs"."""
    if not estimate.known:
        return ""
    size, unit = next(((s, u) for s, u in _UNITS if estimate.value >= s), _UNITS[-1])
    return f"{_scaled(estimate, size)} {unit}"


def giga(estimate: Estimate) -> str:
    """Billions: "12.3 [12.1, 12.4]"."""
    return interval(estimate, partial(_digits, size=1e9))


def ratio(estimate: Estimate) -> str:
    """A ratio: "1.82 [1.79, 1.85]"; "1" for the base of the ratio."""
    if not estimate.known:
        return ""
    if not estimate.has_interval or estimate.lo == estimate.hi:  # the base is exactly 1 in every bootstrap sample
        return "1" if estimate.value == 1 else f"{estimate.value:.2f}"
    return interval(estimate, "{:.2f}".format)


def share(estimate: Estimate) -> str:
    """Percent: "91 [89, 93]"."""
    if estimate.value < 0.005 and not estimate.has_interval:
        return "<1"
    return percent(estimate).replace(" %", "")


def throughput(value: float) -> str:
    """Three digits with an SI prefix: "20.8k"; "" if not finite."""
    if not math.isfinite(value):
        return ""
    size, prefix = next((s, p) for s, p in _SIZES if value >= s or not s)
    return f"{value / (size or 1):#.3g}".removesuffix(".") + prefix


def _scaled(estimate: Estimate, size: float) -> str:
    if not estimate.known:
        return ""
    value = estimate.value / size
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 2
    between = f" [{estimate.lo / size:.{places}f}, {estimate.hi / size:.{places}f}]" if estimate.has_interval else ""
    return f"{value:.{places}f}{between}"


def _digits(value: float, *, size: float) -> str:
    """Three digits, no exponent: "0.0123", "12.3", "1230"."""
    value /= size
    if value == 0 or not math.isfinite(value):
        return ""
    return f"{value:.2g}" if abs(value) < 1e-4 else f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
