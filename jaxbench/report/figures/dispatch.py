# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What it costs to start a program: time per call, a bar each."""

from __future__ import annotations

from matplotlib.figure import Figure

from jaxbench.analysis.headline import seconds
from jaxbench.report.figures import bars, canvas
from jaxbench.report.figures.bars import Bar
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import naming, remarks

CAPTION = (
    "Time per call of programs that do next to nothing: what every call costs before its work begins. Where the "
    "axis is logarithmic, lengths are to be read at the ticks."
)
MOST = 24
_PARTS = ("op", "impl", "dtype", "platform", "cores")


def draw(material: Material) -> Figure | None:
    """None when nothing was measured."""
    rows = [row for row in material.rows if row.timing.step_s.known]
    if not rows:
        return None
    shown = rows[:MOST]
    names = naming(rows, _PARTS)
    if len(set(names.values())) < len(rows):
        names = naming(rows, ("op", "shape", *_PARTS[1:]))
    operations = list(dict.fromkeys(row.point.op for row in rows))
    figure = canvas.blank()
    axes = figure.subplots()
    start = bars.time_axis(axes, [row.timing.step_s for row in shown])
    entries = []
    for place, row in enumerate(shown):
        time = row.timing.step_s
        look = operations.index(row.point.op)
        entries.append((float(place), Bar(row=row, value=time, text=seconds(time.value), look=look)))
    bars.lying(axes, entries, start=start)
    bars.names(axes, range(len(shown)), [short(names[row.point.point], 36) for row in shown])
    handles = [bars.handle(place, short(op)) for place, op in enumerate(operations)] if len(operations) > 1 else []
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: the cost of a call")
    more = [f"the first {MOST} of {len(rows)}; the table has all"] if len(rows) > MOST else []
    notes = canvas.footnotes(figure, [*remarks(rows), *more])
    figure.set_figheight(0.75 + 0.22 * len(shown) + 0.16 * lines + 0.12 * notes)
    return figure
