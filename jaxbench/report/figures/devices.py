# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CPU against accelerator: time per call of the same kernel on both, a pair of bars each."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from jaxbench.analysis import paired
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.headline import seconds
from jaxbench.report.figures import bars, canvas
from jaxbench.report.figures.axes import si
from jaxbench.report.figures.bars import Bar
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import believed, remarks

CAPTION = (
    "The same jitted kernel on the CPU and on the accelerator, at the largest size that both have. The number says how "
    "many times as fast the accelerator is. Where the axis is logarithmic, lengths are to be read at the ticks."
)
MOST = 16
Pair = tuple[CaseRow, CaseRow]


def draw(material: Material) -> Figure | None:
    """None unless some kernel was measured on both."""
    pairs = both(material.rows)
    if not pairs:
        return None
    shown = pairs[:MOST]
    figure = canvas.blank()
    axes = figure.subplots()
    start = bars.time_axis(axes, [row.timing.step_s for pair in shown for row in pair])
    entries = []
    for place, (cpu, other) in enumerate(shown):
        ratio = paired.ratio(cpu, other)
        gain = f"   {ratio.value:.3g} x" if believed(cpu) and believed(other) else ""
        for offset, look, row, text in ((-0.2, 0, cpu, ""), (0.2, 1, other, gain)):
            words = f"{seconds(row.timing.step_s.value)}{text}"
            entries.append((place + offset, Bar(row=row, value=row.timing.step_s, text=words, look=look)))
    bars.lying(axes, entries, height=0.36, start=start)
    bars.names(axes, range(len(shown)), [_name(cpu, pairs) for cpu, _ in shown])
    kinds = list(dict.fromkeys(other.point.platform for _, other in shown))
    handles = [bars.handle(0, "cpu"), bars.handle(1, " or ".join(kinds))]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: CPU against accelerator")
    more = [f"{MOST} of {len(pairs)} kernels; the table has all"] if len(pairs) > MOST else []
    notes = canvas.footnotes(figure, [*remarks([row for pair in shown for row in pair]), *more])
    figure.set_figheight(0.75 + 0.38 * len(shown) + 0.16 * lines + 0.12 * notes)
    return figure


def both(rows: Sequence[CaseRow]) -> list[Pair]:
    """(on all cores of the CPU, on the accelerator), of each kernel at the largest size, in the order of the rows."""
    timed = [row for row in rows if row.point.family == "kernel" and row.timing.step_s.known]
    on_cpu: dict[tuple[object, ...], CaseRow] = {}
    for row in sorted((r for r in timed if r.point.platform == "cpu"), key=lambda r: r.point.cores or 0):
        on_cpu[_key(row)] = row
    found: dict[tuple[object, ...], Pair] = {}
    for row in timed:
        cpu = on_cpu.get(_key(row))
        if row.point.platform == "cpu" or cpu is None:
            continue
        kernel = (row.point.op, row.point.dtype, row.point.impl, row.point.platform)
        if kernel not in found or (row.point.elements or 0) > (found[kernel][1].point.elements or 0):
            found[kernel] = (cpu, row)
    return list(found.values())


def _key(row: CaseRow) -> tuple[object, ...]:
    point = row.point
    return (point.op, point.dtype, point.impl, point.shape, point.elements)


def _name(row: CaseRow, pairs: Sequence[Pair]) -> str:
    point = row.point
    size = point.shape or si(point.elements or 0)
    impls = {cpu.point.impl for cpu, _ in pairs}
    parts = [point.op, point.dtype, size, *([point.impl] if len(impls) > 1 else [])]
    return short(" ".join(parts), 36)
