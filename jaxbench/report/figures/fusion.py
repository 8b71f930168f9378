# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What fusing operations saves: time beside the bytes that must move, and the speed-up over op by op by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import paired, quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import seconds
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.figures import bars, canvas
from jaxbench.report.figures.axes import log_axis, seconds_tick, si
from jaxbench.report.figures.bars import Bar
from jaxbench.report.figures.canvas import DASHES, short
from jaxbench.report.figures.curves import elements
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import Series, believed, naming, of_op, plot, remarks, split

CAPTION = (
    "Left and middle: the largest size. If time follows bytes, memory is what the block waits for. Right: how many "
    "times as fast as running operation by operation, by size."
)
BASE = "op_by_op"


def draw(material: Material) -> Figure | None:
    """A row of three panels for each block. None when nothing was measured."""
    rows = [row for row in material.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    names = naming(rows, ("impl", "dtype", "platform", "cores"))
    kinds = list(dict.fromkeys(names.values()))
    series = split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations = list(dict.fromkeys(row.point.op for row in rows))
    figure = canvas.blank()
    panels = figure.subplots(len(operations), 3, squeeze=False, width_ratios=[1, 1, 1.25])
    for line, op in zip(panels, operations, strict=True):
        mine = [row for row in rows if row.point.op == op]
        _bars(line, op, mine, [(kinds.index(names[row.point.point]), row) for row in _largest(mine)])
        _speedups(line[2], op, of_op(series, op), mine)
    handles: list[Any] = [bars.handle(place, short(kind)) for place, kind in enumerate(kinds)]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: what fusing saves")
    notes = canvas.footnotes(figure, remarks(rows))
    figure.set_figheight(0.45 + 1.9 * len(operations) + 0.16 * lines + 0.12 * notes)
    return figure


def _largest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """The rows of the largest size that the base has, or else of the largest of all."""
    based = [row for row in rows if row.point.impl == BASE] or list(rows)
    size = max(row.point.elements or 0 for row in based)
    return [row for row in rows if row.point.elements == size]


def base_of(row: CaseRow, rows: Sequence[CaseRow]) -> CaseRow | None:
    """The same block, size and place op by op."""
    mine = row.point
    same = ("op", "dtype", "elements", "platform", "cores")
    found = [r for r in rows if r.point.impl == BASE and all(getattr(r.point, s) == getattr(mine, s) for s in same)]
    return next((r for r in found if believed(r)), None)


def speedup(row: CaseRow, rows: Sequence[CaseRow]) -> Estimate:
    """How many times as fast as op by op; UNKNOWN without that."""
    base = base_of(row, rows)
    return paired.ratio(base, row) if base is not None and believed(row) else UNKNOWN


def _bars(line: Any, op: str, every: Sequence[CaseRow], rows: Sequence[tuple[int, CaseRow]]) -> None:
    times, sizes = [], []
    for place, (look, row) in enumerate(rows):
        ratio = speedup(row, every)
        gain = f"\n{quantities.times(ratio.alone())}" if ratio.known and row.point.impl != BASE else ""
        text = f"{seconds(row.timing.step_s.value)}{gain}"
        times.append((float(place), Bar(row=row, value=row.timing.step_s, text=text, look=look)))
        if row.point.bytes_moved:
            moved = row.point.bytes_moved
            text = quantities.scaled(moved, "B")
            sizes.append((float(place), Bar(row=row, value=Estimate(value=moved), text=text, look=look)))
    size = rows[0][1].point.elements or 0
    for axes, entries, show, title in (
        (line[0], times, seconds_tick, f"{short(op, 20)}, {si(size)}: time"),
        (line[1], sizes, lambda value: quantities.scaled(value, "B") if value else "0", "bytes that must move"),
    ):
        bars.standing(axes, entries)
        axes.set_xlim(-0.6, len(rows) - 0.4)
        axes.set_xticks([])
        axes.set_title(title, loc="left")
        top = max((bar.value.hi if bar.value.has_interval else bar.value.value for _, bar in entries), default=1.0)
        axes.set_ylim(0, top * 1.38)
        axes.locator_params(axis="y", nbins=4)
        axes.yaxis.set_major_formatter(lambda value, _, show=show: show(value) if value else "0")
        axes.grid(True, axis="y")


def _speedups(axes: Any, op: str, series: Sequence[Series], rows: Sequence[CaseRow]) -> None:
    for one in series:
        if any(row.point.impl != BASE for row in one.rows):
            plot(axes, one, elements, lambda row: speedup(row, rows))
    axes.axhline(1, **DASHES, zorder=1)
    log_axis(axes, "x", show=si, most=5)
    log_axis(axes, "y", show=lambda value: f"{value:g}", most=6, span=[1.0])
    axes.set_xlabel("elements")
    axes.set_title("times as fast as op by op", loc="left")
    ends = []
    for one in series:
        known = [row for row in one.rows if row.point.impl != BASE and speedup(row, rows).known]
        for row in known[-1:]:
            ends.append(Line2D([elements(row)], [speedup(row, rows).value], label=short(one.label, 16)))
    canvas.end_labels(axes, ends, reach=1.6, size=6.5)
