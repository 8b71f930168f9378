# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bandwidth over the working set, from the caches to memory (McCalpin's STREAM at many sizes)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.analysis.intervals import UNKNOWN
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, extent, log_axis, plain
from jaxbench.report.drawing.series import believed

VIEWS = ("cases/stream",)
CAPTION = (
    "Bytes that an operation must read and write, divided by its time per call. At each step down, the arrays no "
    "longer fit in a cache; only the plateau at the right is memory bandwidth. Small grey points are launch-bound: "
    "starting the call takes a quarter or more of the time, so they do not show a bandwidth. Dotted: the size of the "
    "last-level cache, and four times that size, beyond which a working set counts as in memory."
)


def draw(run: CaseFindings) -> Figure | None:
    """Draws a panel per implementation and device, a line per operation. None when no rate was measured."""
    rows = [row for row in run.rows if row.point.bytes_moved and row.bytes_per_s.known]
    if not rows:
        return None
    every = series.split(rows, ("op", "dtype"), size=working_set)
    places = series.naming(rows, ("impl", "platform", "cores"))
    kinds = list(dict.fromkeys(places.values()))
    columns = min(2, len(kinds))
    sheet = Sheet(-(-len(kinds) // columns), columns, heights=2.5, sharey=True)
    panels: list[Axes] = list(sheet.panels.flat)
    inside = {kind: [row for row in rows if places[row.point.point] == kind] for kind in kinds}
    for axes, kind in zip(panels, kinds, strict=False):
        for one in series.only(every, {row.point.point for row in inside[kind]}):
            one.draw(axes, working_set, lambda row: UNKNOWN if row.launch_bound else row.bytes_per_s, scale=1e-9)
        bound = [row for row in inside[kind] if row.launch_bound]
        rates = [row.bytes_per_s.value / 1e9 for row in bound]
        axes.plot(list(map(working_set, bound)), rates, color=marks.PALE, marker=".", linestyle="none", zorder=3)
    tall, plateau = extent(panels, "y"), False
    for axes, kind in zip(panels, kinds, strict=False):
        log_axis(axes, "x", base=2, show=quantities.payload, max_ticks=6 if columns == 2 else 9)
        log_axis(axes, "y", show=plain, max_ticks=8, span=tall)
        size = run.manifest.get("cache_bytes") if inside[kind][0].point.platform == "cpu" else None
        best = from_memory(inside[kind], size)
        rate = "" if best is None else f"{quantities.per_second(best.bytes_per_s.value)} from memory"
        entitle(axes, ": ".join(filter(None, (kind if len(kinds) > 1 else "", rate))), x="working set")
        _caches(axes, size)
        if best is not None:
            start = min(working_set(row) for row in inside[kind] if _in_memory(row, size)) / math.sqrt(2)
            marks.guide(axes, [start, axes.get_xlim()[1]], [best.bytes_per_s.value / 1e9] * 2)
            plateau = True
    for axes in panels[len(kinds) :]:
        axes.remove()
    for axes in sheet.panels[:, 0]:
        entitle(axes, y="GB/s")
    handles = [*(one.handle() for one in every), *([marks.guide_handle("best from memory")] if plateau else [])]
    launch = ["small grey points: launch-bound, no bandwidth"] if any(row.launch_bound for row in rows) else []
    return sheet.finish(f"{run.experiment}: bandwidth by working set", handles, [*notes.of_marks(rows), *launch])


def working_set(row: CaseRow) -> float:
    """Bytes of the working set. A call touches every array once, so this equals the bytes moved."""
    return float(row.point.bytes_moved or 0)


def _in_memory(row: CaseRow, cache: int | None) -> bool:
    return ceilings.level(working_set(row), cache) == "memory"


def from_memory(rows: Sequence[CaseRow], cache: int | None) -> CaseRow | None:
    """The fastest row with arrays too large for the cache; None if there is no such row."""
    rows = [row for row in rows if believed(row) and _in_memory(row, cache)]
    return max(rows, key=lambda row: row.bytes_per_s.value, default=None)


def _caches(axes: Axes, cache: int | None) -> None:
    """Draws lines at the size of the last-level cache, and at the size from which a working set counts as memory."""
    low, high = axes.get_xlim()
    for times, text in (
        (1, f"cache {quantities.payload(cache or 0)}"),
        (ceilings.CACHES, f"{ceilings.CACHES} x cache"),
    ):
        size = times * (cache or 0)
        if low < size < high:
            marks.boundary(axes, size, text, y=0.02, rotation=90, color="#333333", va="bottom")
