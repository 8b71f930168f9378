# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Factorizations: time over matrix size n, and each implementation's time divided by jit's."""

from __future__ import annotations

from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Figure, entitle, extent, log_axis, plain, seconds_tick
from jaxbench.report.drawing.series import elements, time_over

VIEWS = ("cases/linalg",)
CAPTION = (
    "Above: time per factorization of an n x n matrix. Below: time of each implementation divided by jit's on the same "
    "device and cores; above the dashed line jit is faster."
)
OWN = "jit"


def draw(run: CaseFindings) -> Figure | None:
    """Draws two panels per factorization, one above the other. None when nothing was measured."""
    rows = [row for row in run.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    every = series.split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    sheet, pairs = series.bands(rows, across=4, heights=(1.8, 1.2))
    for op, (above, below) in pairs.items():
        for one in series.of_op(every, op):
            one.draw(above, elements, series.time)
            one.draw(below, elements, lambda row: time_over(row, rows, OWN))
        marks.unity(below, along="y")
    for number, line in enumerate(zip(*pairs.values(), strict=True)):
        span = [*extent(line, "y"), *([1.0] if number else [])]
        for axes in line:
            log_axis(axes, "y", show=plain if number else seconds_tick, max_ticks=6, span=span)
            log_axis(axes, "x", base=2, show=plain, max_ticks=4, span=map(elements, rows))
            entitle(axes, x="n" if number else "")
    for axes, label in zip(sheet.panels[:, 0], ["time per call", "time / time of jit"] * len(pairs), strict=False):
        entitle(axes, y=label)
    handles = [one.handle() for one in every]
    return sheet.finish(f"{run.experiment}: factorizations", handles, notes.of_marks(rows))
