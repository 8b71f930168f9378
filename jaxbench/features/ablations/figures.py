# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The waterfall: the steps from 100 % down to the measured efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from jaxbench.analysis.quantities import devices
from jaxbench.analysis.waterfall import (
    CLOCK,
    CONTENTION,
    NAMES,
    RUNTIME,
    SLOWEST_PROCESS,
    SMALLER_BATCH,
    STAGE_WORK,
    UNEQUAL,
    Factor,
    Waterfall,
    Withheld,
)
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import GREY
from jaxbench.report.drawing.shapes import Chart, Panel, on
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import Estimate

WATERFALL_MOST = 3  # most strategies: more rows of panels do not fit on a page
_LEFT: marks.Style = dict(facecolor="#e3e3e3", edgecolor="#333333", linewidth=0.8)  # the bar of the measured efficiency
_ERROR: marks.Style = dict(linestyle="none", ecolor="black", elinewidth=0.7, capsize=1.5, capthick=0.7, zorder=4)
# Related factors are drawn like these, but hollow.
_KIN = {STAGE_WORK: SMALLER_BATCH, SLOWEST_PROCESS: CONTENTION, RUNTIME: CONTENTION, CLOCK: UNEQUAL}
_PLACES = sorted((name for name in NAMES if name not in _KIN), key=lambda name: name == UNEQUAL)  # the newest last
# By factor: (the number of its colour and hatch, whether it is hollow).
_WATERFALL_STYLES = {name: (_PLACES.index(_KIN.get(name, name)), name in _KIN) for name in NAMES}
_GAP, _LEAST = 1.2, 12.0  # in widths of a bar: the gap between device counts, and the least width of a panel


class Losses(Protocol):
    """The numbers of a group of bars."""

    @property
    def devices(self) -> int: ...
    @property
    def efficiency(self) -> Estimate: ...
    @property
    def factors(self) -> tuple[Factor, ...]: ...


@plot("waterfall", views=("training",), order=1, title="why not 100 %")
def draw_waterfall(run: RunReport) -> Chart | None:
    """Each step down from 100 % is the loss by one factor in points of efficiency, with its confidence interval; the
    grey bar is the measured efficiency. Smaller per-device batch: a device with less work does it less efficiently.
    Unequal devices: all wait for the slowest. Contention: processes of one device each are slower when all run
    at once. One runtime: devices of one process are slower than these. Pipeline bubble:
    stages wait for each other. Communication: the part that does not overlap with computation. Unexplained:
    the rest."""
    every = run.waterfalls
    if not every:
        return None
    scalings = list(dict.fromkeys(one.point.scaling for one in every))
    strategies = list(dict.fromkeys(_waterfall_name(one) for one in every))
    shown = strategies[:WATERFALL_MOST]

    def one_panel(strategy: str, scaling: str) -> Panel:
        members = [one for one in every if (_waterfall_name(one), one.point.scaling) == (strategy, scaling)]
        y = "efficiency, %" if scaling == scalings[0] else ""
        return Panel(title=f"{short(strategy, 26)}, {scaling}", y=y, layers=[on(panel, members)])

    rest = notes.rest(len(shown), len(strategies), "strategies, in the order of the table")
    return Chart(
        panels=[[one_panel(strategy, scaling) for scaling in scalings] for strategy in shown],
        heights=1.9,
        sharey=True,
        handles=handles([one for one in every if _waterfall_name(one) in shown]),
        remarks=[*remarks(every), *withheld_remarks(run.withheld), *rest],
    )


def handles(every: Sequence[Losses]) -> list[Artist]:
    """Legend entries of the factors that have a bar."""
    drawn = {factor.name for one in every for factor in one.factors if not factor.negligible}
    styles = {name: style for name, style in _WATERFALL_STYLES.items() if name in drawn}
    return [marks.bar_handle(place, short(name), hollow=hollow) for name, (place, hollow) in styles.items()]


def _waterfall_name(one: Waterfall) -> str:
    return " ".join(filter(None, (one.point.strategy, one.point.arm)))


def panel(axes: Axes, members: Sequence[Losses]) -> None:
    """Draws one group of bars per device count."""
    axes.axhline(100, **marks.DASHES, zorder=1)
    start, centres = 0.0, []
    for one in members:
        end = _steps(axes, one, start)
        centres.append((start + end) / 2)
        start = end + 1 + _GAP
    axes.set_xticks(centres, [devices(one.devices) for one in members])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    spare = max(0.0, _LEAST - start) / 2  # so that the bars of one device count are no wider than those of many
    axes.set_xlim(-1 - spare, start - _GAP + spare)
    together = axes.get_shared_y_axes().get_siblings(axes)  # a panel on the same y axis may be higher, if it has a gain
    axes.set_ylim(0, max(112.0, *(1.12 * each.dataLim.y1 for each in together)))  # room for numbers
    if not members:
        axes.text(0.5, 0.5, "no waterfall", transform=axes.transAxes, ha="center", color=GREY)


def _steps(axes: Axes, one: Losses, start: float) -> float:
    """Draws the steps of one device count from x = start. Returns the x of the last bar, which is the efficiency."""
    level, at = 100.0, start
    for factor in one.factors:
        below = level - factor.lost.value
        if factor.negligible:
            # Its loss is part of the sum, although it has no bar.
            level = below
            continue
        _step(axes, at, level, factor)
        axes.plot([at - 0.4, at + 1.4], [below, below], color=GREY, linewidth=0.5, zorder=1)
        level, at = below, at + 1
    whole = one.efficiency.times(100)
    axes.bar([at], [whole.value], width=0.8, zorder=2, **_LEFT)
    _interval(axes, at, whole)
    top = whole.hi if whole.has_interval else whole.value
    marks.write(axes, at - 0.4, top, f"{whole.value:.0f} %", above=True, ha="left")  # left of the bar are the steps
    return at


def _step(axes: Axes, at: float, level: float, factor: Factor) -> None:
    """Draws a factor's bar from `level` down (up if it gains), with the confidence interval around its end."""
    lost = factor.lost
    low, high = sorted((level, level - lost.value))
    place, hollow = _WATERFALL_STYLES[factor.name]
    axes.bar([at], [high - low], bottom=low, width=0.8, zorder=2, **marks.bar_style(place, hollow=hollow))
    _interval(axes, at, Estimate(value=level - lost.value, lo=level - lost.hi, hi=level - lost.lo))
    text = f"{-lost.value:+z.0f}".replace("-", "−") if factor.resolved else "?"  # z: no "-0"
    if lost.value < 0:
        marks.write(axes, at, max(high, level - lost.lo) if lost.has_interval else high, text, size=6, above=True)
    else:
        bottom = min(low, level - lost.hi) if lost.has_interval else low
        marks.write(axes, at, bottom, text, size=6, xytext=(0, -2), ha="center", va="top")


def _interval(axes: Axes, at: float, value: Estimate) -> None:
    """Draws the error bar of a bar, if its value has an interval."""
    if value.has_interval:
        axes.errorbar([at], [value.value], yerr=[[value.value - value.lo], [value.hi - value.value]], **_ERROR)


def withheld_remarks(withheld: Sequence[Withheld]) -> list[str]:
    """A note on each point that has no bars."""
    return [f"no waterfall of {each.row.point_id}: {each.why}" for each in withheld]


def remarks(every: Sequence[Waterfall]) -> list[str]:
    """Notes on what bars and marks mean, and on parts that were not measured."""
    whole = [(one.row.timing.samples, one.row.timing.rounds, one.row.timing.processes) for one in every]
    # A run with rounds=auto visits the ablations less often than the points that they explain.
    parts = [(n[0] * one.rounds // n[1], one.rounds, one.processes) for n, one in zip(whole, every, strict=True)]
    counts = notes.n_of(parts)
    if parts != whole:
        counts += f" for the factors, {notes.n_of(whole).removeprefix('n = ')} for the efficiency"
    found = [f"points of efficiency; {notes.BARS} of each step; {counts}, measured in the same rounds"]
    if any(not (factor.resolved or factor.negligible) for one in every for factor in one.factors):
        found.append("?: the interval contains 0")
    missing = [clause for one in every for clause in one.missing]
    if missing:
        more = f" and {len(missing) - 2} more" if len(missing) > 2 else ""
        found.append(f"in 'unexplained', because they were not measured: {'; '.join(missing[:2])}{more}")
    return found
