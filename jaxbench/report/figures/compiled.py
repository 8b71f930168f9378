# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Memory per device against what a device has, and bytes sent per step, of points that were compiled and not run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jaxbench.analysis.compiled import CompiledRow, gigabytes
from jaxbench.records.schema import COLLECTIVES, Collective
from jaxbench.report.figures import bars, canvas
from jaxbench.report.figures.canvas import short

CAPTION = (
    "Compiled for hardware that is not here, nothing was run. Left: what a step holds on one device, and, dashed, what "
    "a device has. Right: what one device sends in a step, by kind of collective; a cross marks a point whose "
    "communication differs from its closed form."
)
MOST = 48  # points that a figure has room for


def draw(rows: Sequence[CompiledRow], *, title: str) -> Figure | None:
    """Two panels with a bar a point. None when nothing compiled."""
    shown = [row for row in rows if row.record is not None][:MOST]
    if not shown:
        return None
    figure = canvas.blank()
    memory, wire = figure.subplots(1, 2, sharey=True)
    kinds = [kind for kind in COLLECTIVES if any(each.kind == kind for row in shown for each in _collectives(row))]
    _memory(memory, shown)
    _wire(wire, shown, kinds)
    memory.set_yticks(range(len(shown)), [short(row.name, 44) for row in shown])
    memory.invert_yaxis()
    handles: list[Patch | Line2D] = [bars.handle(look, kind) for look, kind in enumerate(kinds, start=1)]
    lines = canvas.legend(figure, [bars.handle(0, "memory per device"), *handles], title=title)
    figure.set_figheight(1.3 + 0.17 * len(shown) + 0.16 * lines)
    return figure


def _collectives(row: CompiledRow) -> tuple[Collective, ...]:
    return row.record.collectives if row.record is not None else ()


def _memory(axes: Axes, rows: Sequence[CompiledRow]) -> None:
    held = [(row.record.peak_bytes or 0) / 1e9 for row in rows if row.record is not None]
    axes.barh(range(len(rows)), held, height=bars.WIDTH, **bars.style(0))
    has = rows[0].memory_bytes / 1e9
    if max(held) > has / 50:
        axes.axvline(has, **canvas.DASHES)
        axes.annotate(
            f"a device has {gigabytes(1e9 * has)}", (has, 1.01), xycoords=("data", "axes fraction"), fontsize=6
        )
        axes.set_xlabel("memory per device, GB")
    else:
        axes.set_xlabel(f"memory per device, GB (a device has {gigabytes(1e9 * has)})")
    axes.grid(axis="x")


def _wire(axes: Axes, rows: Sequence[CompiledRow], kinds: Sequence[str]) -> None:
    start = [0.0] * len(rows)
    for look, kind in enumerate(kinds, start=1):
        sent = [sum(each.wire_bytes for each in _collectives(row) if each.kind == kind) / 1e6 for row in rows]
        axes.barh(range(len(rows)), sent, left=start, height=bars.WIDTH, **bars.style(look))
        start = [before + more for before, more in zip(start, sent, strict=True)]
    for place, row in enumerate(rows):
        if row.right is False:
            axes.plot([start[place]], [place], marker="x", color="black", markersize=5)
    axes.set_xlabel("sent by a device in a step, MB")
    axes.grid(axis="x")
