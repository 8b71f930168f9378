# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The scaling figure: throughput, speed-up and efficiency over devices.

A strategy is a marker and a colour, strong scaling is a solid line and weak scaling a dotted one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.errors import UserError, did_you_mean
from jaxbench.report.figures import canvas
from jaxbench.report.figures.axes import devices_axis, efficiency_axis, speedup_axis, throughput_axis
from jaxbench.report.figures.canvas import COLOURS, DASHES, GREY, HOLLOW, MARKERS, short

_LINES: dict[str, Any] = {"strong": "-", "weak": ":"}


@dataclass(frozen=True, kw_only=True)
class _Series:
    """One line: a strategy in one scaling, its rows by device count."""

    strategy: str
    scaling: str
    rows: list[Row]
    colour: str
    marker: str

    @property
    def base(self) -> int | None:
        """The device count that its speed-ups are over."""
        return next((r.base.devices for r in self.rows if r.base is not None), None)


def write(rows: list[Row], folder: Path, *, title: str, overlay: str = "") -> dict[str, bytes]:
    """Writes ``scaling.svg``, ``.pdf`` and ``.png`` into `folder`. Returns their bytes by suffix.

    Raises:
      UserError: `overlay` is neither "" nor one of `published.overlays`.
    """
    files = render(rows, title=title, overlay=overlay)
    canvas.write(files, folder, "scaling")
    return files


def render(rows: list[Row], *, title: str, overlay: str = "") -> dict[str, bytes]:
    """The same figure in three formats."""
    if overlay and overlay not in published.overlays():
        meant = did_you_mean(overlay, published.overlays())
        raise UserError(f"unknown overlay '{overlay}' in config.report.overlay: {meant} Give \"\" for none.")
    return canvas.render(lambda: draw(rows, title=title, overlay=overlay))


def draw(rows: list[Row], *, title: str, overlay: str = "") -> Figure:
    """One row of three panels; with more than two strategies strong and weak get a row each."""
    series = _series(rows)
    scalings = list(dict.fromkeys(s.scaling for s in series)) or ["strong"]
    split = len({s.strategy for s in series}) > 2 and len(scalings) > 1
    groups = [[s for s in series if s.scaling == scaling] for scaling in scalings] if split else [series]
    figure = canvas.blank(dpi=100)
    panels = figure.subplots(len(groups), 3, squeeze=False)
    handles, footnotes = [], [HOLLOW] if any(r.point.oversubscribed for r in rows) else []
    if any(r.point.check_ok is False for s in series for r in s.rows):
        footnotes.append("crossed out: did not pass its check; the program computes something else")
    for line, group in zip(panels, groups, strict=True):
        entries, notes = _panels(line, group, scaling=group[0].scaling if split else "", overlay=overlay)
        handles.extend(entries)
        footnotes.extend(notes)
    lines_above = _legend(figure, series, title=title, split=split, published_series=handles)
    canvas.footnotes(figure, footnotes)
    figure.set_figheight(0.45 + 2.05 * len(groups) + 0.15 * lines_above)  # or a long legend would flatten the panels
    return figure


def _series(rows: list[Row]) -> list[_Series]:
    strategies = list(dict.fromkeys(r.point.strategy for r in rows))
    families = list(dict.fromkeys((r.point.strategy, r.point.scaling) for r in rows))
    series = []
    for place, (strategy, scaling) in enumerate(families):
        mine = [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling)]
        number = strategies.index(strategy)
        look = number if len(strategies) > 1 else place
        series.append(
            _Series(
                strategy=strategy,
                scaling=scaling,
                rows=sorted((r for r in mine if r.timing.step_s.known), key=lambda r: r.point.devices),
                colour=COLOURS[look % len(COLOURS)],
                marker=MARKERS[look % len(MARKERS)],
            )
        )
    return series


def _panels(line: list[Axes], group: list[_Series], *, scaling: str, overlay: str) -> tuple[list[Line2D], list[str]]:
    """Draws one row of panels. Returns what it adds to the legend and to the footnotes."""
    rate, speed, share = line
    base, others = _common_base(group)
    share.axhline(100, **DASHES, zorder=1)
    for place, series in enumerate(group):
        # Series of equal values stay visible when each is drawn a little beside the tick.
        dodge = 2 ** ((place - (len(group) - 1) / 2) * min(0.07, 0.2 / len(group)))
        _plot(rate, series, [r.timing.examples_per_s for r in series.rows], dodge=dodge)
        if series.base == base:
            _plot(speed, series, [r.speedup for r in series.rows], dodge=dodge)
        _plot(share, series, [r.efficiency for r in series.rows], dodge=dodge, scale=100)
    counts = sorted({r.point.devices for s in group for r in s.rows})
    reach = {r.point.devices for s in group if s.base == base for r in s.rows}
    wanted = bool(overlay) and scaling != "strong"
    behind = _overlay(speed, overlay) if wanted and base == 1 else []
    published_counts = {int(x) for one in behind for x in np.asarray(one.get_xdata())}
    span = sorted(reach | published_counts)
    speed.plot(span, [count / base for count in span], **DASHES, zorder=1)
    prefix = f"{scaling}: " if scaling else ""
    units = {f"{short(r.point.record.unit)}/s" for s in group for r in s.rows if r.point.record is not None}
    throughput_axis(rate, f"{prefix}{units.pop() if len(units) == 1 else 'examples/s'}")
    speedup_axis(speed, f"{prefix}speed-up over {devices(base)}")
    efficiency_axis(share, f"{prefix}efficiency, %")
    in_margin = max(span, default=1) == max(published_counts, default=0)
    if in_margin:
        canvas.end_labels(speed, behind)
    if not counts:
        speed.text(0.5, 0.5, "nothing was measured", transform=speed.transAxes, ha="center", color=GREY)
    for axes in line:
        devices_axis(axes, span if axes is speed else counts)
    notes = [_left_out(others)] if others else []
    if wanted:
        notes.append(_citation(overlay, drawn=bool(behind), base=base))
    return [] if in_margin else behind, notes


def _common_base(group: list[_Series]) -> tuple[int, list[_Series]]:
    """The base of most series (the smallest of equals; 1 if there is none), and the series that have another."""
    votes = Counter(s.base for s in group if s.base is not None)
    base = min(votes, key=lambda count: (-votes[count], count), default=1)
    return base, [s for s in group if s.base not in (None, base)]


def _left_out(others: list[_Series]) -> str:
    said = [f"{short(s.strategy)} {s.scaling} (base {devices(s.base)})" for s in others if s.base is not None]
    return f"not in the speed-up panel, which has one base: {', '.join(said)}"


def _citation(overlay: str, *, drawn: bool, base: int) -> str:
    source = f"{published.read(overlay).project}, DGX-1, 8 P100; weak scaling"
    if not drawn:
        return f"published speed-ups are over 1 GPU and not drawn beside these over {devices(base)} ({source})"
    return f"dashed grey: published by others, not measured here. {source}"


def _plot(axes: Axes, series: _Series, values: list[Estimate], *, dodge: float, scale: float = 1) -> None:
    """The line through all points; filled markers with error bars where honest, hollow without where oversubscribed."""
    look: dict[str, Any] = dict(color=series.colour, marker=series.marker, linestyle="none")
    x = np.array([r.point.devices * dodge for r in series.rows])
    y = scale * np.array([v.value for v in values])
    ends = scale * np.array([(v.lo, v.hi) if v.has_interval else (v.value, v.value) for v in values]).reshape(-1, 2)
    hollow = np.array([r.point.oversubscribed for r in series.rows], dtype=bool)
    wrong = np.array([r.point.check_ok is False for r in series.rows], dtype=bool)
    bars = np.abs(ends.T - y)[:, ~hollow]
    axes.plot(x, y, color=series.colour, linestyle=_LINES.get(series.scaling, "-"), zorder=2)
    axes.errorbar(x[~hollow], y[~hollow], yerr=bars, **look, capsize=2.4, elinewidth=0.8, capthick=0.8, zorder=3)
    axes.plot(x[hollow], y[hollow], **look, markerfacecolor="white", markeredgewidth=0.9, zorder=4)
    axes.plot(x[wrong], y[wrong], linestyle="none", marker="x", color="black", markersize=8, zorder=5)


def _overlay(axes: Axes, overlay: str) -> list[Line2D]:
    """Draws published speed-ups, each over its own first row. Returns the lines, labelled with their names."""
    frame = published.read(overlay).frame.set_index("gpus")
    drawn = []
    for place, name in enumerate(frame.columns):
        drawn += axes.plot(
            frame.index, frame[name] / frame[name].iloc[0], color=canvas.PALE, marker=MARKERS[place % len(MARKERS)],
            markersize=3, markerfacecolor="white", markeredgewidth=0.6, linewidth=0.7, linestyle="--", zorder=1.5,
            label=str(name),
        )  # fmt: skip
    return drawn


def _legend(figure: Figure, series: list[_Series], *, title: str, split: bool, published_series: list[Line2D]) -> int:
    """Title and legend above the panels. Returns how many lines they take."""
    handles = []
    for one in series:
        if split and one.scaling != series[0].scaling:
            continue
        label = short(one.strategy) if split else f"{short(one.strategy)}, {one.scaling}"
        line = _LINES.get(one.scaling, "-")
        handles.append(Line2D([], [], color=one.colour, marker=one.marker, linestyle=line, label=label))
    handles.append(Line2D([], [], **DASHES, label="ideal"))
    handles.extend(published_series)
    return canvas.legend(figure, handles, title=title, even=False)
