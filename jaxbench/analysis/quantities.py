# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Formats quantities. Rates use powers of ten, payloads use powers of two, as in nccl-tests."""

from __future__ import annotations

import math
from collections.abc import Callable

from jaxbench.digits import digits
from jaxbench.statistics.bootstrap import Estimate

_TENS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TWOS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def scaled(value: float, unit: str) -> str:
    """Three digits with a power of ten: (1.23e10, "B/s") -> "12.3 GB/s"."""
    size, prefix = next(((size, prefix) for size, prefix in _TENS if abs(value) >= size), (1.0, ""))
    return f"{_digits(value / size)} {prefix}{unit}"


def per_second(bytes_per_s: float) -> str:
    return scaled(bytes_per_s, "B/s")


def flops(flop_per_s: float, dtype: str = "") -> str:
    """A rate of operations: "12.3 GFLOP/s"; "12.3 GOP/s" for integers."""
    return scaled(flop_per_s, operations(dtype))


def operations(dtype: str) -> str:
    return "OP/s" if dtype.startswith(("int", "uint")) else "FLOP/s"


def payload(size_bytes: float) -> str:
    """A size in powers of two: "16 KiB", "1.5 MiB", "512 B"."""
    size, unit = next(((size, unit) for size, unit in _TWOS if size_bytes >= size), (1, "B"))
    return f"{size_bytes / size:.3g} {unit}" if size_bytes / size < 1000 else f"{size_bytes / size:.0f} {unit}"


def interval(value: Estimate, show: Callable[[float], str]) -> str:
    """A value with its interval: "12.3 GB/s [12.1 GB/s, 12.4 GB/s]"; without brackets if there is no interval."""
    return show(value.value) + (f" [{show(value.lo)}, {show(value.hi)}]" if value.has_interval else "")


def times(ratio: Estimate) -> str:
    """A ratio: "2.31 x [2.2, 2.42]"."""
    between = f" [{_digits(ratio.lo)}, {_digits(ratio.hi)}]" if ratio.has_interval else ""
    return f"{_digits(ratio.value)} x{between}"


def seconds(value: float) -> str:
    """A time with three digits, in s, ms, µs or ns."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.{max(0, 2 - len(str(int(value / size))) + 1)}f} {unit}"
    return f"{digits(value / 1e-9)} ns"


def percent(value: Estimate, *, fine: bool = True) -> str:
    """A share with its interval: "91 % [89, 93]". If `fine`, a narrow interval gets one more digit."""
    places = 1 if fine and value.has_interval and value.hi - value.lo < 0.02 else 0
    between = f" [{100 * value.lo:z.{places}f}, {100 * value.hi:z.{places}f}]" if value.has_interval else ""
    return f"{100 * value.value:z.{places}f} %{between}"


def devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _digits(value: float) -> str:
    """Three significant digits below 1000, whole numbers above."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if abs(value) < 1000 else f"{value:.0f}"
