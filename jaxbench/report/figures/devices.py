# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CPU against accelerator: time per call of the same kernel on both, as pairs of bars."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis import paired_ratio
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import seconds
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.kit import Figure, Mark, Sheet, short, si, time_axis
from jaxbench.report.drawing.series import believed

VIEWS = tuple(f"cases/{view}" for view in ("curves", "matmul", "stream", "dispatch", "fusion", "linalg", "versus"))
ORDER = 1
CAPTION = (
    "The same jitted kernel on the CPU and on the accelerator, at the largest size measured on both. The factor is "
    "the accelerator's speed-up. The axis is logarithmic: compare the ends of the bars, not their lengths."
)
LIMIT = 16
Pair = tuple[CaseRow, CaseRow]


def draw(run: CaseFindings) -> Figure | None:
    """Draws one panel. None unless a kernel was measured on both."""
    pairs = both(run.rows)
    if not pairs:
        return None
    shown = pairs[:LIMIT]
    made = []
    for place, (cpu, other) in enumerate(shown):
        ratio = paired_ratio.ratio(cpu, other)
        gain = f"   {ratio.value:.3g} x" if ratio.known and believed(cpu) and believed(other) else ""
        for style, row, text in ((0, cpu, ""), (1, other, gain)):
            time = row.timing.step_s
            text = f"{seconds(time.value)}{text}"
            made.append(Mark(at=place + 0.4 * style - 0.2, value=time, state=marks.state(row), style=style, text=text))
    sheet = Sheet()
    start = time_axis(sheet.only(), made)
    marks.hbars(sheet.only(), made, thick=0.36, start=start)
    sheet.names(sheet.only(), [_name(cpu, pairs) for cpu, _ in shown], beside=2)
    kinds = list(dict.fromkeys(other.point.platform for _, other in shown))
    handles = [marks.bar_handle(0, "cpu"), marks.bar_handle(1, " or ".join(kinds))]
    more = notes.rest(len(shown), len(pairs), "kernels")
    remarks = [*notes.of_marks([row for pair in shown for row in pair]), *more]
    return sheet.finish(f"{run.experiment}: CPU against accelerator", handles, remarks)


def both(rows: Sequence[CaseRow]) -> list[Pair]:
    """(row on all CPU cores, row on the accelerator) of each kernel at its largest common size, in row order."""
    timed = [row for row in rows if row.point.family == "kernel" and row.point.elements and row.timing.step_s.known]
    on_cpu: dict[tuple[object, ...], CaseRow] = {}
    for row in sorted((r for r in timed if r.point.platform == "cpu"), key=lambda r: r.point.cores or 0):
        on_cpu[_key(row)] = row
    pairs: dict[tuple[object, ...], Pair] = {}
    for row in timed:
        cpu = on_cpu.get(_key(row))
        if row.point.platform == "cpu" or cpu is None:
            continue
        kernel = (row.point.op, row.point.dtype, row.point.impl, row.point.platform)
        if kernel not in pairs or (row.point.elements or 0) > (pairs[kernel][1].point.elements or 0):
            pairs[kernel] = (cpu, row)
    return list(pairs.values())


def _key(row: CaseRow) -> tuple[object, ...]:
    point = row.point
    return (point.op, point.dtype, point.impl, point.shape, point.elements)


def _name(row: CaseRow, pairs: Sequence[Pair]) -> str:
    point = row.point
    impls = {cpu.point.impl for cpu, _ in pairs}
    parts = [point.op, point.dtype, point.shape or si(point.elements or 0), *([point.impl] if len(impls) > 1 else [])]
    return short(" ".join(parts), 36)
