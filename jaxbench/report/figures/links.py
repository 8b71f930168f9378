# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of collectives and copies between devices."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from jaxbench.analysis import quantities
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.report.drawing import contents, marks, notes, series
from jaxbench.report.drawing.axes import entitle, extent, log_axis, seconds_tick
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.series import Series, believed, payload
from jaxbench.report.drawing.shapes import Chart, Layer, Log, Panel, bars_from_zero, on, wrapped
from jaxbench.report.run_report import RunReport

ALPHA_BETA_LIMIT, MAX_PAIRS = 7, 6  # most device groups in one panel, and most copy pairs in a figure
BESIDE_PUBLISHED = "all_reduce"  # the only collective with published series
ACROSS = 3
_NAMES = {"a100x8": "8 A100", "h200x8": "8 H200", "b200x8": "8 B200", "b200x8x4nodes": "4 nodes of 8 B200"}
MAPPED, WRITTEN = 5, 9  # more ends than the first are a map; up to the second have numbers in its cells
SLOW = 0.75  # of the median of the pairs of the same kind (operation), because only those should be equally fast
TRANSFER_LIMIT = 6  # most lines in the panel over payload


@plot("alpha_beta", views=("cases/transfer", "cases/collectives"), order=1)
def draw_alpha_beta(run: RunReport) -> Figure | None:
    """Time per call with the fitted line t(S) = alpha + S / beta. The latency alpha is the level at the left; the
    bandwidth beta sets the slope at the right. Below: measured time minus the line. A pattern there means that one line
    does not fit all sizes. A line that misses a time by 25 % or more is not drawn: its alpha and beta describe
    nothing."""
    fits = {group_of(fit.point): fit for fit in run.lines if not fit.why_not}
    rows, left_out = _chosen([row for row in run.rows if row.timing.step_s.known], fits)  # only rows with a fit
    if not rows:
        return None
    every = series.split(rows, ("group", "pair", "dtype"), size=payload)
    fitted = any(not fit.poor for fit in fits.values())
    sheet, pairs = series.bands(rows, across=3, heights=(1.95, 1.15))
    for op, (above, below) in pairs.items():
        for curve in series.of_op(every, op):
            curve.draw(above, payload, series.time, between="none")
            _fitted(above, below, curve, fits)
        marks.unity(below, at=0, along="y")
    uppers, lowers = zip(*pairs.values(), strict=True)
    off = [abs(value) for axes in lowers for value in contents.values(axes, "y")]
    top = max([*off, 5.0])  # at least ± 5 %, so that good fits look good
    for above, below in pairs.values():
        log_axis(above, "y", show=seconds_tick, max_ticks=6, span=extent(uppers, "y"))
        for axes in (above, below):
            log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=4, span=map(payload, rows))
        below.set_ylim(-1.15 * top, 1.15 * top)
        entitle(below, x="payload")
        if not contents.has_data(below):
            entitle(above, x="payload")
            above.tick_params(labelbottom=True)
    for axes, label in zip(sheet.panels[:, 0], ["time per call", "measured - line, %"] * len(pairs), strict=False):
        entitle(axes, y=label)
    fake = all(row.point.platform == "cpu" for row in rows)
    handles, remarks = [curve.handle() for curve in every], [*notes.of_marks(rows, fake=fake), *left_out]
    if any(fits[group_of(row.point)].poor for row in rows if group_of(row.point) in fits):
        remarks.append("without a line: no line alpha + S / beta comes within 25 % of every time")
    what = "time by payload, with the line alpha + S / beta" if fitted else "time by payload"
    return sheet.finish(f"{run.experiment}: {what}", handles, remarks)


def _chosen(rows: Sequence[Row], fits: dict[tuple[object, ...], AlphaBetaFit]) -> tuple[list[Row], list[str]]:
    """(rows to draw, notes on groups left out). Of too many groups: the slowest, the fastest and some between."""
    keep: set[tuple[object, ...]] = set()
    left_out = []
    ops = list(dict.fromkeys(fit.point.op for fit in fits.values()))
    for op in ops:
        matching = (fit for fit in fits.values() if fit.point.op == op)
        ranked = sorted(matching, key=lambda fit: fit.beta_bytes_per_s.value)
        # Each pair of a copy has a name of its own, so all panels share the entries of one legend.
        most = max(2, MAX_PAIRS // len(ops)) if ranked[0].point.source else ALPHA_BETA_LIMIT
        count = min(most, len(ranked))
        picks = np.unique(np.linspace(0, len(ranked) - 1, count).round().astype(int))  # with both ends
        keep |= {group_of(ranked[pick].point) for pick in picks}
        if len(picks) < len(ranked):
            shown = f"{len(picks)} of {len(ranked)} groups, from the slowest to the fastest"
            left_out.append(f"{short(op)}: {shown}; the page has all")
    return [row for row in rows if group_of(row.point) in keep], left_out


def _fitted(above: Axes, below: Axes, curve: Series, fits: dict[tuple[object, ...], AlphaBetaFit]) -> None:
    """Draws the fitted line through its series, and the residuals in the panel below."""
    fit = next((fits[group_of(row.point)] for row in curve.rows if group_of(row.point) in fits), None)
    if fit is None or not fit.residuals or fit.poor:
        return
    sizes, residuals = np.array(fit.residuals, dtype=np.float64).T
    fine = np.geomspace(sizes.min(), sizes.max(), 100)
    colour, marker = marks.series_style(curve.place)
    above.plot(fine, fit.seconds_at(fine), color=colour, linewidth=0.9, zorder=2)
    below.plot(
        sizes,
        100 * residuals,
        color=colour,
        marker=marker,
        markerfacecolor="white" if fit.point.oversubscribed else colour,
        linewidth=0.6,
        markersize=3.2,
        markeredgewidth=0.9,
        zorder=3,
    )


@plot("busbw", views=("cases/collectives",), title="bus bandwidth")
def draw_busbw(run: RunReport) -> Chart | None:
    """Bus bandwidth as nccl-tests defines it: payload divided by time, times the bytes that an ideal algorithm sends
    per byte of payload. Published series are from other machines and are drawn unscaled."""
    rows = [row for row in run.rows if row.busbw.known and row.point.payload_bytes]
    if not rows:
        return None
    every, operations = series.split(rows, ("group", "dtype", "platform"), size=payload), series.operations(rows)
    layers = {op: _buses(series.of_op(every, op)) for op in operations}
    wide, cited = layers.pop(BESIDE_PUBLISHED, None), list[str]()
    small = [_small(op, of_op, first=at % ACROSS == 0) for at, (op, of_op) in enumerate(layers.items())]
    panels = wrapped(small, ACROSS)
    heights = [1.75] * len(panels)
    if wide is not None:  # on top, with axes of its own: the published series are far above a CPU's
        panels, heights = [[_wide(wide)], *panels], [2.7, *heights]
        cited = [notes.cited(f"{published.read('allreduce_busbw').project}; one node of 8, and 4 nodes")]
    return Chart(
        panels=panels,
        heights=heights,
        handles=[curve.handle() for curve in every],
        remarks=[*notes.of_marks(rows, fake=all(row.point.platform == "cpu" for row in rows)), *cited],
    )


def _buses(of_op: Sequence[Series]) -> list[Layer]:
    """The series of one operation, slightly apart."""
    dodges = [marks.dodge(place, len(of_op)) for place in range(len(of_op))]
    return [
        on(curve.draw, lambda row, factor=factor: factor * payload(row), lambda row: row.busbw, scale=1e-9)  # type: ignore[misc]
        for factor, curve in zip(dodges, of_op, strict=True)
    ]


def _small(op: str, layers: Sequence[Layer], *, first: bool) -> Panel:
    """A collective without published series. first: of its row."""
    return Panel(
        title=short(op, 24),
        x="payload",
        y="GB/s" if first else "",
        layers=layers,
        axes=[
            Log("x", quantities.payload, base=2, max_ticks=4, same="small"),
            Log("y", max_ticks=6, same="small"),
            on(Axes.tick_params, labelleft=first),
        ],
    )


def _wide(layers: Sequence[Layer]) -> Panel:
    """All-reduce in front of the published series."""
    table = published.allreduce()
    behind = [
        (Line2D(table.index, table[name] / 1e9, label=_NAMES.get(str(name), str(name))), marks.series_style(place)[1])
        for place, name in enumerate(table.columns)
    ]
    return Panel(
        title=f"{short(BESIDE_PUBLISHED)}: bus bandwidth",
        x="payload",
        y="GB/s",
        layers=[
            *layers,
            *(on(marks.published, *line.get_data(), shape=s, label=str(line.get_label())) for line, s in behind),
        ],
        axes=[Log("x", quantities.payload, base=2, max_ticks=11), Log("y", max_ticks=9)],
        extra=[on(marks.end_labels, [line for line, _ in behind], reach=1.5, size=6.5)],
    )


Pair = tuple[str, str]


@plot("transfer", views=("cases/transfer",), title="bandwidth of copies")
def draw_transfer(run: RunReport) -> Chart | None:
    """Left: GB/s of each copy at the largest payload; of many devices as a map from source (row) to target (column),
    where a thick frame marks a pair below three quarters of the median of its kind. Right: GB/s over payload, for the
    pairs with the most payloads. Of a CPU, only as many devices as it has cores."""
    rows = [row for row in run.rows if row.algbw.known and row.point.payload_bytes and not _beyond_cores(row)]
    if not rows:
        return None
    matrix = largest(rows)
    slow, count = slow_pairs(matrix), len(ends(matrix))
    mapped, (lines, left_out) = count > MAPPED, _lines(rows)
    every = series.split(lines, ("pair", "dtype"), size=payload)
    over_payload = Panel(
        title="GB/s by payload",
        x="payload",
        layers=series.curves(every, payload, lambda row: row.algbw, scale=1e-9),
        axes=[Log("x", quantities.payload, base=2, max_ticks=5), Log("y")],
    )
    return Chart(
        panels=[[Panel(layers=[on(_heat, matrix, slow)]) if mapped else _copies(matrix), over_payload]],
        widths=[1.25 if mapped else 1, 1],
        heights=max(2.4, min(4.0, 1.0 + 0.3 * count)),
        handles=[curve.handle() for curve in every],
        remarks=[*_slow_notes(slow, framed=mapped), *left_out, *notes.of_marks(rows)],
    )


def _beyond_cores(row: Row) -> bool:
    """Whether a copy is from or to a CPU device without a core of its own: such devices share cores."""
    numbers = [int(name.partition(":")[2]) for name in _pair_of(row) if name.startswith("cpu:")]
    return row.point.platform == "cpu" and max(numbers, default=0) >= (row.point.cores or math.inf)


def _copies(rows: Sequence[Row]) -> Panel:
    """A bar for each pair."""
    operations = series.operations(rows)
    made = [
        marks.Mark(
            at=at,
            value=row.algbw.times(1e-9),
            state=marks.state(row),
            style=operations.index(row.point.op),  # as of the first line of each kind in the panel next to it
            text=f"{row.algbw.value / 1e9:.3g}",
        )
        for at, row in enumerate(rows)
    ]
    return Panel(
        title=f"GB/s at {quantities.payload(max(map(payload, rows)))}",
        x="GB/s",
        layers=[on(bars_from_zero, made, room=1.2, ticks=5)],
        names=[f"{short(row.point.source, 16)} → {short(row.point.target, 16)}" for row in rows],
    )


def largest(rows: Sequence[Row]) -> list[Row]:
    """The row with the largest payload of each pair, preferring rows that passed their checks."""
    best: dict[Pair, Row] = {}
    for row in sorted(rows, key=lambda row: (believed(row), payload(row))):  # the last of a pair stays
        best[_pair_of(row)] = row
    return list(best.values())


def slow_pairs(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    """(row, bandwidth over the median of its kind) of the pairs below SLOW x that median."""
    slow = []
    for op in series.operations(rows):
        alike = [row for row in rows if row.point.op == op and believed(row)]
        middle = float(np.median([row.algbw.value for row in alike])) if alike else math.nan
        slow += [(row, row.algbw.value / middle) for row in alike if row.algbw.value < SLOW * middle]
    return slow


def ends(rows: Sequence[Row]) -> list[str]:
    """All sources and targets of copies: the host first, then devices by number."""
    names = {name for row in rows for name in _pair_of(row)}
    return sorted(names, key=lambda name: (name != "host", [int(n) for n in re.findall(r"\d+", name)], name))


def _heat(axes: Axes, rows: Sequence[Row], slow: Sequence[tuple[Row, float]]) -> None:
    """Draws the bandwidth of each link as a matrix."""
    names = ends(rows)
    where = {row.point_id: (names.index(row.point.target), names.index(row.point.source)) for row in rows}
    grid = np.full((len(names), len(names)), math.nan)
    for row in filter(believed, rows):
        x, y = where[row.point_id]
        grid[y, x] = row.algbw.value / 1e9
    top = float(np.nanmax(grid)) if np.isfinite(grid).any() else 1.0
    edges = np.arange(len(names) + 1) - 0.5  # cells are shapes, not an image, which PDF readers blur when they scale it
    axes.grid(False)
    cells = axes.pcolormesh(edges, edges, grid, cmap="Blues", vmin=0, vmax=top * 1.3, edgecolors="white", linewidth=1.2)
    axes.figure.colorbar(cells, ax=axes, label="GB/s", shrink=0.8, boundaries=np.linspace(0, top, 50))
    axes.invert_yaxis()
    size = 6.0
    written = len(names) <= WRITTEN  # more numbers do not fit into their cells: the colours and the table say them
    for row in rows:
        x, y = where[row.point_id]
        rate, mark = row.algbw.value / 1e9, "°" if row.point.oversubscribed else ""
        text = (f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}") + mark if believed(row) else "x"
        # White where the cell is dark: the colour scale ends at 1.3 times the top.
        colour = marks.PALE if not believed(row) else "white" if grid[y, x] > 0.9 * top else "black"
        if written or not believed(row):
            axes.text(x, y, text, ha="center", va="center", fontsize=size, color=colour)
    for row, _ in slow:
        x, y = where[row.point_id]
        axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor="black", linewidth=1.6))
    shown, small = [short(name, 16) for name in names], min(7.0, size + 1)
    axes.set_xticks(range(len(names)), shown, fontsize=small, rotation=90 if len(names) > 5 else 0)
    axes.set_yticks(range(len(names)), shown, fontsize=small)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    entitle(axes, "GB/s, largest payload", x="to", y="from")


def _lines(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """(rows to draw, notes): pairs with the most payloads; if too many, each kind's slowest and fastest pair."""
    payloads: dict[Pair, set[float]] = {}
    for row in rows:
        payloads.setdefault(_pair_of(row), set()).add(payload(row))
    longest = max(map(len, payloads.values()))
    keep = {pair for pair, sizes in payloads.items() if len(sizes) == longest}
    left_out = []
    if len(keep) > TRANSFER_LIMIT:  # the two ends show how much pairs differ
        ranked = sorted((row for row in largest(rows) if _pair_of(row) in keep), key=lambda row: row.algbw.value)
        kinds = [[_pair_of(row) for row in ranked if row.point.op == op] for op in series.operations(ranked)]
        keep = {pair for pairs in kinds for pair in (pairs[0], pairs[-1])}
        left_out = ["right: the slowest and the fastest pair of each kind"]
    return [row for row in rows if _pair_of(row) in keep], left_out


def _pair_of(row: Row) -> Pair:
    return row.point.source, row.point.target


def _slow_notes(slow: Sequence[tuple[Row, float]], *, framed: bool) -> list[str]:
    if not slow:
        return []
    ranked = sorted(slow, key=lambda pair: pair[1])
    names = [f"{short(row.point.source)} → {short(row.point.target)}" for row, _ in ranked[:8]]
    pairs = [f"{name} ({100 * share:.0f} %)" for name, (_, share) in zip(names, ranked, strict=False)]
    more = f" and {len(ranked) - 8} more" if len(ranked) > 8 else ""
    what = "framed" if framed else "slow"
    return [f"{what}: below {100 * SLOW:.0f} % of the median of its kind: {', '.join(pairs)}{more}"]
