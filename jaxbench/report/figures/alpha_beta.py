# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""t(S) = alpha + S / beta: measured times with the fitted line, and below them what the line leaves over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from jaxbench.analysis import quantities
from jaxbench.analysis.alpha_beta import Fit
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, seconds_tick
from jaxbench.report.figures.busbw import payload
from jaxbench.report.figures.canvas import DASHES, short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import Series, of_op, plot, remarks, split

CAPTION = (
    "Time per call with the line t(S) = alpha + S / beta: alpha is the level at the left, beta the slope at the right. "
    "Below: how far the line is from the time. A pattern there means that one line does not describe all sizes."
)
ACROSS = 3
MOST, MOST_PAIRS = 7, 3  # groups of devices, pairs: what one panel can hold, and what of it differs
_KEY = ("op", "dtype", "devices", "mesh", "axis", "source", "target")


def draw(material: Material) -> Figure | None:
    """Two panels for each operation. None when nothing was fitted."""
    fits = {_key(fit): fit for fit in material.fits if not fit.why_not}
    chosen, left_out = _chosen([row for row in material.rows if row.timing.step_s.known], fits)
    if not chosen:
        return None
    series = split(chosen, ("group", "pair", "dtype"), size=payload)
    operations = list(dict.fromkeys(row.point.op for row in chosen))
    bands = [operations[start : start + ACROSS] for start in range(0, len(operations), ACROSS)]
    figure = canvas.blank()
    columns = max(len(band) for band in bands)
    heights = [1.9, 1] * len(bands)
    panels = figure.subplots(2 * len(bands), columns, squeeze=False, height_ratios=heights, sharex=True, sharey="row")
    for number, band in enumerate(bands):
        pair = panels[2 * number : 2 * number + 2]
        _band(pair, band, series, fits, chosen)
        for axes in pair[:, len(band) :].flat:
            axes.remove()
    title = f"{material.experiment}: time = alpha + S / beta"
    lines = canvas.legend(figure, [one.handle() for one in series], title=title)
    fake = all(row.point.platform == "cpu" for row in chosen)
    notes = canvas.footnotes(figure, [*remarks(chosen, fake=fake), *left_out])
    figure.set_figheight(0.45 + 3.0 * len(bands) + 0.16 * lines + 0.12 * notes)
    return figure


def _key(of: Any) -> tuple[Any, ...]:
    return tuple(getattr(of, name) for name in _KEY)


def _chosen(rows: Sequence[CaseRow], fits: dict[Any, Fit]) -> tuple[list[CaseRow], list[str]]:
    """The rows of the fitted groups; of an operation with too many groups the slowest, the fastest and some between."""
    keep: set[tuple[Any, ...]] = set()
    notes = []
    for op in dict.fromkeys(fit.op for fit in fits.values()):
        mine = sorted((fit for fit in fits.values() if fit.op == op), key=lambda fit: fit.beta_bytes_per_s.value)
        most = min(MOST_PAIRS if mine[0].source else MOST, len(mine))
        picks = np.unique(np.linspace(0, len(mine) - 1, most).round().astype(int))
        keep |= {_key(mine[pick]) for pick in picks}
        if len(picks) < len(mine):
            shown = f"{len(picks)} of {len(mine)} groups, from the slowest to the fastest"
            notes.append(f"{short(op)}: {shown}; the page has all")
    return [row for row in rows if _key(row.point) in keep], notes


def _band(
    pair: Any, operations: Sequence[str], series: Sequence[Series], fits: dict[Any, Fit], rows: Sequence[CaseRow]
) -> None:
    for column, op in enumerate(operations):
        above, below = pair[:, column]
        for one in of_op(series, op):
            plot(above, one, payload, lambda row: row.timing.step_s, line="none")
            _line(above, below, one, fits)
        below.axhline(0, **DASHES, zorder=1)
        above.set_title(short(op, 24), loc="left")
        below.set_xlabel("payload")
    sizes = [payload(row) for row in rows]
    tall = [y for axes in pair[0][: len(operations)] for y in (axes.dataLim.y0, axes.dataLim.y1)]
    reach = max([abs(y) for axes in pair[1][: len(operations)] for y in (axes.dataLim.y0, axes.dataLim.y1)] + [5.0])
    for above, below in zip(pair[0][: len(operations)], pair[1][: len(operations)], strict=True):
        log_axis(above, "y", show=seconds_tick, most=6, span=tall)
        for axes in (above, below):
            log_axis(axes, "x", base=2, show=quantities.payload, most=4, span=sizes)
        below.set_ylim(-1.15 * reach, 1.15 * reach)
        below.grid(True)
        below.tick_params(labelbottom=True)
    pair[0][0].set_ylabel("time per call")
    pair[1][0].set_ylabel("residual, %")


def _line(above: Any, below: Any, series: Series, fits: dict[Any, Fit]) -> None:
    """The fitted line through its series, and the residuals under it."""
    fit = next((fits[_key(row.point)] for row in series.rows if _key(row.point) in fits), None)
    if fit is None or not fit.residuals:
        return
    sizes = np.array([size for size, _ in fit.residuals], dtype=np.float64)
    fine = np.geomspace(sizes.min(), sizes.max(), 100)
    above.plot(fine, fit.seconds_at(fine), color=series.colour, linewidth=0.9, zorder=2)
    face = "white" if fit.oversubscribed else series.colour
    percent = [100 * residual for _, residual in fit.residuals]
    below.plot(
        sizes, percent, color=series.colour, marker=series.marker, markerfacecolor=face, linewidth=0.6, markersize=3.2,
        markeredgewidth=0.9, zorder=3,
    )  # fmt: skip
