# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Factorisations: time over n, and how the others compare with jit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from jaxbench.analysis import paired
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, plain, seconds_tick
from jaxbench.report.figures.canvas import DASHES, short
from jaxbench.report.figures.curves import elements
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import Series, believed, of_op, plot, remarks, split

CAPTION = (
    "Above: time per factorisation of an n x n matrix. Below: the time of the others over that of jit in the same "
    "place; above the dashed line jit is faster."
)
OWN = "jit"
ACROSS = 4  # operations side by side


def draw(material: Material) -> Figure | None:
    """Two panels for each factorisation, one above the other. None when nothing was measured."""
    rows = [row for row in material.rows if row.timing.step_s.known and row.point.elements]
    if not rows:
        return None
    series = split(rows, ("impl", "dtype", "platform", "cores"), size=elements)
    operations = list(dict.fromkeys(row.point.op for row in rows))
    bands = [operations[start : start + ACROSS] for start in range(0, len(operations), ACROSS)]
    columns = max(len(band) for band in bands)
    figure = canvas.blank()
    ratios = [1.5, 1] * len(bands)
    panels = figure.subplots(2 * len(bands), columns, squeeze=False, height_ratios=ratios, sharex=True, sharey="row")
    for number, band in enumerate(bands):
        pair = panels[2 * number : 2 * number + 2]
        _band(pair, band, series, rows)
        for axes in pair[:, len(band) :].flat:
            axes.remove()
    lines = canvas.legend(figure, [one.handle() for one in series], title=f"{material.experiment}: factorisations")
    notes = canvas.footnotes(figure, remarks(rows))
    figure.set_figheight(0.45 + 3.0 * len(bands) + 0.16 * lines + 0.12 * notes)
    return figure


def _band(pair: Any, operations: Sequence[str], series: Sequence[Series], rows: Sequence[CaseRow]) -> None:
    for column, op in enumerate(operations):
        above, below = pair[:, column]
        for one in of_op(series, op):
            plot(above, one, elements, lambda row: row.timing.step_s)
            if any(row.point.impl != OWN for row in one.rows):
                plot(below, one, elements, lambda row: ratio(row, rows))
        below.axhline(1, **DASHES, zorder=1)
        above.set_title(short(op, 20), loc="left")
        below.set_xlabel("n")
        below.tick_params(labelbottom=True)
    for line, show in ((pair[0], seconds_tick), (pair[1], plain)):
        limits = [axes.dataLim for axes in line[: len(operations)]]
        span = [y for lim in limits for y in (lim.y0, lim.y1)] + ([1.0] if line is pair[1] else [])
        for axes in line[: len(operations)]:
            log_axis(axes, "y", show=show, most=6, span=span)
            log_axis(axes, "x", base=2, show=plain, most=4, span=[elements(row) for row in rows])
    pair[0][0].set_ylabel("time per call")
    pair[1][0].set_ylabel("time / time of jit")


def ratio(row: CaseRow, rows: Sequence[CaseRow]) -> Estimate:
    """The row's time over that of jit for the same matrix in the same place; UNKNOWN where either is missing."""
    same = ("op", "dtype", "elements", "platform", "cores")
    own = [r for r in rows if r.point.impl == OWN and all(getattr(r.point, s) == getattr(row.point, s) for s in same)]
    base = next((r for r in own if believed(r)), None)
    if base is None or row.point.impl == OWN or not believed(row):
        return UNKNOWN
    return paired.ratio(row, base)
