# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Copies between host and devices: all pairs as a matrix with the slow ones marked, and bandwidth over payload."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.busbw import payload
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import believed, plot, remarks, split

CAPTION = (
    "Left: GB/s from each source (row) to each target (column) at the largest payload; a thick frame marks a pair "
    "below three quarters of the median of its kind. Right: the pairs that were measured over the payload."
)
SLOW = 0.75  # of the median of the pairs of the same kind
MOST = 6  # lines in the panel by payload
Pair = tuple[str, str]


def draw(material: Material) -> Figure | None:
    """None when no copy was measured."""
    rows = [row for row in material.rows if row.algbw.known and row.point.payload_bytes]
    if not rows:
        return None
    matrix = largest(rows)
    lines, left_out = _lines(rows)
    series = split(lines, ("pair", "dtype"), size=payload)
    figure = canvas.blank()
    count = len(ends(matrix))
    panels = figure.subplots(1, 2, squeeze=False, width_ratios=[1.25, 1] if count > 6 else [1, 1])[0]
    slow = slow_pairs(matrix)
    _heat(panels[0], matrix, slow)
    for one in series:
        plot(panels[1], one, payload, lambda row: row.algbw, scale=1e-9)
    log_axis(panels[1], "x", base=2, show=quantities.payload, most=5)
    log_axis(panels[1], "y", show=plain, most=7)
    panels[1].set_xlabel("payload")
    panels[1].set_title("GB/s by payload", loc="left")
    above = canvas.legend(figure, [one.handle() for one in series], title=f"{material.experiment}: copies")
    notes = canvas.footnotes(figure, [*_slow_notes(slow), *left_out, *remarks(rows)])
    figure.set_figheight(0.4 + max(2.4, min(4.0, 1.0 + 0.3 * count)) + 0.16 * above + 0.12 * notes)
    return figure


def largest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """Of each pair the row with the largest payload, those that may be believed first."""
    best: dict[Pair, CaseRow] = {}
    for row in sorted(rows, key=lambda row: (believed(row), payload(row))):
        best[_pair(row)] = row
    return list(best.values())


def slow_pairs(rows: Sequence[CaseRow]) -> list[tuple[CaseRow, float]]:
    """(row, its share of the median) of the pairs below SLOW x the median of the pairs of the same kind."""
    found = []
    for op in dict.fromkeys(row.point.op for row in rows):
        mine = [row for row in rows if row.point.op == op and believed(row)]
        middle = float(np.median([row.algbw.value for row in mine])) if mine else math.nan
        found += [(row, row.algbw.value / middle) for row in mine if row.algbw.value < SLOW * middle]
    return found


def ends(rows: Sequence[CaseRow]) -> list[str]:
    """Everything that copies start from or end at: the host first, devices by number."""
    names = {name for row in rows for name in (row.point.source, row.point.target)}
    return sorted(names, key=lambda name: (name != "host", [int(n) for n in re.findall(r"\d+", name)], name))


def _heat(axes: Axes, rows: Sequence[CaseRow], slow: Sequence[tuple[CaseRow, float]]) -> None:
    names = ends(rows)
    grid = np.full((len(names), len(names)), math.nan)
    for row in rows:
        if believed(row):
            grid[names.index(row.point.source), names.index(row.point.target)] = row.algbw.value / 1e9
    top = float(np.nanmax(grid)) if np.isfinite(grid).any() else 1.0
    edges = np.arange(len(names) + 1) - 0.5  # cells as shapes: a reader that scales an image would blur them
    axes.pcolormesh(edges, edges, grid, cmap="Blues", vmin=0, vmax=top * 1.3, edgecolors="white", linewidth=1.2)
    axes.invert_yaxis()
    size = 7.0 if len(names) <= 6 else 5.5 if len(names) <= 10 else 4.2
    for row in rows:
        y, x = names.index(row.point.source), names.index(row.point.target)
        dark = grid[y, x] > 0.9 * top
        colour = "white" if dark else "black"
        mark = "°" if row.point.oversubscribed else ""
        text = f"{_digits(row.algbw.value / 1e9)}{mark}" if believed(row) else "x"
        axes.text(x, y, text, ha="center", va="center", fontsize=size, color=colour if believed(row) else canvas.PALE)
    for row, _ in slow:
        y, x = names.index(row.point.source), names.index(row.point.target)
        axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor="black", linewidth=1.6))
    _names(axes, names, size)


def _names(axes: Axes, names: Sequence[str], size: float) -> None:
    shown = [canvas.short(name, 16) for name in names]
    axes.set_xticks(range(len(names)), shown, fontsize=min(7.0, size + 1), rotation=90 if len(names) > 5 else 0)
    axes.set_yticks(range(len(names)), shown, fontsize=min(7.0, size + 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("from")
    axes.set_xlabel("to")
    axes.set_title("GB/s, largest payload", loc="left")


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _lines(rows: Sequence[CaseRow]) -> tuple[list[CaseRow], list[str]]:
    """The pairs drawn over the payload: those measured at the most payloads; of too many each kind's ends."""
    payloads: dict[Pair, set[float]] = {}
    for row in rows:
        payloads.setdefault(_pair(row), set()).add(payload(row))
    most = max(map(len, payloads.values()))
    keep = {pair for pair, sizes in payloads.items() if len(sizes) == most}
    if len(keep) <= MOST:
        return [row for row in rows if _pair(row) in keep], []
    ends: set[Pair] = set()
    ranked = sorted((row for row in largest(rows) if _pair(row) in keep), key=lambda row: row.algbw.value)
    for op in dict.fromkeys(row.point.op for row in ranked):
        mine = [_pair(row) for row in ranked if row.point.op == op]
        ends |= {mine[0], mine[-1]}
    return [row for row in rows if _pair(row) in ends], ["right: of each kind the slowest and the fastest pair"]


def _pair(row: CaseRow) -> Pair:
    return row.point.source, row.point.target


def _slow_notes(slow: Sequence[tuple[CaseRow, float]]) -> list[str]:
    if not slow:
        return []
    ranked = sorted(slow, key=lambda pair: pair[1])
    said = [f"{row.point.source} → {row.point.target} ({100 * share:.0f} %)" for row, share in ranked[:8]]
    more = f" and {len(ranked) - 8} more" if len(ranked) > 8 else ""
    return [f"framed: below {100 * SLOW:.0f} % of the median of its kind: {', '.join(said)}{more}"]
