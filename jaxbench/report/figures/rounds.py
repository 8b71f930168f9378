# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of single blocks and processes: what happened during the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jaxbench.analysis import gates, stragglers
from jaxbench.analysis.points import MeasuredPoint
from jaxbench.analysis.quantities import times
from jaxbench.analysis.run_rows import Row
from jaxbench.core.schema import RoundRecord
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import COLOURS, GREY
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.timing import session

POINTS = 16  # most rows that fit; the points with the longest steps are shown
APART = 0.003  # gap between the blocks of a round, as a share of the width: without it they would hide each other
EDGE = 0.42  # where marks end, as a share of the row's height on each side of its middle
REACH = 0.3  # the relative deviation from the point's median that is drawn at EDGE
Kind = tuple[str, str, bool]  # of a mark: its marker, its colour, and whether it is a warm-up
NAMED = 4  # up to this many processes have their own entry in the legend
MOST = 3  # most points, one row of panels each
LEAST_TOP = 0.05  # least relative delay of the darkest colour, so that noise stays pale
WRITTEN = (12, 16)  # cells have their number written in them up to this many (processes, rounds)
RANKS_COLOURS = "Oranges"


@plot("blocks", views=("training", "levers", "cases"), order=9, diagnostic=True)
def draw_blocks(run: RunReport) -> Figure | None:
    """Each row is a point; each mark is a block of steps, drawn at the time when it was measured. The height of a mark
    is its time per step relative to the point's median: the edges of a row are -30 % and +30 %. Each colour is a
    process."""
    measured = [row.point for row in run.rows if row.point.rounds]
    if not measured:
        return None
    longest = {point.point for point in sorted(measured, key=_step_s, reverse=True)[:POINTS]}  # they decide headlines
    points = [point for point in measured if point.point in longest]
    times = [at_s(each) for point in points for each in point.every_round]
    start, apart = min(times), APART * max(1.0, max(times) - min(times))
    processes = sorted({_process(each) for point in points for each in point.every_round})
    sheet, drawn = Sheet(), dict[Kind, list[tuple[float, float]]]()
    axes = sheet.only()
    for place, point in enumerate(points):
        axes.axhline(place, color=GREY, linewidth=0.5, zorder=1)
        for each in point.every_round:
            colour = COLOURS[processes.index(_process(each)) % len(COLOURS)]
            inside = "x" if gates.why_contended(point, each) else "o"
            blocks = [(at_s(each) - start + apart * n, *at) for n, at in enumerate(_deviations(each, _step_s(point)))]
            for kind, at in _strip(blocks, place, colour, inside):
                drawn.setdefault(kind, []).append(at)
    # One collection for all marks of a kind: with one for each mark this figure took a quarter of a report's time.
    for (marker, colour, warm), ats in drawn.items():
        face = "none" if warm and marker != "x" else colour
        style: marks.Style = {"color": colour} if marker == "x" else {"facecolors": face, "edgecolors": colour}
        x, y = np.transpose(ats)
        axes.scatter(x, y, s=9, marker=marker, linewidths=0.6, zorder=2, **style)
    shapes = {marker for marker, *_ in drawn}
    for height, text in ((-EDGE, f"+{100 * REACH:.0f} %"), (0, "median"), (EDGE, f"−{100 * REACH:.0f} %")):
        axes.axhline(height, color=GREY, linewidth=0.4, linestyle=":", zorder=0)  # only the first row shows the scale
        marks.write_at_right(axes, height, text)
    axes.set_xlabel("minutes since the first round")
    sheet.names(axes, [short(point.point, 48) for point in points], abreast=2)
    notes = [
        f"height of a mark in its row: time per step over the point's median, from {-100 * REACH:.0f} % to "
        f"+{100 * REACH:.0f} %" + ("; triangles: beyond" if shapes & {"^", "v"} else "")
    ]
    if len(points) < len(measured):
        notes.append(f"the {len(points)} points with the longest steps, of {len(measured)}")
    return sheet.finish(f"{run.experiment}: every timed block", _blocks_handles(len(processes), shapes), notes)


def _deviations(each: RoundRecord, step_s: float) -> list[tuple[float, bool]]:
    """(time per step over the median, minus 1; whether it is a warm-up) for each block of a round."""
    timed = [(seconds, each.steps) for seconds in each.block_s]
    timed += [(seconds, 2 * each.steps) for seconds in each.double_block_s]
    warm = [(seconds / ((each.warmup_steps or each.steps) * step_s) - 1, True) for seconds in each.warmup_block_s]
    return [*warm, *((seconds / (steps * step_s) - 1, False) for seconds, steps in timed)]


def _strip(
    blocks: Sequence[tuple[float, float, bool]], place: int, colour: str, inside: str
) -> Iterator[tuple[Kind, tuple[float, float]]]:
    """The kind and the place of the mark of each block of one round. inside: the marker of blocks that lie within the
    row; triangles mark the ones beyond it."""
    for seconds, off, warm in blocks:  # y grows downwards, so a slower block is drawn higher
        marker = inside if abs(off) <= REACH else "^" if off > 0 else "v"
        yield (marker, colour, warm), (seconds / 60, place - EDGE * min(1.0, max(-1.0, off / REACH)))


def _blocks_handles(processes: int, shapes: set[str]) -> list[Artist]:
    def handle(label: str, **facts: Any) -> Line2D:
        return Line2D([], [], linestyle="none", markersize=4, label=label, **facts)

    count = min(processes, len(COLOURS))
    names = [handle(f"process {number + 1}", marker="o", color=COLOURS[number]) for number in range(count)]
    if count > NAMED:
        names = [handle(f"a colour for each of {processes} processes", marker="o", color=COLOURS[0])]
    contended = [handle("contended", marker="x", color=GREY)] if "x" in shapes else []
    return [*names, handle("warm-up", marker="o", markerfacecolor="none", color=GREY), *contended]


def _process(each: RoundRecord) -> tuple[int, int, int]:
    """(session, set, deaths before it). The processes of one set, one per device count, count as one."""
    # "session0/cpu2#1" is of the second set; the first one has no number. "#1.1" replaced a process that died.
    number, _, died = each.worker.partition("#")[2].partition(".")
    return session(each), int(number or 0), int(died or 0)


def _step_s(point: MeasuredPoint) -> float:
    """Median time per step of the point's blocks, in seconds."""
    return float(np.median([seconds / each.steps for each in point.rounds for seconds in each.block_s]))


def at_s(each: RoundRecord) -> float:
    """When the round was recorded, in seconds since the epoch; the round's number if its record has no time."""
    try:
        return datetime.fromisoformat(each.time).timestamp()
    except ValueError:  # "": an older record. A minute for each round keeps their order
        return 60.0 * each.round


@plot("ranks", views=("training", "levers"), order=8, diagnostic=True)
def draw_ranks(run: RunReport) -> Figure | None:
    """Each row is a process and each column a round. The darker a cell, the more the blocks of that process exceeded
    the median of all processes; the dot marks the slowest process of the round. A dark row is a slow process. In a
    whole step, all processes wait in each collective for the slowest; without communication each shows its
    own speed."""
    costs = {
        row.point_id: found.clearest.slowest_over_median.value
        for row in run.rows
        if (found := stragglers.of(row)) is not None
    }
    if not costs:
        return None
    worst = sorted(costs, key=lambda point: -costs[point])[:MOST]
    every = [row for row in run.rows if row.point_id in costs]
    shown = [row for row in every if row.point_id in worst]  # in the order of the page
    lines = [_with_local_program(row) for row in shown]
    top = max(LEAST_TOP, *(float(_grid(row).max()) for line in lines for row in line))  # one scale for all panels
    heights = [max(1.15, 0.75 + 0.16 * min(row.point.processes, 24)) for row in shown]
    sheet = Sheet(len(lines), max(map(len, lines)), heights=heights)
    for panels, line in zip(sheet.panels, lines, strict=True):
        for at, (axes, one) in enumerate(zip(panels, line, strict=False)):
            _heat(axes, one, top)
            entitle(axes, _title(line, at), x="round", y="" if at else "process")
        for axes in panels[len(line) :]:
            axes.set_visible(False)
    starts = any(_starts(row) for line in lines for row in line)
    remarks = ["dot: slowest process of the round", *["vertical line: the processes were restarted"] * starts]
    remarks += notes.rest(len(shown), len(every), "points, those with the slowest processes")
    return sheet.finish(f"{run.experiment}: which process is slow", _ranks_handles(top), remarks)


def _with_local_program(row: Row) -> list[Row]:
    found = stragglers.of(row)
    return [row, row.ablations["local"]] if found is not None and found.local is not None else [row]


def _grid(one: Row) -> np.ndarray:
    """Shape (processes, rounds): time over the median process's, minus 1; the median over the blocks of a round."""
    rounds = [np.median(stragglers.over_median(each), axis=1) for _, each in stragglers.usable(one)]
    return np.array(rounds).T - 1


def _starts(one: Row) -> list[int]:
    """The rounds, counted from 0, before which the processes were restarted."""
    workers = [each.worker for _, each in stragglers.usable(one)]
    return [at for at in range(1, len(workers)) if workers[at] != workers[at - 1]]


def _heat(axes: Axes, one: Row, top: float) -> None:
    """Draws the delay of each process in each round as a matrix. top: the darkest delay."""
    grid = _grid(one)
    processes, rounds = grid.shape
    # Cells are shapes and not an image, which PDF readers blur when they scale it.
    axes.grid(False)
    axes.pcolormesh(
        # Only delays have a colour: that a process is fast hides nothing.
        np.arange(rounds + 1) + 0.5,
        np.arange(processes + 1) - 0.5,
        np.maximum(grid, 0),
        cmap=RANKS_COLOURS,
        vmin=0,
        vmax=1.3 * top,
        edgecolors="white",
        linewidth=0.8 if processes <= 32 else 0.0,
    )
    slowest, written = grid.argmax(axis=0), processes <= WRITTEN[0] and rounds <= WRITTEN[1]
    for at in range(rounds):
        axes.plot([at + (0.68 if written else 1)], [slowest[at]], "o", color="black", markersize=2.0)
        for process in range(processes) if written else ():
            colour = "white" if grid[process, at] > 0.7 * top else "black"
            axes.text(at + 1.05, process, _percent(grid[process, at]), ha="center", va="center", size=6, color=colour)
    for at in _starts(one):
        axes.axvline(at + 0.5, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_yticks(range(0, processes, 1 + (processes - 1) // 16))
    axes.set_xticks(range(1, rounds + 1, 1 + (rounds - 1) // 10))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _percent(delay: float) -> str:
    """A signed percentage without its unit, such as "+13", "0" or "−2"."""
    return f"{100 * delay:+z.0f}".replace("-", "−").replace("+0", "0")


def _title(line: Sequence[Row], at: int) -> str:
    """Writes the title of a panel. The last panel of a row gets the verdict: there processes wait least for others."""
    # Of a whole step only who comes last is known, because all wait for the slowest.
    found, what = stragglers.pace(line[at]), "slow" if at else "last"
    head = "without communication" if at else f"{short(found.point, 30)}, whole step"
    if at < len(line) - 1:
        return head
    slow = f"{found.slow} is {what}, {times(found.relative[found.slow])}" if found.slow is not None else ""
    return f"{head}: {slow or f'none is {what}'}"


def _ranks_handles(top: float) -> Sequence[Patch]:
    """Legend entries for the colours of no delay, half of the longest delay and the longest."""
    shades = matplotlib.colormaps[RANKS_COLOURS]
    labels = {0.0: "0 %", 0.5: f"+{50 * top:.3g} %", 1.0: f"+{100 * top:.3g} %"}
    style: marks.Style = {"edgecolor": "#aaaaaa", "linewidth": 0.4}
    return [Patch(facecolor=shades(share / 1.3), label=label, **style) for share, label in labels.items()]
