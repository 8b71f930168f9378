# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth over payload, a panel per collective; published all-reduce series are dashed in the background."""

from __future__ import annotations

from jaxbench.analysis import quantities
from jaxbench.catalog import published
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, extent, log_axis, plain, short
from jaxbench.report.drawing.series import payload

VIEWS = ("cases/collectives",)
CAPTION = (
    "Bus bandwidth as nccl-tests defines it: payload divided by time, times the bytes that an ideal algorithm sends "
    "per byte of payload. Published series are from other machines and are drawn unscaled."
)
BESIDE_PUBLISHED = "all_reduce"
ACROSS = 3
_NAMES = {"a100x8": "8 A100", "h200x8": "8 H200", "b200x8": "8 B200", "b200x8x4nodes": "4 nodes of 8 B200"}


def draw(run: CaseFindings) -> Figure | None:
    """Draws a panel per collective. None unless a group of several devices was measured: one device has no bus."""
    rows = [row for row in run.rows if row.busbw.known and row.point.payload_bytes]
    if not rows:
        return None
    every = series.split(rows, ("group", "dtype", "platform"), size=payload)
    operations = series.operations(rows)
    sheet, panels = _panels(sorted(operations, key=lambda op: op != BESIDE_PUBLISHED))
    for op, axes in panels.items():
        of_op = series.of_op(every, op)
        for place, one in enumerate(of_op):
            factor = marks.dodge(place, len(of_op))
            one.draw(axes, lambda row, factor=factor: factor * payload(row), lambda row: row.busbw, scale=1e-9)  # type: ignore[misc]
    remarks = notes.of_marks(rows, fake=all(row.point.platform == "cpu" for row in rows))
    wide = panels.pop(BESIDE_PUBLISHED, None)
    if wide is not None:
        remarks.append(_behind(wide))
    spans = {which: extent(panels.values(), which) for which in "xy"}
    for op, axes in panels.items():
        log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=4, span=spans["x"])
        log_axis(axes, "y", show=plain, max_ticks=6, span=spans["y"])
        entitle(axes, short(op, 24), x="payload")
    return sheet.finish(f"{run.experiment}: bus bandwidth", [one.handle() for one in every], remarks)


def _panels(operations: list[str]) -> tuple[Sheet, dict[str, Axes]]:
    """Makes one wide panel for all-reduce on top, and small panels for the other collectives below."""
    first = operations[0] == BESIDE_PUBLISHED
    rest = operations[first:]
    down, columns = -(-len(rest) // ACROSS), max(1, min(ACROSS, len(rest)))
    sheet = Sheet(first + down, columns, heights=[2.7] * first + [1.75] * down)
    small = list(sheet.panels[first:].flat)
    for number, axes in enumerate(small):
        axes.tick_params(labelleft=number % columns == 0)
        if number >= len(rest):
            axes.remove()
    panels = {BESIDE_PUBLISHED: sheet.join(0)} if first else {}
    for axes in sheet.panels[:, 0]:
        entitle(axes, y="GB/s")
    return sheet, panels | dict(zip(rest, small, strict=False))


def _behind(axes: Axes) -> str:
    """Draws the published series behind all-reduce. Returns their citation."""
    table = published.allreduce()
    lines = [
        marks.published(
            axes,
            table.index,
            table[name] / 1e9,
            shape=marks.series_style(place)[1],
            label=_NAMES.get(str(name), str(name)),
        )
        for place, name in enumerate(table.columns)
    ]
    log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=11)
    log_axis(axes, "y", show=plain, max_ticks=9)
    marks.end_labels(axes, lines, reach=1.5, size=6.5)
    entitle(axes, f"{short(BESIDE_PUBLISHED)}: bus bandwidth", x="payload")
    return notes.cited(f"{published.read('allreduce_busbw').project}; one node of 8, and 4 nodes")
