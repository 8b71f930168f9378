# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the operations of a traced step are: its time by kind, one bar a point."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from jaxbench.analysis.scaling import Row
from jaxbench.records.schema import ProfileRecord
from jaxbench.report.figures import bars, canvas, marks
from jaxbench.report.figures.axes import seconds_tick
from jaxbench.report.figures.canvas import short

IDLE = "idle"
CAPTION = (
    "Each moment of a few traced steps is given to the operations that run in it, mean over devices; a collective or a "
    "copy gets only moments in which nothing computes. Tracing slows a step: compare shares, not lengths."
)


def draw(rows: Sequence[Row], *, title: str) -> Figure | None:
    """A stacked bar of milliseconds per step for each profiled point. None where nothing was profiled."""
    found = [(row, row.point.profile) for row in rows if row.point.profile is not None]
    if not found:
        return None
    kinds = _kinds([profile for _, profile in found])
    figure = canvas.blank()
    axes = figure.subplots()
    for place, (row, profile) in enumerate(found):
        at = 0.0
        for look, kind in enumerate(kinds):
            width = profile.kinds.get(kind, 0.0) / profile.steps
            axes.barh([place], [width], left=at, height=0.62, **bars.style(look, hollow=row.point.oversubscribed))
            share = profile.kinds.get(kind, 0.0) / profile.wall_s
            if share >= 0.06:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
                axes.text(at + width / 2, place, f"{100 * share:.0f} %", ha="center", va="center", fontsize=6, bbox=box)
            at += width
    axes.set_xlim(0, 1.03 * max(profile.wall_s / profile.steps for _, profile in found))
    axes.xaxis.set_major_formatter(lambda value, _: seconds_tick(value) if value > 0 else "0")
    axes.set_title("time per traced step", loc="left")
    marks.rows_axis(axes, [short(_name(row), 34) for row, _ in found])
    lines = canvas.legend(figure, [bars.handle(look, kind) for look, kind in enumerate(kinds)], title=title)
    notes = ["outlined: more devices than cores"] if any(row.point.oversubscribed for row, _ in found) else []
    below = canvas.footnotes(figure, [*notes, "shares of the traced time; below 6 % they are not written"])
    figure.set_figheight(max(1.5, 0.8 + 0.34 * len(found)) + 0.16 * lines + 0.12 * below)
    return figure


def _kinds(profiles: Sequence[ProfileRecord]) -> list[str]:
    """Those that take any time, the longest first, idle last."""
    totals: dict[str, float] = {}
    for profile in profiles:
        for kind, seconds in profile.kinds.items():
            totals[kind] = totals.get(kind, 0.0) + seconds / profile.wall_s
    return sorted((k for k, v in totals.items() if v > 0.001), key=lambda kind: (kind == IDLE, -totals[kind]))


def _name(row: Row) -> str:
    devices = f"{row.point.devices} device{'s' if row.point.devices > 1 else ''}"
    return ", ".join(filter(None, (row.point.strategy, row.point.scaling, devices, row.point.arm)))
