# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every timed block over time: the raw data behind the medians and confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from jaxbench.analysis import load
from jaxbench.analysis.records_by_point import session
from jaxbench.records.schema import RoundRecord
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import Figure, Sheet, short
from jaxbench.report.drawing.marks import COLOURS, GREY
from jaxbench.report.findings import Findings

VIEWS = ("training", "levers", "cases")
ORDER = 9
POINTS = 16  # most rows that fit; the points with the longest steps are shown
APART = 0.003  # gap between the blocks of a round, as a share of the width: without it they would hide each other
EDGE = 0.42  # where marks end, as a share of the row's height on each side of its middle
REACH = 0.3  # the relative deviation from the point's median that is drawn at EDGE
CAPTION = (
    "Each row is a point; each mark is a block of steps, drawn at the time when it was measured. The height of a mark "
    "is its time per step relative to the point's median: the edges of a row are "
    f"-{100 * REACH:.0f} % and +{100 * REACH:.0f} %. Each colour is a process."
)


def draw(run: Findings) -> Figure | None:
    """Draws a strip of blocks per measured point. None when nothing was measured."""
    measured = [row.point for row in run.rows if row.point.rounds]
    if not measured:
        return None
    points = [point for point in measured if point in sorted(measured, key=_step_s, reverse=True)[:POINTS]]
    times = [_time(each) for point in points for each in point.rounds]
    start, apart = min(times), APART * max(1.0, max(times) - min(times))
    processes = sorted({_process(each) for point in points for each in point.rounds})
    sheet, shapes = Sheet(), set[str]()
    axes = sheet.only()
    for place, point in enumerate(points):
        axes.axhline(place, color=GREY, linewidth=0.5, zorder=1)
        for each in point.rounds:
            colour = COLOURS[processes.index(_process(each)) % len(COLOURS)]
            inside = "x" if load.contended(point, each) else "o"
            blocks = [(_time(each) - start + apart * n, *at) for n, at in enumerate(_deviations(each, _step_s(point)))]
            shapes |= _strip(axes, blocks, place, colour, inside)
    for height, text in ((-EDGE, f"+{100 * REACH:.0f} %"), (0, "median"), (EDGE, f"−{100 * REACH:.0f} %")):
        axes.axhline(height, color=GREY, linewidth=0.4, linestyle=":", zorder=0)  # only the first row shows the scale
        marks.beside(axes, height, text)
    axes.set_xlabel("minutes since the first round")
    sheet.names(axes, [short(point.point, 48) for point in points], beside=2)
    notes = [
        f"height of a mark in its row: time per step over the point's median, from {-100 * REACH:.0f} % to "
        f"+{100 * REACH:.0f} %" + ("; triangles: beyond" if shapes & {"^", "v"} else "")
    ]
    if len(points) < len(measured):
        notes.append(f"the {len(points)} points with the longest steps, of {len(measured)}")
    return sheet.finish(f"{run.experiment}: every timed block", _handles(len(processes), shapes), notes)


def _deviations(each: RoundRecord, step_s: float) -> list[tuple[float, bool]]:
    """(time per step over the median, minus 1; whether it is a warm-up) for each block of a round."""
    timed = [(seconds, each.steps) for seconds in each.block_s]
    timed += [(seconds, 2 * each.steps) for seconds in each.double_block_s]
    warm = [(seconds / ((each.warmup_steps or each.steps) * step_s) - 1, True) for seconds in each.warmup_block_s]
    return [*warm, *((seconds / (steps * step_s) - 1, False) for seconds, steps in timed)]


def _strip(axes: Any, blocks: Sequence[tuple[float, float, bool]], place: int, colour: str, inside: str) -> set[str]:
    """Draws the blocks of one round; returns the markers it used.

    Args:
      inside: the marker of blocks that lie within the row; triangles mark the ones beyond it.
    """
    used = set()
    for seconds, off, warm in blocks:
        marker = inside if abs(off) <= REACH else "^" if off > 0 else "v"
        y = place - EDGE * min(1.0, max(-1.0, off / REACH))
        face = "none" if warm and marker != "x" else colour
        style: Any = {"color": colour} if marker == "x" else {"facecolors": face, "edgecolors": colour}
        axes.scatter([seconds / 60], [y], s=9, marker=marker, linewidths=0.6, zorder=2, **style)
        used.add(marker)
    return used


def _handles(processes: int, shapes: set[str]) -> list[Any]:
    def handle(label: str, **facts: Any) -> Line2D:
        return Line2D([], [], linestyle="none", markersize=4, label=label, **facts)

    count = min(processes, len(COLOURS))
    names = [handle(f"process {number + 1}", marker="o", color=COLOURS[number]) for number in range(count)]
    contended = [handle("contended", marker="x", color=GREY)] if "x" in shapes else []
    return [*names, handle("warm-up", marker="o", markerfacecolor="none", color=GREY), *contended]


def _process(each: RoundRecord) -> tuple[int, int]:
    """(session, processes before it). The processes of one set, one per device count, count as one."""
    return session(each), int(each.worker.partition("#")[2] or 0)


def _step_s(point: Any) -> float:
    """Median time per step of the point's blocks, in seconds."""
    return float(np.median([seconds / each.steps for each in point.rounds for seconds in each.block_s]))


def _time(each: RoundRecord) -> float:
    """When the round was recorded, in seconds since the epoch; the round's number if its record has no time."""
    try:
        return datetime.fromisoformat(each.time).timestamp()
    except ValueError:
        return 60.0 * each.round
