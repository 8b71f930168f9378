# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The axes of the figures: scales, ticks and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from jaxbench.report.drawing import contents
from jaxbench.report.drawing.marks import Mark

Show = Callable[[float], str]
LOGARITHMIC = 10  # values are dots on a logarithmic axis if the largest is at least this many times the smallest
_LABELS = 9  # at most this many device counts fit under a panel


def plain(value: float) -> str:
    """A tick's text: "0.01", "250"."""
    return f"{value:g}"


def devices_axis(axes: Axes, counts: Sequence[int], *, label: str = "devices") -> None:
    """Makes x a base-2 logarithmic axis with a whole-number tick at each measured count."""
    step = max(1, -(-len(counts) // _LABELS))  # every n-th count, rounded up
    low, high = (min(counts), max(counts)) if counts else (1, 8)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.25, high * 1.25)  # room for markers, also if there is a single count
    _set_ticks(axes.xaxis, list(counts[::step]) or [1], plain)
    axes.set_xlabel(label)


def efficiency_axis(axes: Axes) -> None:
    """Makes y a linear axis of percent, from 0 (so that heights can be compared) to above 100 and the highest value.

    A wide interval may leave the panel: it must not squeeze all values.
    """
    highest = max(contents.values(axes, "y"), default=100.0)
    top = max(112.0, 1.05 * min(axes.dataLim.y1, 1.5 * highest))
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(FixedLocator([*range(0, int(top) + 1, 25)]))


def log_axis(
    axes: Axes,
    which: str,
    *,
    show: Show = plain,
    base: int = 10,
    max_ticks: int = 7,
    span: Iterable[float] = (),
    min_span: float = 4,
) -> None:
    """Makes x or y a logarithmic axis over the drawn data, with at most `max_ticks` round ticks, formatted by `show`.

    base: 2 has ticks only at powers of two. span: more values that must be on the axis. min_span: the least ratio of
    the axis's ends. Call it after everything is drawn.
    """
    seen = [v for v in (*extent([axes], which), *span) if math.isfinite(v) and v > 0]
    low, high = (min(seen), max(seen)) if seen else (1.0, 10.0)
    # A margin of a twelfth of the axis, and more if the data span so little that noise would fill the panel.
    margin = max((high / low) ** (1 / 24), math.sqrt(max(1.0, min_span / (high / low))), 1.1)
    low, high = low / margin, high * margin
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    _set_ticks(axes.xaxis if which == "x" else axes.yaxis, round_ticks(low, high, base=base, max_ticks=max_ticks), show)


def extent(panels: Iterable[Axes], which: str) -> list[float]:
    """The ends of a logarithmic axis over the data of all panels: as `span`, they give all panels the same axis.

    One wide interval extends the axis by a limited factor: see `contents.robust`.
    """
    every = list(panels)
    ends = [getattr(axes.dataLim, which + end) for axes in every for end in "01"]
    ends = [end for end in ends if math.isfinite(end) and end > 0]
    middle = [value for axes in every for value in contents.values(axes, which) if value > 0]
    return list(contents.robust(middle, ends)) if ends else []


def zero_axis(
    axes: Axes, which: str, top: float, *, show: Show = plain, room: float = 1.13, max_ticks: int = 5
) -> None:
    """Makes x or y an axis from 0, so that lengths can be compared. room: its end over `top`, which leaves space for
    texts."""
    (axes.set_xlim if which == "x" else axes.set_ylim)(0, room * top or 1)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value) if value > 0 else "0"))


def whole_zero(axes: Axes) -> None:
    """Makes y a linear axis from just below 0, so that a mark at 0 is not cut."""
    top = axes.dataLim.y1 if axes.dataLim.y1 > 0 else 1.0
    axes.set_ylim(-0.04 * top, 1.12 * top)


def bar_axis(axes: Axes, bars: Sequence[Mark], *, show: Show = plain, room: float = 0.17) -> None:
    """Makes x the axis of horizontal bars from 0, with room for a text next to the longest."""
    zero_axis(axes, "x", reach(bars), show=show, room=1 + room, max_ticks=8)


def spread(bars: Sequence[Mark]) -> bool:
    """Whether values differ so much that bars from 0 would vanish: they are drawn as dots on a logarithmic axis."""
    known = [bar.value.value for bar in bars if bar.value.value > 0 and bar.believed]
    return bool(known) and max(known) >= LOGARITHMIC * min(known)


def reach(bars: Sequence[Mark]) -> float:
    """The end of an axis from 0 over bars: a wide interval may leave the panel, or it would squeeze all bars."""
    trusted = [bar for bar in bars if bar.believed] or bars
    highest = max((bar.value.value for bar in trusted), default=0.0)
    return min(max((bar.end for bar in trusted), default=0.0), 2 * highest)


def _set_ticks(axis: Axis, ticks: Sequence[float], show: Show) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))


def round_ticks(low: float, high: float, *, base: int = 10, max_ticks: int = 7) -> list[float]:
    """At most `max_ticks` round numbers in [low, high].

    Base 2: every n-th power, including 1 KiB and 1 MiB. Base 10: the coarsest of five sets of digits with three ticks.
    """
    if base != 10:
        powers = range(math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9) + 1)
        step = max(1, -(-len(powers) // max_ticks))
        aligned = [power for power in powers if power % step == 10 % step]  # 2^10 is 1 KiB, 2^20 is 1 MiB
        return [float(base) ** power for power in aligned or powers[:1]]
    ticks: list[float] = []
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    # From the coarsest set on, until three ticks are inside: fewer do not show that the axis is logarithmic.
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 6, 8), range(1, 10), tuple(d / 10 for d in range(10, 100))):
        ticks = [digit * 10.0**decade for decade in decades for digit in digits if low <= digit * 10.0**decade <= high]
        if len(ticks) >= 3:
            break
    if len(ticks) <= max_ticks:
        return ticks or [low, high]
    # Steps of the finest digits grow tenfold at a power of ten, so that every n-th one may stand on its neighbour.
    apart, kept = (high / low) ** (1 / max_ticks), ticks[:1]
    for tick in ticks[1:]:
        if tick >= apart * kept[-1]:
            kept.append(tick)
    return kept


def entitle(axes: Axes, title: str = "", *, x: str = "", y: str = "") -> None:
    """Sets the panel's title and axis labels. An empty text changes nothing."""
    for text, write in ((title, axes.set_title), (x, axes.set_xlabel), (y, axes.set_ylabel)):
        if text:
            write(text)


def si(value: float) -> str:
    """A tick's text with an SI prefix: "10k", "2.5M"."""
    return _in_unit(value, ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")))


def bytes_tick(value: float) -> str:
    """A tick's text in bytes: "20 MB", "1.5 GB"."""
    return _in_unit(value, ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (0.0, " B"))) if value else "0"


def seconds_tick(value: float) -> str:
    """A tick's text in seconds: "10 µs", "1 ms"."""
    return "0" if value == 0 else _in_unit(value, ((1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")))


def _in_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    """The value in the first unit that is not larger, else in the last. Size 0 means no prefix."""
    # A tick at 1e6 may be 999999.9999 after the axis has computed it, which is 1M and not 1000k.
    size, unit = next(((size, unit) for size, unit in units if value >= size * 0.999999), units[-1])
    return f"{value / (size or 1):.3g}{unit}"
