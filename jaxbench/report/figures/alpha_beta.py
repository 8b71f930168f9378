# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""t(S) = alpha + S / beta: measured times with the fitted line, and the residuals below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbench.analysis import quantities
from jaxbench.analysis.alpha_beta import AlphaBetaFit, group_of
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, entitle, extent, log_axis, seconds_tick, short
from jaxbench.report.drawing.series import Series, payload

VIEWS = ("cases/transfer", "cases/collectives")
ORDER = 1
CAPTION = (
    "Time per call with the fitted line t(S) = alpha + S / beta. The latency alpha is the level at the left; the "
    "bandwidth beta sets the slope at the right. Below: measured time minus the line. A pattern there means that one "
    "line does not fit all sizes. If the line misses a time by 25 % or more it is dashed, and beta is not a bandwidth."
)
LIMIT, MAX_PAIRS = 7, 3  # most device groups, and most copy pairs, that stay readable in one panel


def draw(run: CaseFindings) -> Figure | None:
    """Draws two panels per operation. None when nothing was fitted."""
    fits = {group_of(fit.place): fit for fit in run.fits if not fit.why_not}
    rows, left_out = _chosen([row for row in run.rows if row.timing.step_s.known], fits)
    if not rows:
        return None
    every = series.split(rows, ("group", "pair", "dtype"), size=payload)
    sheet, pairs = series.bands(rows, across=3, heights=(1.95, 1.15))
    for op, (above, below) in pairs.items():
        for one in series.of_op(every, op):
            one.draw(above, payload, series.time, between="none")
            _fitted(above, below, one, fits)
        marks.unity(below, at=0, along="y")
    uppers, lowers = zip(*pairs.values(), strict=True)
    reach = max(map(abs, [*extent(lowers, "y"), 5.0]))
    for above, below in pairs.values():
        log_axis(above, "y", show=seconds_tick, max_ticks=6, span=extent(uppers, "y"))
        for axes in (above, below):
            log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=4, span=map(payload, rows))
        below.set_ylim(-1.15 * reach, 1.15 * reach)
        entitle(below, x="payload")
    for axes, label in zip(sheet.panels[:, 0], ["time per call", "measured - line, %"] * len(pairs), strict=False):
        entitle(axes, y=label)
    fake = all(row.point.platform == "cpu" for row in rows)
    handles, remarks = [one.handle() for one in every], [*notes.of_marks(rows, fake=fake), *left_out]
    if any(fits[group_of(row.point)].poor for row in rows if group_of(row.point) in fits):
        remarks.append("dashed: the line misses a time by 25 % or more, so its alpha and beta describe nothing")
    return sheet.finish(f"{run.experiment}: time = alpha + S / beta", handles, remarks)


def _chosen(rows: Sequence[CaseRow], fits: dict[Any, AlphaBetaFit]) -> tuple[list[CaseRow], list[str]]:
    """(rows to draw, notes on groups left out). Of too many groups: the slowest, the fastest and some between."""
    keep: set[tuple[Any, ...]] = set()
    left_out = []
    for op in dict.fromkeys(fit.place.op for fit in fits.values()):
        matching = (fit for fit in fits.values() if fit.place.op == op)
        ranked = sorted(matching, key=lambda fit: fit.beta_bytes_per_s.value)
        count = min(MAX_PAIRS if ranked[0].place.source else LIMIT, len(ranked))
        picks = np.unique(np.linspace(0, len(ranked) - 1, count).round().astype(int))
        keep |= {group_of(ranked[pick].place) for pick in picks}
        if len(picks) < len(ranked):
            shown = f"{len(picks)} of {len(ranked)} groups, from the slowest to the fastest"
            left_out.append(f"{short(op)}: {shown}; the page has all")
    return [row for row in rows if group_of(row.point) in keep], left_out


def _fitted(above: Axes, below: Axes, one: Series, fits: dict[Any, AlphaBetaFit]) -> None:
    """Draws the fitted line through its series, and the residuals in the panel below."""
    fit = next((fits[group_of(row.point)] for row in one.rows if group_of(row.point) in fits), None)
    if fit is None or not fit.residuals:
        return
    sizes, residuals = np.array(fit.residuals, dtype=np.float64).T
    fine = np.geomspace(sizes.min(), sizes.max(), 100)
    colour, marker = marks.series_style(one.place)
    between = marks.DASHED if fit.poor else "-"
    above.plot(fine, fit.seconds_at(fine), color=colour, linewidth=0.9, linestyle=between, zorder=2)
    below.plot(
        sizes, 100 * residuals, color=colour, marker=marker,
        markerfacecolor="white" if fit.place.oversubscribed else colour,
        linewidth=0.6, markersize=3.2, markeredgewidth=0.9, zorder=3,
    )  # fmt: skip
