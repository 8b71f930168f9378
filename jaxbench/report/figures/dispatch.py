# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The cost of launching a program: a bar of time per call for each nearly empty program."""

from __future__ import annotations

from jaxbench.analysis.headline import seconds
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Figure, Mark, Sheet, short, time_axis

VIEWS = ("cases/dispatch",)
CAPTION = (
    "Time per call of programs that do almost nothing: the overhead of every call. The axis is logarithmic: compare "
    "the ends of the bars, not their lengths."
)
LIMIT = 24
_PARTS = ("op", "impl", "dtype", "platform", "cores")


def draw(run: CaseFindings) -> Figure | None:
    """Draws one panel. None when nothing was measured."""
    rows = [row for row in run.rows if row.timing.step_s.known]
    if not rows:
        return None
    shown = rows[:LIMIT]
    names = series.naming(rows, _PARTS)
    if len(set(names.values())) < len(rows):
        names = series.naming(rows, ("op", "shape", *_PARTS[1:]))
    operations = series.operations(rows)
    made = [
        Mark(
            at=place, value=row.timing.step_s, state=marks.state(row), style=operations.index(row.point.op),
            text=seconds(row.timing.step_s.value),
        )
        for place, row in enumerate(shown)
    ]  # fmt: skip
    sheet = Sheet()
    marks.hbars(sheet.only(), made, start=time_axis(sheet.only(), made))
    sheet.names(sheet.only(), [short(names[row.point.point], 36) for row in shown])
    several = operations if len(operations) > 1 else []
    handles = [marks.bar_handle(place, short(op)) for place, op in enumerate(several)]
    remarks = [*notes.of_marks(rows), *notes.rest(len(shown), len(rows), "programs, the first")]
    return sheet.finish(f"{run.experiment}: the cost of a call", handles, remarks)
