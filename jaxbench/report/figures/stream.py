# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bytes per second over the working set, from the caches to memory (McCalpin's STREAM, by size)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis import ceilings, quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import DASHES, GREY
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import believed, naming, only, plot, remarks, split

CAPTION = (
    "Bytes that an operation must read and write, over its time per call. Each step down is a cache that the arrays "
    "have outgrown; the plateau at the right is memory, and only that may be called memory bandwidth. Dotted: the "
    "last-level cache, and four times its size, from where on a working set counts as in memory."
)


def draw(material: Material) -> Figure | None:
    """A panel for each implementation and place, a line for each operation. None when nothing moved bytes."""
    rows = [row for row in material.rows if row.point.bytes_moved and row.bytes_per_s.known]
    if not rows:
        return None
    series = split(rows, ("op", "dtype"), size=working_set)
    places = naming(rows, ("impl", "platform", "cores"))
    kinds = list(dict.fromkeys(places.values()))
    figure = canvas.blank()
    columns = min(2, len(kinds))
    panels = figure.subplots(-(-len(kinds) // columns), columns, squeeze=False, sharey=True)
    flat = list(panels.flat)
    cache = material.manifest.get("cache_bytes")
    inside = {kind: [row for row in rows if places[row.point.point] == kind] for kind in kinds}
    for axes, kind in zip(flat, kinds, strict=False):
        for one in only(series, {row.point.point for row in inside[kind]}):
            plot(axes, one, working_set, lambda row: row.bytes_per_s, scale=1e-9)
    everything = [y for axes in flat for y in (axes.dataLim.y0, axes.dataLim.y1)]
    for axes, kind in zip(flat, kinds, strict=False):
        log_axis(axes, "x", base=2, show=quantities.payload, most=6 if columns == 2 else 9)
        log_axis(axes, "y", show=plain, most=8, span=everything)
        axes.set_xlabel("working set")
        size = cache if inside[kind][0].point.platform == "cpu" else None
        axes.set_title(_title(kind if len(kinds) > 1 else "", from_memory(inside[kind], size)), loc="left")
        _levels(axes, inside[kind], size)
    for axes in flat[len(kinds) :]:
        axes.remove()
    for line in panels:
        line[0].set_ylabel("GB/s")
    handles = [*(one.handle() for one in series), *_plateau_handle(flat)]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: bandwidth by working set")
    notes = canvas.footnotes(figure, remarks(rows))
    figure.set_figheight(0.5 + 2.5 * len(panels) + 0.16 * lines + 0.12 * notes)
    return figure


def working_set(row: CaseRow) -> float:
    """Every array is touched once a call, so what is moved is what must be held."""
    return float(row.point.bytes_moved or 0)


def _levels(axes: Axes, rows: Sequence[CaseRow], cache: int | None) -> None:
    """Where the last-level cache ends, where memory begins, and how fast memory is."""
    low, high = axes.get_xlim()
    for size, text in ((cache or 0, "cache"), (ceilings.CACHES * (cache or 0), f"{ceilings.CACHES} x cache")):
        if low < size < high:
            axes.axvline(size, color=GREY, linewidth=0.7, linestyle=(0, (1, 1.2)), zorder=1)
            words = f"{text} {quantities.payload(size)}" if size == cache else text
            axes.annotate(
                words, (size, 0.02), xycoords=("data", "axes fraction"), xytext=(2, 0), textcoords="offset points",
                rotation=90, fontsize=6.3, color="#333333", ha="left", va="bottom",
            )  # fmt: skip
    best = from_memory(rows, cache)
    if best is not None:
        start = min(working_set(row) for row in rows if ceilings.level(working_set(row), cache) == "memory")
        value = best.bytes_per_s.value / 1e9
        axes.plot([start / math.sqrt(2), high], [value, value], **DASHES, label="_plateau", zorder=1)


def from_memory(rows: Sequence[CaseRow], cache: int | None) -> CaseRow | None:
    """The fastest row whose arrays must lie in memory."""
    rows = [row for row in rows if believed(row) and ceilings.level(working_set(row), cache) == "memory"]
    return max(rows, key=lambda row: row.bytes_per_s.value, default=None)


def _title(kind: str, best: CaseRow | None) -> str:
    said = "" if best is None else f"{quantities.per_second(best.bytes_per_s.value)} from memory"
    return ": ".join(filter(None, (kind, said)))


def _plateau_handle(panels: Sequence[Axes]) -> list[Line2D]:
    drawn = any(line.get_label() == "_plateau" for axes in panels for line in axes.lines)
    return [Line2D([], [], **DASHES, label="best from memory")] if drawn else []
