# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of single kernels on one device."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from jaxbench.analysis import quantities, roofline
from jaxbench.analysis.case_comparisons import Crossing, HalfPerformance
from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import Show, seconds_tick, si, zero_axis
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import Mark, exact
from jaxbench.report.drawing.series import Series, believed, elements, naming, per_second, time_over
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, bars, on, rows, wrapped
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
LINALG_ACROSS = 4


@plot("curves", views=("cases/curves", "cases/versus"), title="from latency to throughput")
def draw_curves(run: RunReport) -> Chart | None:
    """Left: at small sizes read the time; it is flat as long as launching the work takes longer than the work itself.
    Right: at large sizes read the throughput. Dotted lines: sizes from which one implementation is faster than another,
    drawn if there are few operations; the table has all. Short bars: n½, the size at which a series reaches half of its
    best throughput."""
    timed = [row for row in run.rows if row.point.elements and row.timing.step_s.known]
    if not timed:
        return None
    rows = _readable(timed)
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations, handles = series.operations(rows), [curve.handle() for curve in every]
    if len(operations) > FEW:
        rest = notes.rest(len(rows), len(timed), "measurements, on the most cores")
        panels = [_throughput(op, series.of_op(every, op), at % ACROSS == 0) for at, op in enumerate(operations)]
        return Chart(
            title=f"{run.experiment}: throughput by size",
            panels=wrapped(panels, ACROSS),
            heights=1.9,
            handles=handles,
            remarks=[*notes.of_marks(rows), *rest],
        )
    words = {op: _words(op, run) for op in operations}
    has_words = any(words.values())
    return Chart(
        panels=[
            [*_latency_and_rate(op, every, run, last=op == operations[-1]), *[_column(words[op])] * has_words]
            for op in operations
        ],
        widths=[1, 1, 0.6] if has_words else [1, 1],
        heights=max(1.65, 0.25 + 0.108 * max(map(len, words.values()))),  # inches; 0.108: a line of words
        handles=handles,
        remarks=notes.of_marks(rows),
    )


def _readable(rows: Sequence[Row]) -> list[Row]:
    """The rows of at most `MOST` series: of too many, those on the most cores, which people run."""
    series_of = series.naming(rows, ("impl", "dtype", "platform", "cores"))
    if len(set(series_of.values())) <= MOST:
        return list(rows)
    most = max((row.point.cores or 0 for row in rows), default=0)
    alone = {row.point.impl for row in rows} - {row.point.impl for row in rows if row.point.cores == most}
    return [row for row in rows if row.point.cores in (None, most) or row.point.impl in alone]


def _throughput(op: str, of_op: Sequence[Series], first: bool) -> Panel:
    """Throughput over size of one of many operations, on axes of the same scale. first: of its row."""
    return Panel(
        title=short(op, 24),
        x=UNIT,
        y=f"{UNIT}/s" if first else "",
        layers=series.curves(of_op, elements, per_second),
        axes=[Log("x", si, max_ticks=4), Log("y", si, max_ticks=6, same="rate"), on(Axes.tick_params, labelleft=first)],
    )


def _latency_and_rate(op: str, every: Sequence[Series], run: RunReport, *, last: bool) -> list[Panel]:
    """Both panels of one of few operations. All operations have the same scales, so that they can be compared.

    last: it is the lowest, which has the labels of the sizes.
    """
    of_op, crossings = series.of_op(every, op), _crossings(_inside(op, run))
    knees = _knees(_known_half_rates(op, run), of_op)
    both = ((series.time, seconds_tick, "time per call"), (per_second, si, f"{UNIT}/s"))
    return [
        Panel(
            title=f"{short(op)}: {what}",
            x=UNIT if last else "",
            layers=[*series.curves(of_op, elements, value), *crossings, *(knees if value is per_second else ())],
            axes=[Log("x", si, max_ticks=5, same=what), Log("y", show, max_ticks=6, same=what)],
            extra=[on(Axes.tick_params, labelbottom=last)],
        )
        for value, show, what in both
    ]


def _column(words: Sequence[str]) -> Panel:
    """A column of explanations."""

    def write(axes: Axes) -> None:
        axes.axis("off")
        axes.text(0, 1, "\n".join(words), va="top", fontsize=6.3, linespacing=1.2, color="#222222")

    return Panel(layers=[write])


def _inside(op: str, run: RunReport) -> list[Crossing]:
    """The crossings that lie between two measured sizes."""
    inside = [c for c in run.crossings if c.op == op and c.below is not None and c.from_ is not None]
    return sorted(inside, key=lambda crossing: crossing.from_ or 0)


def _known_half_rates(op: str, run: RunReport) -> list[HalfPerformance]:
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
    for k in _known_half_rates(op, run):
        half = si(float(f"{k.elements.value:.2g}"))
        lines.append(f"n½ {short(k.series, 24)}: {'> ' if k.rising else ''}{half}")
    return lines


def _crossings(crossings: Sequence[Crossing]) -> list[Layer]:
    """A dotted line with a letter for each size, behind the data."""
    style: marks.Style = dict(y=0.995, va="top", color="#222222", zorder=1.9)
    return [on(marks.boundary, size, letter, **style) for size, letter in _letters(crossings).items()]


def _knees(knees: Sequence[HalfPerformance], of_op: Sequence[Series]) -> list[Layer]:
    """A short bar at (n½, half of the best throughput) of each series."""
    colours = {curve.label: marks.series_style(curve.place)[0] for curve in of_op if any(map(believed, curve.rows))}
    style: marks.Style = dict(marker="|", markersize=10, markeredgewidth=1.2, zorder=5)
    return [
        on(Axes.plot, [k.elements.value], [k.best_per_s.value / 2], color=colours.get(k.series, "black"), **style)
        for k in knees
    ]


@plot("dispatch", views=("cases/dispatch",), title="time per call of a program that does nothing")
def draw_dispatch(run: RunReport) -> Chart | None:
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
        [short(names[row.point_id], 36) for row in shown],
        [Panel(x="time per call", layers=[on(bars, made, show=seconds_tick)])],
        remarks=[*notes.of_marks(timed), *notes.rest(len(shown), len(timed), "programs, the first")],
    )


@plot("fusion", views=("cases/fusion",), title="what fusing saves")
def draw_fusion(run: RunReport) -> Chart | None:
    """Left and middle: time per call and bytes that must move, at the largest size. If time is proportional to bytes,
    the block is memory-bound. Right: speed-up over op-by-op execution, by size."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every = series.split(rows, _FUSION_PARTS, size=elements)
    styles = {row.point_id: curve.place for curve in every for row in curve.rows}
    by_op = {op: [row for row in rows if row.point.op == op] for op in series.operations(rows)}
    return Chart(
        panels=[[*_bars(op, of_op, styles), _speedups(series.of_op(every, op), of_op)] for op, of_op in by_op.items()],
        widths=[1, 1, 1.25],
        heights=1.9,
        handles=[marks.bar_handle(curve.place, short(curve.label)) for curve in every],
        remarks=notes.of_marks(rows),
    )


def _largest(rows: Sequence[Row]) -> list[Row]:
    """Rows of the largest size at which the base was measured; without a base, of the largest size."""
    based = [row for row in rows if row.point.impl == BASE] or list(rows)  # op by op may stop at a smaller size
    size = max(row.point.elements or 0 for row in based)
    return [row for row in rows if row.point.elements == size]


def speedup(row: Row, rows: Sequence[Row]) -> Estimate:
    """Speed-up over op-by-op execution; UNKNOWN if op-by-op execution was not measured."""
    ratio = series.time_over(row, rows, BASE)
    return ratio.under(1) if ratio.known else UNKNOWN


def _bars(op: str, every: Sequence[Row], styles: Mapping[str, int]) -> list[Panel]:
    """The time and the bytes of one operation at its largest size."""
    rows, times, sizes = _largest(every), [], []
    for at, row in enumerate(rows):
        ratio, common = speedup(row, every), dict(at=at, style=styles[row.point_id], state=marks.state(row))
        gain = f"\n{quantities.times(ratio.alone())}" if ratio.known else ""
        time, moved = row.timing.step_s, row.point.bytes_moved
        times.append(Mark(value=time, text=f"{seconds(time.value)}{gain}", **common))  # type: ignore[arg-type]
        if moved:
            sizes.append(Mark(value=exact(moved), text=_bytes_text(moved), **common))  # type: ignore[arg-type]
    time_title = f"{short(op, 20)}, {si(rows[0].point.elements or 0)}: time"
    return [
        _upright(times, time_title, len(rows), seconds_tick),
        _upright(sizes, "bytes that must move", len(rows), _bytes_text),
    ]


def _bytes_text(value: float) -> str:
    return quantities.scaled(value, "B")


def _upright(made: Sequence[Mark], title: str, count: int, show: Show) -> Panel:
    """Bars from 0 without names, with room for their texts."""
    top = max((mark.end for mark in made), default=1.0)
    return Panel(
        title=title,
        layers=[on(marks.vbars, made), on(Axes.set_xlim, -0.6, count - 0.4), on(Axes.set_xticks, [])],
        axes=[on(zero_axis, "y", top, show=show, room=1.38, max_ticks=4)],
    )


def _speedups(every: Sequence[Series], rows: Sequence[Row]) -> Panel:
    """A curve for each implementation, and its name at its last size with a known speed-up."""
    known = [[row for row in curve.rows if speedup(row, rows).known][-1:] for curve in every]
    ends = [
        Line2D([elements(row)], [speedup(row, rows).value], label=short(curve.label, 16))
        for curve, last in zip(every, known, strict=True)
        for row in last
    ]
    return Panel(
        title="speed-up over op by op",
        x="elements",
        layers=series.curves(every, elements, lambda row: speedup(row, rows)),
        level=1.0,
        along="y",
        axes=[Log("x", si, max_ticks=5), Log("y", max_ticks=6, span=[1.0])],
        extra=[on(marks.end_labels, ends, reach=1.6, size=6.5)],
    )


@plot("matmul", views=("cases/matmul",), title="FLOP/s of matrix products")
def draw_matmul(run: RunReport) -> Chart | None:
    """Analytic FLOP (2 per multiply-add) divided by time per call. Dashed: the vendor's peak of a number format, if the
    hardware catalogue has it."""
    rows = [row for row in run.rows if row.flop_per_s.known and row.point.elements]
    square, other = [row for row in rows if side(row)], [row for row in rows if not side(row)]
    if not rows:
        return None
    platforms = list(dict.fromkeys(row.point.platform for row in square))
    every = series.split(square, _MATMUL_PARTS, size=side)
    # A panel for each platform: an accelerator is hundreds of times as fast as its host, and has a peak.
    panels = [
        _squares(
            series.only(every, {row.point_id for row in square if row.point.platform == platform}),
            platform.upper() if len(platforms) > 1 else "",
        )
        for platform in platforms
    ]
    shown = fastest(other)
    rest = notes.rest(len(shown), len(other), "other shapes, the fastest of each kind")
    peaks = [marks.guide_handle("catalogued peak")] if any(map(catalogued_peak, square)) else []
    return Chart(
        panels=[[*panels, *([_shapes(other, shown)] if other else [])]],
        widths=[*[3.2] * len(platforms), *[3.8] * bool(other)],
        heights=2.5 if square else 1,
        handles=[*(curve.handle() for curve in every), *peaks],
        remarks=[*notes.of_marks(rows), *rest],
    )


def side(row: Row) -> int:
    """n of an n x n x n product; 0 for any other shape."""
    match = re.fullmatch(r"(\d+)x\1x\1", row.point.shape)
    return int(match[1]) if match else 0


def _squares(every: Sequence[Series], where: str) -> Panel:
    """The square products, and the catalogued peaks with their names. where: the start of the title."""
    rows = [row for curve in every for row in curve.rows]
    peaks = {row.point.dtype: peak for row in rows if (peak := catalogued_peak(row))}
    style: marks.Style = dict(xycoords=("axes fraction", "data"), xytext=(2, 2), va="bottom", color="#333333")
    return Panel(
        title=": ".join(filter(None, (where, "FLOP/s"))),
        x="n of an n x n x n product",
        layers=series.curves(every, side, lambda row: row.flop_per_s),
        axes=[Log("x", base=2, max_ticks=6), Log("y", si, span=list(peaks.values()))],
        extra=[
            layer
            for dtype, peak in peaks.items()
            for layer in (
                on(marks.unity, at=peak, along="y"),
                on(marks.write, 0.0, peak, f"{dtype} {quantities.flops(peak)}", **style),
            )
        ],
    )


def catalogued_peak(row: Row) -> float:
    """The vendor's peak FLOP/s of the row's format, rounded so that equal peaks compare equal; 0 if none is known.

    A peak that was measured here is the best of these very products, so a line at it would say nothing.
    """
    share = row.peak_share
    known = share.known and share.value > 0 and "catalogue" in row.peak_note
    return float(f"{row.flop_per_s.value / share.value:.3g}") if known else 0.0


def _shapes(rows: Sequence[Row], shown: Sequence[Row]) -> Panel:
    """The fastest shapes of each operation. rows: all shapes, which give kinds their styles."""
    kinds = naming(rows, _MATMUL_PARTS)
    styles = list(dict.fromkeys(kinds[row.point_id] for row in rows))
    made = []
    for place, row in enumerate(shown):
        kind, rate = styles.index(kinds[row.point_id]), row.flop_per_s
        made.append(Mark(at=place, value=rate, state=marks.state(row), style=kind, text=si(rate.value)))
    named = [f"{row.point.shape}{'' if len(styles) == 1 else ' ' + kinds[row.point_id]}" for row in shown]
    top = max((mark.value.value for mark in made if mark.believed), default=1.0)
    return Panel(
        title="other shapes: FLOP/s",
        layers=[on(marks.hbars, made)],
        axes=[on(zero_axis, "x", top, show=si, room=1.2)],
        names=[short(name, 36) for name in named],
    )


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


@plot("stream", views=("cases/stream",), title="bandwidth by working set")
def draw_stream(run: RunReport) -> Chart | None:
    """Bytes that an operation must read and write, divided by its time per call. At each step down, the arrays no
    longer fit in a cache; only the plateau at the right is memory bandwidth. Small grey points are launch-bound:
    starting the call takes a quarter or more of the time, so they do not show a bandwidth. Dotted: the size of the
    last-level cache, and four times that size, beyond which a working set counts as in memory."""
    rows = [row for row in run.rows if row.point.bytes_moved and row.bytes_per_s.known]
    if not rows:
        return None
    every = series.split(rows, ("op", "dtype"), size=working_set)
    places = series.naming(rows, ("impl", "platform", "cores"))
    inside: dict[str, list[Row]] = {}
    for row in rows:
        inside.setdefault(places[row.point_id], []).append(row)
    cache = run.manifest.get("cache_bytes")  # the processor's
    sizes = {kind: cache if of[0].point.platform == "cpu" else None for kind, of in inside.items()}
    plateau = any(from_memory(of, sizes[kind]) is not None for kind, of in inside.items())
    launch = ["small grey points: launch-bound, no bandwidth"] if any(row.launch_bound for row in rows) else []
    several = len(inside) > 1
    return Chart(
        panels=wrapped(
            [
                _bandwidth(every, of, sizes[kind], kind if several else "", "" if at % 2 else "GB/s", wide=not several)
                for at, (kind, of) in enumerate(inside.items())
            ],
            2,
        ),
        heights=2.5,
        sharey=True,
        handles=[*(curve.handle() for curve in every), *[marks.guide_handle("best from memory")] * plateau],
        remarks=[*notes.of_marks(rows), *launch],
    )


def _bandwidth(
    every: Sequence[Series], rows: Sequence[Row], cache: int | None, kind: str, y: str, *, wide: bool
) -> Panel:
    """The rows of one implementation and place. cache: bytes of the last-level cache; None: unknown."""
    bound = [row for row in rows if row.launch_bound]  # not on the line, which shows bandwidth
    rates = [row.bytes_per_s.value / 1e9 for row in bound]
    best = from_memory(rows, cache)
    rate = "" if best is None else f"{quantities.per_second(best.bytes_per_s.value)} from memory"
    plateau = [] if best is None else [on(_plateau, rows, best, cache)]
    small: marks.Style = dict(color=marks.PALE, marker=".", linestyle="none", zorder=3)
    of_kind = series.only(every, {row.point_id for row in rows})
    bandwidth = lambda row: UNKNOWN if row.launch_bound else row.bytes_per_s  # noqa: E731
    return Panel(
        title=": ".join(filter(None, (kind, rate))),
        x="working set",
        y=y,
        layers=[
            *series.curves(of_kind, working_set, bandwidth, scale=1e-9),
            on(Axes.plot, list(map(working_set, bound)), rates, **small),
        ],
        axes=[
            Log("x", quantities.payload, base=2, max_ticks=9 if wide else 6),
            Log("y", max_ticks=8, same="rate"),
        ],
        extra=[on(_caches, cache), *plateau],
    )


def _plateau(axes: Axes, rows: Sequence[Row], best: Row, cache: int | None) -> None:
    """Draws the best rate from memory, from half an octave before the first size in memory on."""
    start = min(working_set(row) for row in rows if _in_memory(row, cache)) / math.sqrt(2)
    marks.guide(axes, [start, axes.get_xlim()[1]], [best.bytes_per_s.value / 1e9] * 2)


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


@plot("linalg", views=("cases/linalg",), title="factorizations")
def draw_linalg(run: RunReport) -> Chart | None:
    """Above: time per factorization of an n x n matrix. Below: time of each implementation divided by jit's on the same
    device and cores; above the dashed line jit is faster."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    pairs = [
        _factorization(series.of_op(every, op), rows, short(op, 24), first=at % LINALG_ACROSS == 0)
        for at, op in enumerate(series.operations(rows))
    ]
    above, below = (wrapped(panels, LINALG_ACROSS) for panels in zip(*pairs, strict=True))
    return Chart(
        panels=[line for band in zip(above, below, strict=True) for line in band],
        heights=[1.8, 1.2] * len(above),
        sharex=True,
        sharey="row",
        handles=[curve.handle() for curve in every],
        remarks=notes.of_marks(rows),
    )


def _factorization(of_op: Sequence[Series], rows: Sequence[Row], title: str, *, first: bool) -> tuple[Panel, Panel]:
    """The panels of time and of time over jit's. first: of their row."""
    sizes = Log("x", base=2, max_ticks=4, span=list(map(elements, rows)))
    above = Panel(
        title=title,
        y="time per call" if first else "",
        layers=series.curves(of_op, elements, series.time),
        axes=[Log("y", seconds_tick, max_ticks=6, same="time"), sizes],
    )
    below = Panel(
        x="n",
        y="time / time of jit" if first else "",
        layers=series.curves(of_op, elements, lambda row: time_over(row, rows, COMPILED)),
        level=1.0,
        along="y",
        axes=[Log("y", max_ticks=6, same="ratio", span=[1.0]), sizes, on(Axes.tick_params, labelbottom=True)],
    )
    return above, below
