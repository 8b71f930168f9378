# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The axes of the figures: which scale, which ticks, which labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

_LABELS = 9  # more device counts than this do not fit under a panel


def devices_axis(axes: Axes, counts: Sequence[int]) -> None:
    """Base-2 logarithmic, a tick at each measured count, written as whole numbers."""
    axes.set_xscale("log", base=2)
    step = max(1, -(-len(counts) // _LABELS))
    axes.xaxis.set_major_locator(FixedLocator(list(counts[::step]) or [1]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    low, high = (min(counts), max(counts)) if counts else (1, 8)
    axes.set_xlim(low / 1.25, high * 1.25)
    axes.set_xlabel("devices")
    axes.grid(True)


def throughput_axis(axes: Axes, title: str) -> None:
    """Logarithmic, so that linear scaling is a straight line; ticks at 1, 2, 5 or finer, with SI prefixes."""
    low, high = _log_range(axes)
    axes.set_ylim(low, high)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(decade_ticks(low, high)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value)))
    axes.set_title(title, loc="left")


def speedup_axis(axes: Axes, title: str) -> None:
    """Base-2 logarithmic like the devices, ticks at powers of two."""
    low, high = _log_range(axes)
    axes.set_ylim(low, high)
    axes.set_yscale("log", base=2)
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    axes.yaxis.set_major_locator(FixedLocator([2.0**p for p in powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title(title, loc="left")


def efficiency_axis(axes: Axes, title: str) -> None:
    """Linear from 0, so that heights can be compared; to a little above 100, or above the highest value."""
    axes.set_ylim(0, max(112.0, axes.dataLim.y1 * 1.05))
    axes.yaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100, *range(125, int(axes.get_ylim()[1]) + 1, 25)]))
    axes.set_title(title, loc="left")


def decade_ticks(low: float, high: float) -> list[float]:
    """Round numbers in [low, high]: the coarsest of three choices that gives at least three of them."""
    found: list[float] = []
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 6, 8), tuple(d / 10 for d in range(10, 100))):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [digit * 10.0**decade for decade in decades for digit in digits if low <= digit * 10.0**decade <= high]
        if len(found) >= 3:
            break
    return found[:: -(-len(found) // 7)] if found else [low, high]


def _log_range(axes: Axes) -> tuple[float, float]:
    """What the data spans, with a margin of a twelfth on each side and never less than a factor of two."""
    low, high = axes.dataLim.y0, axes.dataLim.y1
    if not (math.isfinite(low) and math.isfinite(high) and low > 0):
        return 1.0, 10.0
    margin = max((high / low) ** (1 / 12), math.sqrt(max(1.0, 2 * low / high)), 1.12)
    return low / margin, high * margin


def si(value: float) -> str:
    """ "10k", "2.5M"; small values as they are."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.999999:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def log_axis(
    axes: Axes, which: str, *, show: Callable[[float], str], base: int = 10, most: int = 7, span: Sequence[float] = ()
) -> None:
    """A logarithmic x or y axis over what is drawn, with at most `most` round ticks, written by `show`.

    base 2 has its ticks at powers of two only, for bytes. span: values that must be on the axis besides what is drawn.
    Call it when everything is drawn.
    """
    lim = axes.dataLim
    drawn = (lim.x0, lim.x1) if which == "x" else (lim.y0, lim.y1)
    seen = [v for v in (*drawn, *span) if math.isfinite(v) and v > 0]
    low, high = (min(seen), max(seen)) if seen else (1.0, 10.0)
    margin = max((high / low) ** (1 / 24), math.sqrt(max(1.0, 4 / (high / low))), 1.1)
    low, high = low / margin, high * margin
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axis.set_major_locator(FixedLocator(_ticks(base, low, high, most)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    axes.grid(True, axis="both")


def _ticks(base: int, low: float, high: float, most: int) -> list[float]:
    """At most `most`. Of powers of two every n-th, counted so that 1, 1 KiB and 1 MiB are among them when n allows."""
    if base == 10:
        ticks = decade_ticks(low, high)
        return ticks[:: -(-len(ticks) // most)]
    powers = range(math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9) + 1)
    step = max(1, -(-len(powers) // most))
    aligned = [power for power in powers if power % step == 10 % step]
    return [float(base) ** power for power in aligned or powers[:1]]


def seconds_tick(value: float) -> str:
    """ "10 µs", "1 ms"; for ticks, which are round."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.999999:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def plain(value: float) -> str:
    """ "0.01", "250"."""
    return f"{value:g}"
