# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of traced steps: their time by category of operation."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from jaxbench.analysis.quantities import devices
from jaxbench.analysis.run_rows import Row
from jaxbench.core.schema import ProfileRecord
from jaxbench.report.details import IDLE
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import seconds_tick, zero_axis
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.shapes import Chart, Panel, on, rows
from jaxbench.report.run_report import RunReport


@plot("profile", views=("training", "levers"), order=3, title="time of a step by kind of operation")
def draw_profile(run: RunReport) -> Chart | None:
    """Time per step of a few traced steps, by kind of operation, mean over devices. A collective or copy counts only
    while nothing computes. Tracing slows a step down: compare shares, not lengths."""
    profiled = [(row, row.point.profile) for row in run.rows if row.point.profile is not None]
    if not profiled:
        return None
    kinds = _kinds([profile for _, profile in profiled])
    longest = max(profile.wall_s / profile.steps for _, profile in profiled)
    panel = Panel(
        title="time per traced step",
        layers=[on(_bar, place, *each, kinds) for place, each in enumerate(profiled)],
        axes=[on(zero_axis, "x", longest, show=seconds_tick, room=1.03, max_ticks=8)],
    )
    points = [row.point for row, _ in profiled]
    names = [", ".join(filter(None, (p.strategy, p.scaling, devices(p.devices), p.arm))) for p in points]
    hollow = [notes.HOLLOW] if any(row.point.oversubscribed for row, _ in profiled) else []
    return rows(
        [short(name, 34) for name in names],
        [panel],
        abreast=2,
        handles=[marks.bar_handle(style, kind) for style, kind in enumerate(kinds)],
        remarks=[*hollow, "shares of the traced time; those below 6 % are not labelled"],
    )


def _bar(axes: Axes, place: int, row: Row, profile: ProfileRecord, kinds: Sequence[str]) -> None:
    """Draws one step, with the share of each part that has room for it."""
    parts = [(profile.kinds.get(kind, 0.0) / profile.steps, style) for style, kind in enumerate(kinds)]
    marks.stack(axes, place, parts, thick=0.62, hollow=row.point.oversubscribed)
    at = 0.0
    for width, _ in parts:
        share = width * profile.steps / profile.wall_s
        if share >= 0.06:  # a narrower part has no room for its label
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
            axes.text(at + width / 2, place, f"{100 * share:.0f} %", ha="center", va="center", fontsize=6, bbox=box)
        at += width


def _kinds(profiles: Sequence[ProfileRecord]) -> list[str]:
    """The kinds that take any time, the longest first, idle last."""
    totals: dict[str, float] = {}
    for profile in profiles:
        for kind, seconds in profile.kinds.items():
            totals[kind] = totals.get(kind, 0.0) + seconds / profile.wall_s
    return sorted((k for k, v in totals.items() if v > 0.001), key=lambda kind: (kind == IDLE, -totals[kind]))
