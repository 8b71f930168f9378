# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""FLOP/s of matrix products: square products over size, other shapes as bars."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import entitle, log_axis, plain, si, zero_axis
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Mark, Sheet, short
from jaxbench.report.drawing.series import Series, naming

VIEWS = ("cases/matmul",)
CAPTION = (
    "Analytic FLOP (2 per multiply-add) divided by time per call. Dashed: the peak that percentages refer to, from "
    "the hardware catalogue or measured on this machine."
)
LIMIT = 14  # most bars that fit; the table has all shapes
_PARTS = ("op", "dtype", "impl", "platform", "cores")


def draw(run: CaseFindings) -> Figure | None:
    """Draws up to two panels. None when no product was measured."""
    rows = [row for row in run.rows if row.flop_per_s.known and row.point.elements]
    square, other = [row for row in rows if side(row)], [row for row in rows if not side(row)]
    if not rows:
        return None
    widths = [3.2, 3.8] if square and other else [1]
    sheet = Sheet(1, len(widths), widths=widths, heights=2.5 if square else 1)
    every: list[Series] = series.split(square, _PARTS, size=side)
    handles, remarks = [one.handle() for one in every], notes.of_marks(rows)
    if square:
        peaks, more = _squares(sheet.panels[0, 0], every)
        handles, remarks = handles + peaks, remarks + more
    if other:
        remarks += _shapes(sheet, other)
    return sheet.finish(f"{run.experiment}: matrix products", handles, remarks)


def side(row: CaseRow) -> int:
    """n of an n x n x n product; 0 for any other shape."""
    match = re.fullmatch(r"(\d+)x\1x\1", row.point.shape)
    return int(match[1]) if match else 0


def _squares(axes: Axes, every: Sequence[Series]) -> tuple[list[Line2D], list[str]]:
    """Draws the square products. Returns legend entries and footnotes."""
    for one in every:
        one.draw(axes, side, lambda row: row.flop_per_s)
    rows = [row for one in every for row in one.rows]
    names = naming(rows, ("dtype", "platform", "cores"))
    peaks = {peak: names[row.point.point] for row in rows if (peak := peak_of(row))}
    log_axis(axes, "x", base=2, show=plain)
    log_axis(axes, "y", show=si, span=peaks)
    entitle(axes, "n x n x n: FLOP/s", x="n")
    for peak in peaks:
        marks.unity(axes, at=peak, along="y")
    text = ", ".join(f"{name} {quantities.flops(peak)}" for peak, name in sorted(peaks.items(), reverse=True))
    return ([marks.guide_handle("peak")], [f"dashed: the peak of {text}"]) if peaks else ([], [])


def peak_of(row: CaseRow) -> float:
    """The peak FLOP/s that the row's percentage refers to, rounded so that equal peaks compare equal; 0 if none."""
    share = row.peak_share
    return float(f"{row.flop_per_s.value / share.value:.3g}") if share.known and share.value > 0 else 0.0


def _shapes(sheet: Sheet, rows: Sequence[CaseRow]) -> list[str]:
    """Draws the fastest shapes of each operation. Returns a note if there are more."""
    axes, kinds, shown = sheet.panels[0, -1], naming(rows, _PARTS), fastest(rows)
    styles = list(dict.fromkeys(kinds[row.point.point] for row in rows))
    made = []
    for place, row in enumerate(shown):
        kind, rate = styles.index(kinds[row.point.point]), row.flop_per_s
        made.append(Mark(at=place, value=rate, state=marks.state(row), style=kind, text=si(rate.value)))
    marks.hbars(axes, made)
    named = [f"{row.point.shape}{'' if len(styles) == 1 else ' ' + kinds[row.point.point]}" for row in shown]
    sheet.names(axes, [short(name, 36) for name in named])
    zero_axis(axes, "x", max((mark.value.value for mark in made if mark.believed), default=1.0), show=si, room=1.2)
    entitle(axes, "other shapes: FLOP/s")
    return notes.rest(len(shown), len(rows), "other shapes, the fastest of each kind")


def fastest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """At most LIMIT rows, spread evenly over kinds (batched or not, dtype, impl, device, cores), fastest first."""
    groups: dict[tuple[object, ...], list[CaseRow]] = {}
    for row in sorted(rows, key=lambda row: (row.point.shape.count("x"), -row.flop_per_s.value)):
        p = row.point
        groups.setdefault((p.shape.count("x"), p.op, p.dtype, p.impl, p.platform, p.cores), []).append(row)
    counts = dict.fromkeys(groups, 0)
    while sum(counts.values()) < min(LIMIT, len(rows)):
        kind = min((kind for kind in groups if counts[kind] < len(groups[kind])), key=lambda kind: counts[kind])
        counts[kind] += 1
    return [row for kind, group in groups.items() for row in group[: counts[kind]]]
