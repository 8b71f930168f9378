# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of single kernels on one device."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import quantities, roofline
from jaxbench.analysis.case_comparisons import Crossing, HalfPerformance
from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import Show, entitle, extent, log_axis, plain, seconds_tick, si, zero_axis
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import Mark, exact
from jaxbench.report.drawing.series import Series, believed, elements, naming, per_second, time_over
from jaxbench.report.drawing.shapes import Panel, bars, rows
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

UNIT = "elements"
MOST = 5  # series that a reader can tell apart
ACROSS = 3  # panels in a row
FEW = 3  # up to this many operations have a column that explains letters and short bars; more leave no room for it
_WORDS = 29  # characters per line of that column
DISPATCH_LIMIT = 24
BASE = "op_by_op"
_FUSION_PARTS = ("impl", "dtype", "platform", "cores")
MATMUL_LIMIT = 14  # most bars that fit; the table has all shapes
_MATMUL_PARTS = ("op", "dtype", "impl", "platform", "cores")
COMPILED = "jit"


@plot("curves", views=("cases/curves", "cases/versus"))
def draw_curves(run: RunReport) -> Figure | None:
    """Left: at small sizes read the time; it is flat as long as launching the work takes longer than the work itself.
    Right: at large sizes read the throughput. Dotted lines: sizes from which one implementation is faster than another,
    drawn if there are few operations; the table has all. Short bars: n½, the size at which a series reaches half of its
    best throughput."""
    rows = [row for row in run.rows if row.point.elements and row.timing.step_s.known]
    if not rows:
        return None
    left_out = len(rows)
    rows = _readable(rows)
    left_out -= len(rows)
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations = series.operations(rows)
    if len(operations) > FEW:
        return _throughputs(run, every, operations, rows, left_out)
    words = {op: _words(op, run) for op in operations}
    tall = max(1.65, 0.25 + 0.108 * max(map(len, words.values())))  # inches; 0.108: a line of words
    widths = [1, 1, 0.6] if any(words.values()) else [1, 1]
    sheet = Sheet(len(operations), len(widths), widths=widths, heights=tall)
    for line, op in zip(sheet.panels, operations, strict=True):
        of_op = series.of_op(every, op)
        for curve in of_op:
            curve.draw(line[0], elements, series.time)
            curve.draw(line[1], elements, per_second)
        _crossings(line[:2], _inside(op, run))
        _knees(line[1], _half(op, run), of_op)
        for column in line[2:]:  # the column of explanations, which exists only if there are marks to explain
            column.axis("off")
            column.text(0, 1, "\n".join(words[op]), va="top", fontsize=6.3, linespacing=1.2, color="#222222")
    _axes(sheet.panels, operations)
    handles = [curve.handle() for curve in every]
    return sheet.finish(f"{run.experiment}: from latency to throughput", handles, notes.of_marks(rows))


def _readable(rows: Sequence[Row]) -> list[Row]:
    """The rows of at most `MOST` series: of too many, those on the most cores, which people run."""
    series_of = series.naming(rows, ("impl", "dtype", "platform", "cores"))
    if len(set(series_of.values())) <= MOST:
        return list(rows)
    most = max((row.point.cores or 0 for row in rows), default=0)
    alone = {row.point.impl for row in rows} - {row.point.impl for row in rows if row.point.cores == most}
    return [row for row in rows if row.point.cores in (None, most) or row.point.impl in alone]


def _throughputs(
    run: RunReport, every: Sequence[Series], operations: Sequence[str], rows: Sequence[Row], left_out: int
) -> Figure:
    """A panel for each of many operations: throughput over size, on axes of the same scale."""
    across = min(ACROSS, len(operations))
    sheet = Sheet(-(-len(operations) // across), across, heights=1.9)
    panels = list(sheet.panels.flat)[: len(operations)]
    for axes, op in zip(panels, operations, strict=True):
        for curve in series.of_op(every, op):
            curve.draw(axes, elements, per_second)
    tall = extent(panels, "y")
    for number, (axes, op) in enumerate(zip(panels, operations, strict=True)):
        log_axis(axes, "x", show=si, max_ticks=4)
        log_axis(axes, "y", show=si, span=tall, max_ticks=6)
        axes.tick_params(labelleft=number % across == 0)
        entitle(axes, short(op, 24), x=UNIT, y="" if number % across else f"{UNIT}/s")
    remarks = [
        *notes.of_marks(rows),
        *notes.rest(len(rows), len(rows) + left_out, "measurements, on the most cores"),
    ]
    return sheet.finish(f"{run.experiment}: throughput by size", [curve.handle() for curve in every], remarks)


def _axes(panels: np.ndarray, operations: Sequence[str]) -> None:
    """Sets the same scales for every operation, so that they can be compared; labels only the outer panels."""
    for column, show, what in ((0, seconds_tick, "time per call"), (1, si, f"{UNIT}/s")):
        wide, tall = (extent(panels[:, column], which) for which in "xy")
        for axes, op in zip(panels[:, column], operations, strict=True):
            log_axis(axes, "x", show=si, span=wide, max_ticks=5)
            log_axis(axes, "y", show=show, span=tall, max_ticks=6)
            entitle(axes, f"{short(op)}: {what}")
            axes.tick_params(labelbottom=axes is panels[-1, column])
        entitle(panels[-1, column], x=UNIT)


def _inside(op: str, run: RunReport) -> list[Crossing]:
    """The crossings that lie between two measured sizes."""
    inside = [c for c in run.crossings if c.op == op and c.below is not None and c.from_ is not None]
    return sorted(inside, key=lambda crossing: crossing.from_ or 0)


def _half(op: str, run: RunReport) -> list[HalfPerformance]:
    return [k for k in run.half_rates if k.op == op and k.elements.known and k.below is not None]


def _letters(crossings: Sequence[Crossing]) -> dict[int, str]:
    """A letter for each distinct size."""
    sizes = dict.fromkeys(crossing.from_ or 0 for crossing in crossings)
    return {size: chr(ord("a") + place % 26) for place, size in enumerate(sizes)}


def _words(op: str, run: RunReport) -> list[str]:
    """Explanations of the letters and bars in one operation's panels, in wrapped lines."""
    passed = _inside(op, run)
    letters = _letters(passed)
    lines = []
    for c in passed:
        size = c.from_ or 0
        text = f"{letters[size]}  {si(size)}: {short(c.faster, 24)} passes {short(c.slower, 24)}"
        lines += textwrap.wrap(text, _WORDS, subsequent_indent="    ")
    for k in _half(op, run):
        half = si(float(f"{k.elements.value:.2g}"))
        lines.append(f"n½ {short(k.series, 24)}: {'> ' if k.rising else ''}{half}")
    return lines


def _crossings(line: Sequence[Axes], crossings: Sequence[Crossing]) -> None:
    """Draws a dotted line with a letter through both panels, behind the data."""
    for size, letter in _letters(crossings).items():
        for axes in line:
            marks.boundary(axes, size, letter, y=0.995, va="top", color="#222222", zorder=1.9)


def _knees(axes: Axes, knees: Sequence[HalfPerformance], of_op: Sequence[Series]) -> None:
    """Draws a short bar at (n½, half of the best throughput) of each series."""
    colours = {curve.label: marks.series_style(curve.place)[0] for curve in of_op if any(map(believed, curve.rows))}
    for knee in knees:
        axes.plot(
            [knee.elements.value],
            [knee.best_per_s.value / 2],
            marker="|",
            markersize=10,
            markeredgewidth=1.2,
            color=colours.get(knee.series, "black"),
            zorder=5,
        )


@plot("dispatch", views=("cases/dispatch",))
def draw_dispatch(run: RunReport) -> Figure | None:
    """Time per call of programs that do almost nothing: the overhead of every call. Times that differ tenfold or more
    are marks on a logarithmic axis, else bars from 0."""
    timed, parts = [row for row in run.rows if row.timing.step_s.known], ("impl", "dtype", "platform", "cores")
    if not timed:
        return None
    shown, operations = timed[:DISPATCH_LIMIT], series.operations(timed)
    names = series.naming(timed, ("op", *parts))
    if len(set(names.values())) < len(timed):  # shapes only where names repeat
        names = series.naming(timed, ("op", "shape", *parts))
    made = [
        Mark(
            at=at,
            value=row.timing.step_s,
            state=marks.state(row),
            style=operations.index(row.point.op),
            text=seconds(row.timing.step_s.value),
        )
        for at, row in enumerate(shown)
    ]
    return rows(  # without a legend: the names of the rows begin with the operation
        f"{run.experiment}: time per call of a program that does nothing",
        [short(names[row.point.point], 36) for row in shown],
        [Panel(x="time per call", made=made, draw=bars(seconds_tick))],
        remarks=[*notes.of_marks(timed), *notes.rest(len(shown), len(timed), "programs, the first")],
    )


@plot("fusion", views=("cases/fusion",))
def draw_fusion(run: RunReport) -> Figure | None:
    """Left and middle: time per call and bytes that must move, at the largest size. If time is proportional to bytes,
    the block is memory-bound. Right: speed-up over op-by-op execution, by size."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every, operations = series.split(rows, _FUSION_PARTS, size=elements), series.operations(rows)
    styles = {row.point.point: curve.place for curve in every for row in curve.rows}
    sheet = Sheet(len(operations), 3, widths=[1, 1, 1.25], heights=1.9)
    for line, op in zip(sheet.panels, operations, strict=True):
        of_op = [row for row in rows if row.point.op == op]
        _bars(line[:2], op, of_op, [(styles[row.point.point], row) for row in _largest(of_op)])
        _speedups(line[2], series.of_op(every, op), of_op)
    handles: list[Artist] = [marks.bar_handle(curve.place, short(curve.label)) for curve in every]
    return sheet.finish(f"{run.experiment}: what fusing saves", handles, notes.of_marks(rows))


def _largest(rows: Sequence[Row]) -> list[Row]:
    """Rows of the largest size at which the base was measured; without a base, of the largest size."""
    based = [row for row in rows if row.point.impl == BASE] or list(rows)  # op by op may stop at a smaller size
    size = max(row.point.elements or 0 for row in based)
    return [row for row in rows if row.point.elements == size]


def speedup(row: Row, rows: Sequence[Row]) -> Estimate:
    """Speed-up over op-by-op execution; UNKNOWN if op-by-op execution was not measured."""
    ratio = series.time_over(row, rows, BASE)
    return ratio.under(1) if ratio.known else UNKNOWN


def _bars(panels: np.ndarray, op: str, every: Sequence[Row], rows: Sequence[tuple[int, Row]]) -> None:
    times, sizes = [], []
    for at, (place, row) in enumerate(rows):
        ratio, common = speedup(row, every), dict(at=at, style=place, state=marks.state(row))
        gain = f"\n{quantities.times(ratio.alone())}" if ratio.known else ""
        time, moved = row.timing.step_s, row.point.bytes_moved
        times.append(Mark(value=time, text=f"{seconds(time.value)}{gain}", **common))  # type: ignore[arg-type]
        if moved:
            sizes.append(Mark(value=exact(moved), text=_bytes(moved), **common))  # type: ignore[arg-type]
    size = rows[0][1].point.elements or 0
    _panel(panels[0], times, f"{short(op, 20)}, {si(size)}: time", len(rows), seconds_tick)
    _panel(panels[1], sizes, "bytes that must move", len(rows), _bytes)


def _bytes(value: float) -> str:
    return quantities.scaled(value, "B")


def _panel(axes: Axes, bars: Sequence[Mark], title: str, count: int, show: Show) -> None:
    marks.vbars(axes, bars)
    axes.set_xlim(-0.6, count - 0.4)
    axes.set_xticks([])
    zero_axis(axes, "y", max((bar.end for bar in bars), default=1.0), show=show, room=1.38, max_ticks=4)
    entitle(axes, title)


def _speedups(axes: Axes, every: Sequence[Series], rows: Sequence[Row]) -> None:
    ends = []
    for curve in every:
        curve.draw(axes, elements, lambda row: speedup(row, rows))
        for row in [row for row in curve.rows if speedup(row, rows).known][-1:]:
            ends.append(Line2D([elements(row)], [speedup(row, rows).value], label=short(curve.label, 16)))
    marks.unity(axes, along="y")
    log_axis(axes, "x", show=si, max_ticks=5)
    log_axis(axes, "y", show=plain, max_ticks=6, span=[1.0])
    entitle(axes, "speed-up over op by op", x="elements")
    marks.end_labels(axes, ends, reach=1.6, size=6.5)


@plot("matmul", views=("cases/matmul",))
def draw_matmul(run: RunReport) -> Figure | None:
    """Analytic FLOP (2 per multiply-add) divided by time per call. Dashed: the vendor's peak of a number format, if the
    hardware catalogue has it."""
    rows = [row for row in run.rows if row.flop_per_s.known and row.point.elements]
    square, other = [row for row in rows if side(row)], [row for row in rows if not side(row)]
    if not rows:
        return None
    platforms = list(dict.fromkeys(row.point.platform for row in square))
    widths = [*[3.2] * len(platforms), *[3.8] * bool(other)]
    sheet = Sheet(1, len(widths), widths=widths, heights=2.5 if square else 1)
    every: list[Series] = series.split(square, _MATMUL_PARTS, size=side)
    # A panel for each platform: an accelerator is hundreds of times as fast as its host, and has a peak.
    for axes, platform in zip(sheet.panels[0], platforms, strict=False):
        here = {row.point.point for row in square if row.point.platform == platform}
        where = platform.upper() if len(platforms) > 1 else ""
        _squares(axes, series.only(every, here), where)
    remarks = notes.of_marks(rows)
    if other:
        remarks += _shapes(sheet, other)
    peaks = [marks.guide_handle("catalogued peak")] if any(map(catalogued_peak, square)) else []
    title = f"{run.experiment}: FLOP/s of matrix products"
    return sheet.finish(title, [*(curve.handle() for curve in every), *peaks], remarks)


def side(row: Row) -> int:
    """n of an n x n x n product; 0 for any other shape."""
    match = re.fullmatch(r"(\d+)x\1x\1", row.point.shape)
    return int(match[1]) if match else 0


def _squares(axes: Axes, every: Sequence[Series], where: str) -> None:
    """Draws the square products, and the catalogued peaks with their names. where: the start of the title."""
    for curve in every:
        curve.draw(axes, side, lambda row: row.flop_per_s)
    rows = [row for curve in every for row in curve.rows]
    peaks = {row.point.dtype: peak for row in rows if (peak := catalogued_peak(row))}
    log_axis(axes, "x", base=2, show=plain, max_ticks=6)
    log_axis(axes, "y", show=si, span=peaks.values())
    entitle(axes, ": ".join(filter(None, (where, "FLOP/s"))), x="n of an n x n x n product")
    for dtype, peak in peaks.items():
        marks.unity(axes, at=peak, along="y")
        style: marks.Style = dict(xycoords=("axes fraction", "data"), xytext=(2, 2), va="bottom", color="#333333")
        marks.write(axes, 0.0, peak, f"{dtype} {quantities.flops(peak)}", **style)


def catalogued_peak(row: Row) -> float:
    """The vendor's peak FLOP/s of the row's format, rounded so that equal peaks compare equal; 0 if none is known.

    A peak that was measured here is the best of these very products, so a line at it would say nothing.
    """
    share = row.peak_share
    known = share.known and share.value > 0 and "catalogue" in row.peak_note
    return float(f"{row.flop_per_s.value / share.value:.3g}") if known else 0.0


def _shapes(sheet: Sheet, rows: Sequence[Row]) -> list[str]:
    """Draws the fastest shapes of each operation. Returns a note if there are more."""
    axes, kinds, shown = sheet.panels[0, -1], naming(rows, _MATMUL_PARTS), fastest(rows)
    styles = list(dict.fromkeys(kinds[row.point.point] for row in rows))
    made = []
    for place, row in enumerate(shown):
        kind, rate = styles.index(kinds[row.point.point]), row.flop_per_s
        made.append(Mark(at=place, value=rate, state=marks.state(row), style=kind, text=si(rate.value)))
    marks.hbars(axes, made)
    named = [f"{row.point.shape}{'' if len(styles) == 1 else ' ' + kinds[row.point.point]}" for row in shown]
    sheet.names(axes, [short(name, 36) for name in named])
    zero_axis(axes, "x", max((mark.value.value for mark in made if mark.believed), default=1.0), show=si, room=1.2)
    entitle(axes, "other shapes: FLOP/s")
    return notes.rest(len(shown), len(rows), "other shapes, the fastest of each kind")


def fastest(rows: Sequence[Row]) -> list[Row]:
    """At most MATMUL_LIMIT rows, spread over kinds (batched or not, op, dtype, impl, device, cores), fastest first."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.point.shape.count("x"), -row.flop_per_s.value)):
        p = row.point
        groups.setdefault((p.shape.count("x"), p.op, p.dtype, p.impl, p.platform, p.cores), []).append(row)
    counts = dict.fromkeys(groups, 0)
    while sum(counts.values()) < min(MATMUL_LIMIT, len(rows)):  # one more of the kind with the fewest
        kind = min((kind for kind in groups if counts[kind] < len(groups[kind])), key=lambda kind: counts[kind])
        counts[kind] += 1
    return [row for kind, group in groups.items() for row in group[: counts[kind]]]


@plot("stream", views=("cases/stream",))
def draw_stream(run: RunReport) -> Figure | None:
    """Bytes that an operation must read and write, divided by its time per call. At each step down, the arrays no
    longer fit in a cache; only the plateau at the right is memory bandwidth. Small grey points are launch-bound:
    starting the call takes a quarter or more of the time, so they do not show a bandwidth. Dotted: the size of the
    last-level cache, and four times that size, beyond which a working set counts as in memory."""
    rows = [row for row in run.rows if row.point.bytes_moved and row.bytes_per_s.known]
    if not rows:
        return None
    every = series.split(rows, ("op", "dtype"), size=working_set)
    places = series.naming(rows, ("impl", "platform", "cores"))
    kinds = list(dict.fromkeys(places.values()))
    columns = min(2, len(kinds))
    sheet = Sheet(-(-len(kinds) // columns), columns, heights=2.5, sharey=True)
    panels: list[Axes] = list(sheet.panels.flat)
    inside = {kind: [row for row in rows if places[row.point.point] == kind] for kind in kinds}
    for axes, kind in zip(panels, kinds, strict=False):
        for curve in series.only(every, {row.point.point for row in inside[kind]}):
            curve.draw(axes, working_set, lambda row: UNKNOWN if row.launch_bound else row.bytes_per_s, scale=1e-9)
        bound = [row for row in inside[kind] if row.launch_bound]  # not on the line, which shows bandwidth
        rates = [row.bytes_per_s.value / 1e9 for row in bound]
        axes.plot(list(map(working_set, bound)), rates, color=marks.PALE, marker=".", linestyle="none", zorder=3)
    tall, plateau = extent(panels, "y"), False
    for axes, kind in zip(panels, kinds, strict=False):
        log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=6 if columns == 2 else 9)
        log_axis(axes, "y", show=plain, max_ticks=8, span=tall)
        size = run.manifest.get("cache_bytes") if inside[kind][0].point.platform == "cpu" else None  # the processor's
        best = from_memory(inside[kind], size)
        rate = "" if best is None else f"{quantities.per_second(best.bytes_per_s.value)} from memory"
        entitle(axes, ": ".join(filter(None, (kind if len(kinds) > 1 else "", rate))), x="working set")
        _caches(axes, size)
        if best is not None:
            # Half an octave before the first size in memory, where the plateau begins.
            start = min(working_set(row) for row in inside[kind] if _in_memory(row, size)) / math.sqrt(2)
            marks.guide(axes, [start, axes.get_xlim()[1]], [best.bytes_per_s.value / 1e9] * 2)
            plateau = True
    for axes in panels[len(kinds) :]:
        axes.remove()
    for axes in sheet.panels[:, 0]:
        entitle(axes, y="GB/s")
    handles = [*(curve.handle() for curve in every), *([marks.guide_handle("best from memory")] if plateau else [])]
    launch = ["small grey points: launch-bound, no bandwidth"] if any(row.launch_bound for row in rows) else []
    return sheet.finish(f"{run.experiment}: bandwidth by working set", handles, [*notes.of_marks(rows), *launch])


def working_set(row: Row) -> float:
    """Bytes of the working set. A call touches every array once, so this equals the bytes moved."""
    return float(row.point.bytes_moved or 0)


def _in_memory(row: Row, cache: int | None) -> bool:
    return roofline.memory_level(working_set(row), cache) == "memory"


def from_memory(rows: Sequence[Row], cache: int | None) -> Row | None:
    """The fastest row with arrays too large for the cache; None if there is no such row."""
    rows = [row for row in rows if believed(row) and _in_memory(row, cache)]
    return max(rows, key=lambda row: row.bytes_per_s.value, default=None)


def _caches(axes: Axes, cache: int | None) -> None:
    """Draws lines at the size of the last-level cache, and at the size from which a working set counts as memory."""
    low, high = axes.get_xlim()
    limits = ((1, f"cache {quantities.payload(cache or 0)}"), (roofline.CACHES, f"{roofline.CACHES} x cache"))
    for times, text in limits:
        size = times * (cache or 0)
        if low < size < high:
            marks.boundary(axes, size, text, y=0.02, rotation=90, color="#333333", va="bottom")


@plot("linalg", views=("cases/linalg",))
def draw_linalg(run: RunReport) -> Figure | None:
    """Above: time per factorization of an n x n matrix. Below: time of each implementation divided by jit's on the same
    device and cores; above the dashed line jit is faster."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    sheet, pairs = series.bands(rows, across=4, heights=(1.8, 1.2))
    for op, (above, below) in pairs.items():
        for curve in series.of_op(every, op):
            curve.draw(above, elements, series.time)
            curve.draw(below, elements, lambda row: time_over(row, rows, COMPILED))
        marks.unity(below, along="y")
    for number, line in enumerate(zip(*pairs.values(), strict=True)):  # the upper panels, then the lower ones
        span = [*extent(line, "y"), *([1.0] if number else [])]
        for axes in line:
            log_axis(axes, "y", show=plain if number else seconds_tick, max_ticks=6, span=span)
            log_axis(axes, "x", base=2, show=plain, max_ticks=4, span=map(elements, rows))
            entitle(axes, x="n" if number else "")
    for axes, label in zip(sheet.panels[:, 0], ["time per call", "time / time of jit"] * len(pairs), strict=False):
        entitle(axes, y=label)
    handles = [curve.handle() for curve in every]
    return sheet.finish(f"{run.experiment}: factorizations", handles, notes.of_marks(rows))
