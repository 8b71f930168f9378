# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What fusing operations saves: time, bytes that must move, and speed-up over op-by-op execution by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import seconds
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import Show, entitle, log_axis, plain, seconds_tick, si, zero_axis
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Mark, Sheet, exact, short
from jaxbench.report.drawing.series import Series, elements

VIEWS = ("cases/fusion",)
CAPTION = (
    "Left and middle: time per call and bytes that must move, at the largest size. If time is proportional to bytes, "
    "the block is memory-bound. Right: speed-up over op-by-op execution, by size."
)
BASE = "op_by_op"
_PARTS = ("impl", "dtype", "platform", "cores")


def draw(run: CaseFindings) -> Figure | None:
    """Draws a row of three panels per block. None when nothing was measured."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every, operations = series.split(rows, _PARTS, size=elements), series.operations(rows)
    styles = {row.point.point: one.place for one in every for row in one.rows}
    sheet = Sheet(len(operations), 3, widths=[1, 1, 1.25], heights=1.9)
    for line, op in zip(sheet.panels, operations, strict=True):
        of_op = [row for row in rows if row.point.op == op]
        _bars(line[:2], op, of_op, [(styles[row.point.point], row) for row in _largest(of_op)])
        _speedups(line[2], series.of_op(every, op), of_op)
    handles: list[Any] = [marks.bar_handle(one.place, short(one.label)) for one in every]
    return sheet.finish(f"{run.experiment}: what fusing saves", handles, notes.of_marks(rows))


def _largest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """Rows of the largest size at which the base was measured; without a base, of the largest size."""
    based = [row for row in rows if row.point.impl == BASE] or list(rows)
    size = max(row.point.elements or 0 for row in based)
    return [row for row in rows if row.point.elements == size]


def speedup(row: CaseRow, rows: Sequence[CaseRow]) -> Estimate:
    """Speed-up over op-by-op execution; UNKNOWN if op-by-op execution was not measured."""
    ratio = series.time_over(row, rows, BASE)
    return ratio.under(1) if ratio.known else UNKNOWN


def _bars(panels: Any, op: str, every: Sequence[CaseRow], rows: Sequence[tuple[int, CaseRow]]) -> None:
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


def _speedups(axes: Axes, every: Sequence[Series], rows: Sequence[CaseRow]) -> None:
    ends = []
    for one in every:
        one.draw(axes, elements, lambda row: speedup(row, rows))
        for row in [row for row in one.rows if speedup(row, rows).known][-1:]:
            ends.append(Line2D([elements(row)], [speedup(row, rows).value], label=short(one.label, 16)))
    marks.unity(axes, along="y")
    log_axis(axes, "x", show=si, max_ticks=5)
    log_axis(axes, "y", show=plain, max_ticks=6, span=[1.0])
    entitle(axes, "speed-up over op by op", x="elements")
    marks.end_labels(axes, ends, reach=1.6, size=6.5)
