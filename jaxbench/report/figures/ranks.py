# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which process is slow: how much longer its blocks took than the median process's, by round and process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.patches import Patch

from jaxbench.analysis import stragglers
from jaxbench.analysis.paired_ratio import Timed
from jaxbench.analysis.quantities import times
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import notes
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, short
from jaxbench.report.findings import Findings

VIEWS = ("training", "levers")
ORDER = 8
MOST = 3  # most points, one row of panels each
LEAST_TOP = 0.05  # least relative delay of the darkest colour, so that noise stays pale
WRITTEN = (12, 16)  # cells have their number written in them up to this many (processes, rounds)
COLOURS = "Oranges"
CAPTION = (
    "Each row is a process and each column a round. The darker a cell, the more the blocks of that process exceeded "
    "the median of all processes; the dot marks the slowest process of the round. A dark row is a slow process. In a "
    "whole step, all processes wait in each collective for the slowest; without communication each shows its own speed."
)


def draw(run: Findings) -> Figure | None:
    """Draws per point the whole step, and the step without communication. None for runs of one process."""
    every = [row for row in run.rows if isinstance(row, Row) and stragglers.of(row) is not None]
    if not every:
        return None
    shown = [row for row in every if row in sorted(every, key=_cost, reverse=True)[:MOST]]
    lines = [_programs(row) for row in shown]
    top = max(LEAST_TOP, *(float(_grid(one).max()) for line in lines for one in line))
    heights = [max(1.15, 0.75 + 0.16 * min(row.point.processes, 24)) for row in shown]
    sheet = Sheet(len(lines), max(map(len, lines)), heights=heights)
    for panels, line in zip(sheet.panels, lines, strict=True):
        for at, (axes, one) in enumerate(zip(panels, line, strict=False)):
            _heat(axes, one, top)
            entitle(axes, _title(line, at), x="round", y="" if at else "process")
        for axes in panels[len(line) :]:
            axes.set_visible(False)
    starts = any(_starts(one) for line in lines for one in line)
    remarks = ["dot: slowest process of the round", *["vertical line: the processes were restarted"] * starts]
    remarks += notes.rest(len(shown), len(every), "points, those with the slowest processes")
    return sheet.finish(f"{run.experiment}: which process is slow", _handles(top), remarks)


def _programs(row: Row) -> list[Timed]:
    found = stragglers.of(row)
    return [row, row.explained_by["local"]] if found is not None and found.local is not None else [row]


def _cost(row: Row) -> float:
    found = stragglers.of(row)
    return found.clearest.slowest_over_median.value if found is not None else 0.0


def _grid(one: Timed) -> np.ndarray:
    """Shape (processes, rounds): time over the median process's, minus 1; the median over the blocks of a round."""
    rounds = [np.median(stragglers.over_median(each), axis=1) for _, each in stragglers.usable(one)]
    return np.array(rounds).T - 1


def _starts(one: Timed) -> list[int]:
    """The rounds, counted from 0, before which the processes were restarted."""
    workers = [each.worker for _, each in stragglers.usable(one)]
    return [at for at in range(1, len(workers)) if workers[at] != workers[at - 1]]


def _heat(axes: Axes, one: Timed, top: float) -> None:
    grid = _grid(one)
    processes, rounds = grid.shape
    axes.grid(False)
    axes.pcolormesh(
        np.arange(rounds + 1) + 0.5, np.arange(processes + 1) - 0.5, np.maximum(grid, 0), cmap=COLOURS, vmin=0,
        vmax=1.3 * top, edgecolors="white", linewidth=0.8 if processes <= 32 else 0.0,
    )  # fmt: skip
    slowest, written = grid.argmax(axis=0), processes <= WRITTEN[0] and rounds <= WRITTEN[1]
    for at in range(rounds):
        axes.plot([at + (0.68 if written else 1)], [slowest[at]], "o", color="black", markersize=2.0)
        for process in range(processes) if written else ():
            colour = "white" if grid[process, at] > 0.7 * top else "black"
            axes.text(at + 1.05, process, _percent(grid[process, at]), ha="center", va="center", size=5.5, color=colour)
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


def _title(line: Sequence[Timed], at: int) -> str:
    """Writes the title of a panel. The last panel of a row gets the verdict: there processes wait least for others."""
    found, what = stragglers.pace(line[at]), "slow" if at else "last"
    head = "without communication" if at else f"{short(found.point, 30)}, whole step"
    if at < len(line) - 1:
        return head
    slow = f"{found.slow} is {what}, {times(found.relative[found.slow])}" if found.slow is not None else ""
    return f"{head}: {slow or f'none is {what}'}"


def _handles(top: float) -> Sequence[Patch]:
    """Legend entries for the colours of no delay, half of the longest delay and the longest."""
    shades = matplotlib.colormaps[COLOURS]
    labels = {0.0: "0 %", 0.5: f"+{50 * top:.3g} %", 1.0: f"+{100 * top:.3g} %"}
    style: Any = {"edgecolor": "#aaaaaa", "linewidth": 0.4}
    return [Patch(facecolor=shades(share / 1.3), label=label, **style) for share, label in labels.items()]
