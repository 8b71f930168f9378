# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of all result cards: efficiency over devices, a panel an experiment, a line a card and strategy.

A machine and strategy have one marker and one colour in all panels; strong scaling is a solid line, weak a dotted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.intervals import Estimate
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import devices_axis, efficiency_axis
from jaxbench.report.figures.canvas import COLOURS, DASHES, HOLLOW, MARKERS, short

NAME = "cards"
_STYLES: dict[str, Any] = {"strong": "-", "weak": ":"}
_ACROSS = 3  # panels beside each other
WRONG = "crossed out: did not pass its check; the program computes something else"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One point of a line. efficiency: as a share of 1."""

    devices: int
    efficiency: Estimate
    oversubscribed: bool
    wrong: bool


@dataclass(frozen=True, kw_only=True)
class Line:
    """One card's strategy in one scaling, its marks by devices."""

    machine: str
    experiment: str
    strategy: str
    scaling: str
    marks: tuple[Mark, ...]

    @property
    def look(self) -> tuple[str, str]:
        return self.machine, self.strategy


def draw(lines: Sequence[Line], *, title: str, notes: Sequence[str] = ()) -> Figure | None:
    """None when no line has two device counts. notes: further footnotes."""
    drawn = sorted((line for line in lines if len(line.marks) > 1), key=lambda line: (line.look, line.scaling))
    if not drawn:
        return None
    looks = list(dict.fromkeys(line.look for line in drawn))
    experiments = sorted({line.experiment for line in drawn})
    across = min(_ACROSS, len(experiments))
    figure = canvas.blank(dpi=100)
    down = -(-len(experiments) // across)
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, experiment in zip(panels, experiments, strict=False):
        _panel(axes, [line for line in drawn if line.experiment == experiment], looks, title=experiment)
    for axes in panels[len(experiments) :]:
        axes.set_axis_off()
    lines_above = canvas.legend(figure, _handles(drawn, looks), title=title, even=False)
    lines_below = canvas.footnotes(figure, [*_notes(drawn), *notes])
    figure.set_figheight(0.45 + 2.2 * down + 0.15 * lines_above + 0.11 * lines_below)
    return figure


def _panel(axes: Axes, lines: Sequence[Line], looks: list[tuple[str, str]], *, title: str) -> None:
    axes.axhline(100, **DASHES, zorder=1)
    for place, line in enumerate(lines):
        # Lines of equal values stay visible when each is drawn a little beside the tick.
        dodge = 2 ** ((place - (len(lines) - 1) / 2) * min(0.07, 0.2 / len(lines)))
        _plot(axes, line, looks.index(line.look), dodge)
    devices_axis(axes, sorted({mark.devices for line in lines for mark in line.marks}))
    efficiency_axis(axes, f"{short(title, 18)}: efficiency, %")


def _plot(axes: Axes, line: Line, look: int, dodge: float) -> None:
    """The line through all marks; filled with intervals where honest, hollow without where oversubscribed."""
    style: dict[str, Any] = dict(color=_colour(look), marker=_marker(look), linestyle="none")
    marks = sorted(line.marks, key=lambda mark: mark.devices)
    x = np.array([mark.devices * dodge for mark in marks])
    y = np.array([100 * mark.efficiency.value for mark in marks])
    hollow = np.array([mark.oversubscribed for mark in marks])
    wrong = np.array([mark.wrong for mark in marks])
    reach = np.array([_reach(mark.efficiency) for mark in marks]).T
    axes.plot(x, y, color=_colour(look), linestyle=_STYLES.get(line.scaling, "-"), zorder=2)
    bars: dict[str, Any] = dict(capsize=2.4, elinewidth=0.8, capthick=0.8, zorder=3)
    axes.errorbar(x[~hollow], y[~hollow], yerr=reach[:, ~hollow], **style, **bars)
    axes.plot(x[hollow], y[hollow], **style, markerfacecolor="white", markeredgewidth=0.9, zorder=4)
    axes.plot(x[wrong], y[wrong], linestyle="none", marker="x", color="black", markersize=8, zorder=5)


def _reach(value: Estimate) -> tuple[float, float]:
    if not value.has_interval:
        return 0.0, 0.0
    return max(0.0, 100 * (value.value - value.lo)), max(0.0, 100 * (value.hi - value.value))


def _colour(look: int) -> str:
    return COLOURS[look % len(COLOURS)]


def _marker(look: int) -> str:
    """One further on when the colours begin again, so that no two of the first 49 look alike."""
    return MARKERS[(look + look // len(COLOURS)) % len(MARKERS)]


def _handles(lines: Sequence[Line], looks: list[tuple[str, str]]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=_colour(i), marker=_marker(i), label=f"{short(machine, 34)}: {short(strategy, 34)}")
        for i, (machine, strategy) in enumerate(looks)
    ]
    scalings = [name for name in _STYLES if any(line.scaling == name for line in lines)]
    if len(scalings) > 1:
        handles += [Line2D([], [], color="black", linestyle=_STYLES[name], label=name) for name in scalings]
    return [*handles, Line2D([], [], **DASHES, label="ideal")]


def _notes(lines: Sequence[Line]) -> list[str]:
    marks = [mark for line in lines for mark in line.marks]
    notes = ["error bars: 95 % intervals"] if any(m.efficiency.has_interval for m in marks) else []
    notes += [HOLLOW] if any(mark.oversubscribed for mark in marks) else []
    return notes + ([WRONG] if any(mark.wrong for mark in marks) else [])
