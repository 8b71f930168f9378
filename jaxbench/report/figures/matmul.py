# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""FLOP/s of matrix products: over the size where they are square, as bars where they are not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.figures import bars, canvas
from jaxbench.report.figures.axes import log_axis, plain, si
from jaxbench.report.figures.bars import Bar
from jaxbench.report.figures.canvas import DASHES, short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import Series, believed, naming, plot, remarks, split

CAPTION = (
    "Analytic FLOP (2 per multiply-add) over the time per call. Dashed: the peak that the percentages are of, "
    "catalogued or measured on this machine."
)
MOST = 14  # bars that a figure holds; the table has all of them
_PARTS = ("op", "dtype", "impl", "platform", "cores")


def draw(material: Material) -> Figure | None:
    """None when no product was measured."""
    rows = [row for row in material.rows if row.flop_per_s.known and row.point.elements]
    square = [row for row in rows if side(row)]
    other = [row for row in rows if not side(row)]
    if not rows:
        return None
    figure = canvas.blank()
    notes = remarks(rows)
    series: list[Series] = split(square, _PARTS, size=side)
    wide = [3.2, 3.8] if square and other else [1]
    panels = list(figure.subplots(1, len(wide), squeeze=False, width_ratios=wide)[0])
    handles = [one.handle() for one in series]
    if square:
        peaks, said = _squares(panels[0], series)
        handles, notes = handles + peaks, notes + said
    if other:
        notes += _bars(panels[-1], other)
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: matrix products")
    below = canvas.footnotes(figure, notes)
    tall = max(2.5, 0.5 + 0.19 * min(MOST, len(other)))
    figure.set_figheight(0.4 + tall + 0.16 * lines + 0.12 * below)
    return figure


def side(row: CaseRow) -> int:
    """n of an n x n x n product; 0 of any other shape."""
    found = re.fullmatch(r"(\d+)x\1x\1", row.point.shape)
    return int(found[1]) if found else 0


def _squares(axes: Axes, series: Sequence[Series]) -> tuple[list[Line2D], list[str]]:
    """Returns what it adds to the legend and to the footnotes."""
    for one in series:
        plot(axes, one, side, lambda row: row.flop_per_s)
    every = [row for one in series for row in one.rows]
    names = naming(every, ("dtype", "platform", "cores"))
    peaks = {peak: names[row.point.point] for row in every if (peak := peak_of(row))}
    log_axis(axes, "x", base=2, show=plain, most=7)
    log_axis(axes, "y", show=si, most=7, span=list(peaks))
    axes.set_title("n x n x n: FLOP/s", loc="left")
    axes.set_xlabel("n")
    for peak in peaks:
        axes.axhline(peak, **DASHES, zorder=1)
    said = ", ".join(f"{name} {quantities.flops(peak)}" for peak, name in sorted(peaks.items(), reverse=True))
    return ([Line2D([], [], **DASHES, label="peak")], [f"dashed: the peak of {said}"]) if peaks else ([], [])


def peak_of(row: CaseRow) -> float:
    """The ceiling that the row's percentage is of, to three digits, so that equal ones are equal; 0 without one."""
    share = row.peak_share
    return float(f"{row.flop_per_s.value / share.value:.3g}") if share.known and share.value > 0 else 0.0


def _bars(axes: Axes, rows: Sequence[CaseRow]) -> list[str]:
    """The fastest shapes of each operation. Returns a note when there are more."""
    kinds = naming(rows, _PARTS)
    looks = list(dict.fromkeys(kinds[row.point.point] for row in rows))
    shown = fastest(rows)
    entries = []
    for place, row in enumerate(shown):
        look = looks.index(kinds[row.point.point])
        entries.append((float(place), Bar(row=row, value=row.flop_per_s, text=si(row.flop_per_s.value), look=look)))
    bars.lying(axes, entries)
    alone = len(looks) == 1
    names = [f"{row.point.shape}{'' if alone else ' ' + kinds[row.point.point]}" for row in shown]
    bars.names(axes, range(len(shown)), [short(name, 36) for name in names])
    top = max((row.flop_per_s.value for row in shown if believed(row)), default=1.0)
    axes.set_xlim(0, top * 1.2)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: si(value) if value else "0")
    axes.set_title("other shapes: FLOP/s", loc="left")
    if len(shown) == len(rows):
        return []
    return [f"other shapes: {len(shown)} of {len(rows)}, the fastest of each kind; the table has all"]


def fastest(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """At most MOST rows, as evenly from every kind (batched or not, dtype, impl, place) as there are, fastest first."""
    groups: dict[tuple[object, ...], list[CaseRow]] = {}
    for row in sorted(rows, key=lambda row: (row.point.shape.count("x"), -row.flop_per_s.value)):
        p = row.point
        groups.setdefault((p.shape.count("x"), p.op, p.dtype, p.impl, p.platform, p.cores), []).append(row)
    kept = dict.fromkeys(groups, 0)
    while sum(kept.values()) < min(MOST, len(rows)):
        kind = min((kind for kind in groups if kept[kind] < len(groups[kind])), key=lambda kind: kept[kind])
        kept[kind] += 1
    return [row for kind, mine in groups.items() for row in mine[: kept[kind]]]
