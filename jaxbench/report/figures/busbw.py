# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth over payload, a panel for each collective; what others published for all-reduce behind it, dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis import quantities
from jaxbench.analysis.case_rows import CaseRow
from jaxbench.catalog import published
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import MARKERS, PALE, short
from jaxbench.report.figures.material import Material
from jaxbench.report.figures.series import of_op, plot, remarks, split

CAPTION = (
    "Bus bandwidth as nccl-tests defines it: payload over time, times what an ideal algorithm sends per byte. "
    "Published series are drawn as they were published, never rescaled, and are not of this machine."
)
BESIDE_PUBLISHED = "all_reduce"
ACROSS = 3
_NAMES = {"a100x8": "8 A100", "h200x8": "8 H200", "b200x8": "8 B200", "b200x8x4nodes": "4 nodes of 8 B200"}


def draw(material: Material) -> Figure | None:
    """None when no group of more than one device was measured: one device has no bus."""
    rows = [row for row in material.rows if row.busbw.known and row.point.payload_bytes]
    if not rows:
        return None
    series = split(rows, ("group", "dtype", "platform"), size=payload)
    operations = list(dict.fromkeys(row.point.op for row in rows))
    wide = [op for op in operations if op == BESIDE_PUBLISHED]
    rest = [op for op in operations if op not in wide]
    figure = canvas.blank()
    panels = _panels(figure, wide, rest)
    for op, axes in panels.items():
        mine = of_op(series, op)
        for place, one in enumerate(mine):
            # Series of equal values stay visible when each is drawn a little beside its payload.
            dodge = 2 ** ((place - (len(mine) - 1) / 2) * min(0.12, 0.6 / len(mine)))
            plot(axes, one, lambda row, dodge=dodge: dodge * payload(row), lambda row: row.busbw, scale=1e-9)  # type: ignore[misc]
    notes = remarks(rows, fake=all(row.point.platform == "cpu" for row in rows))
    for op in wide:
        notes.append(_behind(panels[op]))
    _small_axes({op: panels[op] for op in rest})
    lines = canvas.legend(figure, [one.handle() for one in series], title=f"{material.experiment}: bus bandwidth")
    below = canvas.footnotes(figure, notes)
    bands = -(-len(rest) // ACROSS)
    figure.set_figheight(0.4 + 2.7 * len(wide) + 1.75 * bands + 0.16 * lines + 0.12 * below)
    return figure


def payload(row: CaseRow) -> float:
    return float(row.point.payload_bytes or 0)


def _panels(figure: Figure, wide: Sequence[str], rest: Sequence[str]) -> dict[str, Axes]:
    """One wide panel for all-reduce, the others small below it."""
    bands = [rest[start : start + ACROSS] for start in range(0, len(rest), ACROSS)]
    columns = max((len(band) for band in bands), default=1)
    grid = figure.add_gridspec(len(wide) + len(bands), columns, height_ratios=[2.7] * len(wide) + [1.75] * len(bands))
    panels = {op: figure.add_subplot(grid[place, :]) for place, op in enumerate(wide)}
    first: Any = None
    for number, band in enumerate(bands):
        for column, op in enumerate(band):
            axes = figure.add_subplot(grid[len(wide) + number, column], sharex=first, sharey=first)
            first = first or axes
            panels[op] = axes
            if column:
                axes.tick_params(labelleft=False)
            else:
                axes.set_ylabel("GB/s")
    return panels


def _behind(axes: Axes) -> str:
    """Draws the published series behind all-reduce. Returns their citation."""
    table = published.allreduce()
    lines = []
    for place, name in enumerate(table.columns):
        lines += axes.plot(
            table.index, table[name] / 1e9, color=PALE, marker=MARKERS[place % len(MARKERS)], markersize=3,
            markerfacecolor="white", markeredgewidth=0.6, linewidth=0.7, linestyle="--", zorder=1.5,
            label=_NAMES.get(str(name), str(name)),
        )  # fmt: skip
    log_axis(axes, "x", base=2, show=quantities.payload, most=11)
    log_axis(axes, "y", show=plain, most=9)
    canvas.end_labels(axes, lines, reach=1.5, size=6.5)
    axes.set_xlabel("payload")
    axes.set_ylabel("GB/s")
    axes.set_title(f"{BESIDE_PUBLISHED}: bus bandwidth", loc="left")
    source = published.read("allreduce_busbw").project
    said = f"dashed grey: {BESIDE_PUBLISHED} as published by others, not measured here"
    return f"{said}. {source}; one node of 8, and 4 nodes"


def _small_axes(panels: dict[str, Axes]) -> None:
    limits = [axes.dataLim for axes in panels.values()]
    wide = [x for lim in limits for x in (lim.x0, lim.x1)]
    tall = [y for lim in limits for y in (lim.y0, lim.y1)]
    for op, axes in panels.items():
        log_axis(axes, "x", base=2, show=quantities.payload, most=4, span=wide)
        log_axis(axes, "y", show=plain, most=6, span=tall)
        axes.set_title(short(op, 24), loc="left")
        axes.set_xlabel("payload")
