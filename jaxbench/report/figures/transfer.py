# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Copies between host and devices: a matrix of all pairs with slow pairs marked, and bandwidth over payload."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, log_axis, plain, short
from jaxbench.report.drawing.series import believed, payload

VIEWS = ("cases/transfer",)
CAPTION = (
    "Left: GB/s from each source (row) to each target (column) at the largest payload; a thick frame marks a pair "
    "below three quarters of the median of its kind. Right: GB/s over payload, for the pairs with the most payloads."
)
SLOW = 0.75  # of the median of the pairs of the same kind
LIMIT = 6  # most lines in the panel over payload
Pair = tuple[str, str]


def draw(run: CaseFindings) -> Figure | None:
    """Draws two panels. None when no copy was measured."""
    rows = [row for row in run.rows if row.algbw.known and row.point.payload_bytes]
    if not rows:
        return None
    matrix = largest(rows)
    slow, count = slow_pairs(matrix), len(ends(matrix))
    sheet = Sheet(1, 2, widths=[1.25 if count > 6 else 1, 1], heights=max(2.4, min(4.0, 1.0 + 0.3 * count)))
    left, right = sheet.panels[0]
    _heat(left, matrix, slow)
    lines, left_out = _lines(rows)
    every = series.split(lines, ("pair", "dtype"), size=payload)
    for one in every:
        one.draw(right, payload, lambda row: row.algbw, scale=1e-9)
    log_axis(right, "x", base=2, show=quantities.payload, max_ticks=5)
    log_axis(right, "y", show=plain)
    entitle(right, "GB/s by payload", x="payload")
    remarks = [*_slow_notes(slow), *left_out, *notes.of_marks(rows)]
    return sheet.finish(f"{run.experiment}: copies", [one.handle() for one in every], remarks)


def largest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """The row with the largest payload of each pair, preferring rows that passed their checks."""
    best: dict[Pair, CaseRow] = {}
    for row in sorted(rows, key=lambda row: (believed(row), payload(row))):
        best[_pair(row)] = row
    return list(best.values())


def slow_pairs(rows: Sequence[CaseRow]) -> list[tuple[CaseRow, float]]:
    """(row, bandwidth over the median of its kind) of the pairs below SLOW x that median."""
    slow = []
    for op in series.operations(rows):
        alike = [row for row in rows if row.point.op == op and believed(row)]
        middle = float(np.median([row.algbw.value for row in alike])) if alike else math.nan
        slow += [(row, row.algbw.value / middle) for row in alike if row.algbw.value < SLOW * middle]
    return slow


def ends(rows: Sequence[CaseRow]) -> list[str]:
    """All sources and targets of copies: the host first, then devices by number."""
    names = {name for row in rows for name in _pair(row)}
    return sorted(names, key=lambda name: (name != "host", [int(n) for n in re.findall(r"\d+", name)], name))


def _heat(axes: Axes, rows: Sequence[CaseRow], slow: Sequence[tuple[CaseRow, float]]) -> None:
    names = ends(rows)
    where = {row.point.point: (names.index(row.point.target), names.index(row.point.source)) for row in rows}
    grid = np.full((len(names), len(names)), math.nan)
    for row in filter(believed, rows):
        x, y = where[row.point.point]
        grid[y, x] = row.algbw.value / 1e9
    top = float(np.nanmax(grid)) if np.isfinite(grid).any() else 1.0
    edges = np.arange(len(names) + 1) - 0.5  # cells are shapes, not an image, which PDF readers blur when they scale it
    axes.grid(False)
    axes.pcolormesh(edges, edges, grid, cmap="Blues", vmin=0, vmax=top * 1.3, edgecolors="white", linewidth=1.2)
    axes.invert_yaxis()
    size = 7.0 if len(names) <= 6 else 5.5 if len(names) <= 10 else 4.2
    for row in rows:
        x, y = where[row.point.point]
        rate, mark = row.algbw.value / 1e9, "°" if row.point.oversubscribed else ""
        text = (f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}") + mark if believed(row) else "x"
        colour = marks.PALE if not believed(row) else "white" if grid[y, x] > 0.9 * top else "black"
        axes.text(x, y, text, ha="center", va="center", fontsize=size, color=colour)
    for row, _ in slow:
        x, y = where[row.point.point]
        axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor="black", linewidth=1.6))
    shown, small = [short(name, 16) for name in names], min(7.0, size + 1)
    axes.set_xticks(range(len(names)), shown, fontsize=small, rotation=90 if len(names) > 5 else 0)
    axes.set_yticks(range(len(names)), shown, fontsize=small)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    entitle(axes, "GB/s, largest payload", x="to", y="from")


def _lines(rows: Sequence[CaseRow]) -> tuple[list[CaseRow], list[str]]:
    """(rows to draw, notes): pairs with the most payloads; if too many, each kind's slowest and fastest pair."""
    payloads: dict[Pair, set[float]] = {}
    for row in rows:
        payloads.setdefault(_pair(row), set()).add(payload(row))
    longest = max(map(len, payloads.values()))
    keep = {pair for pair, sizes in payloads.items() if len(sizes) == longest}
    left_out = []
    if len(keep) > LIMIT:
        ranked = sorted((row for row in largest(rows) if _pair(row) in keep), key=lambda row: row.algbw.value)
        kinds = [[_pair(row) for row in ranked if row.point.op == op] for op in series.operations(ranked)]
        keep = {pair for pairs in kinds for pair in (pairs[0], pairs[-1])}
        left_out = ["right: the slowest and the fastest pair of each kind"]
    return [row for row in rows if _pair(row) in keep], left_out


def _pair(row: CaseRow) -> Pair:
    return row.point.source, row.point.target


def _slow_notes(slow: Sequence[tuple[CaseRow, float]]) -> list[str]:
    if not slow:
        return []
    ranked = sorted(slow, key=lambda pair: pair[1])
    pairs = [
        f"{short(row.point.source)} → {short(row.point.target)} ({100 * share:.0f} %)" for row, share in ranked[:8]
    ]
    more = f" and {len(ranked) - 8} more" if len(ranked) > 8 else ""
    return [f"framed: below {100 * SLOW:.0f} % of the median of its kind: {', '.join(pairs)}{more}"]
