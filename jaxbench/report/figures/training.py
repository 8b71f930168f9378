# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of how a training step scales over devices, processes and hosts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.typing import LineStyleType

from jaxbench.analysis import points
from jaxbench.analysis.quantities import devices, seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.report.drawing import marks, notes, series
from jaxbench.report.drawing.axes import (
    devices_axis,
    efficiency_axis,
    entitle,
    log_axis,
    plain,
    reach,
    seconds_tick,
    si,
    zero_axis,
)
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import GREY, Mark
from jaxbench.report.drawing.shapes import Chart, Panel, bars, on
from jaxbench.report.drawing.shapes import rows as shapes_rows
from jaxbench.report.run_report import RunReport, unit
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

_SCALING_STYLES: dict[str, LineStyleType] = {"strong": "-", "weak": ":"}  # marker and colour show the strategy

# The figure over hosts is of the same kind as for Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) and MegaScale
# (Jiang et al., NSDI 2024).
HOSTS_MOST = 3  # most strategies, one row of panels each
IDEAL: marks.Style = dict(facecolor="#ededed", edgecolor=GREY, linewidth=0.6)  # pale, because it was not measured
WIDE = 0.38  # width of a bar; pairs of bars are 1 apart


class StrategyCurve(NamedTuple):
    """One line: the timed rows of a strategy in one scaling."""

    strategy: str
    scaling: str
    rows: list[Row]
    place: int  # index of its style
    base: int | None  # the device count that its speed-ups are over


@plot("scaling", views=("training",), order=1)
def draw_scaling(run: RunReport) -> Figure | Chart:
    """Left: examples (or tokens) per second, on a logarithmic axis. Middle: speed-up over the smallest device count;
    dashed: linear. Right: efficiency, the speed-up divided by the growth in devices. Of one device: the time of a step,
    and which shares of the device's peaks it reaches."""
    timed = [row for row in run.rows if row.timing.step_s.known]
    if len({row.point.devices for row in timed}) == 1:  # nothing scales
        return one_device(timed, title=f"{run.experiment}: one step on {devices(timed[0].point.devices)}")
    section = run.config.get("report")
    overlay = str(section.get("overlay") or "") if isinstance(section, dict) else ""
    overlaid = published.overlaid(overlay, run.experiment)
    return of_rows(run.rows, title=f"{run.experiment}: training throughput over devices", overlaid=overlaid)


def of_rows(rows: Sequence[Row], *, title: str, overlaid: tuple[str, Sequence[str]] = ("", ())) -> Figure:
    """Draws a row of three panels; with more than two strategies, strong and weak scaling get a row each.

    overlaid: a published table and its columns to draw.
    """
    every = _series(rows)
    scalings = list(dict.fromkeys(s.scaling for s in every)) or ["strong"]
    split = len({s.strategy for s in every}) > 2 and len(scalings) > 1  # six lines or more hide each other
    groups = [[s for s in every if s.scaling == scaling] for scaling in scalings] if split else [every]
    sheet = Sheet(len(groups), 3)
    handles, remarks = _handles(every, split=split), notes.of_marks(rows)
    for line, group in zip(sheet.panels, groups, strict=True):
        entries, more = _panels(line, group, scaling=group[0].scaling if split else "", overlaid=overlaid)
        handles += entries
        remarks += more
    return sheet.finish(title, handles, remarks, even=False)


def one_device(rows: Sequence[Row], *, title: str) -> Chart:
    """The time of a step and the shares of the device's peaks, a row for each strategy and scaling."""
    strategies = {row.point.strategy for row in rows}
    shown = [row for row in rows if row.point.scaling == rows[0].point.scaling]  # of one device, all have one batch
    names = [short(row.point.strategy if len(strategies) > 1 else rows[0].point.strategy, 26) for row in shown]
    times = [
        Mark(at=at, value=row.timing.step_s, state=marks.state(row), text=seconds(row.timing.step_s.value))
        for at, row in enumerate(shown)
    ]
    rates = [
        Mark(at=at, value=rate, state=marks.state(row), style=1, text=si(rate.value))
        for at, row in enumerate(shown)
        for rate in [row.timing.examples_per_s]
    ]
    shares = [
        Mark(at=at, value=share, state=marks.state(row), style=2, text=f"{share.value:.0f} %")
        for at, row in enumerate(shown)
        if (share := _peak_share(row).times(100)).known
    ]
    panels = [
        Panel(title="time per step", layers=[on(bars, times, show=seconds_tick)]),
        Panel(title=f"{short(unit(rows))}/s", layers=[on(bars, rates, show=si)]),
    ]
    if shares:
        of_hundred = on(zero_axis, "x", max(100.0, reach(shares)), room=1.13, max_ticks=5)
        bars_of = [on(marks.hbars, shares), of_hundred]
        panels.append(Panel(title="share of the peak FLOP/s, %", layers=bars_of, level=100))
    notes_of = [*notes.of_marks(shown), *dict.fromkeys(note for row in shown if (note := _peak_note(row)))]
    return shapes_rows(names, panels, title=title, remarks=notes_of)


def _peak_share(row: Row) -> Estimate:
    """Model FLOPs over what the device could do at its peak, between 0 and 1; UNKNOWN without a peak."""
    use = row.use
    share = use.mfu if math.isfinite(use.mfu) else use.measured_peak_share
    if not math.isfinite(share):
        return UNKNOWN
    step_s = row.timing.step_s
    return step_s.under(share * step_s.value)


def _peak_note(row: Row) -> str:
    return row.use.peak if math.isfinite(row.use.mfu) else row.use.measured_note


def _series(rows: Sequence[Row]) -> list[StrategyCurve]:
    """A curve for each strategy and scaling with a measured time."""
    strategies = list(dict.fromkeys(r.point.strategy for r in rows))
    every = []
    for number, (strategy, scaling) in enumerate(dict.fromkeys((r.point.strategy, r.point.scaling) for r in rows)):
        members = [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling)]
        timed = sorted((r for r in members if r.timing.step_s.known), key=lambda r: r.point.devices)
        if not timed:
            continue  # a name in the legend would promise a line
        place = strategies.index(strategy) if len(strategies) > 1 else number  # a single one: a colour for each scaling
        base = next((r.base.devices for r in timed if r.base is not None), None)
        every.append(StrategyCurve(strategy, scaling, timed, place, base))
    return every


def _line(axes: Axes, curve: StrategyCurve, value: series.Value, *, factor: float, scale: float = 1) -> None:
    """Draws one series. factor: shifts it along the axis of devices, so that series of equal values stay visible."""
    made = marks.of(curve.rows, lambda row: row.point.devices * factor, value, scale=scale)
    marks.line(axes, made, place=curve.place, between=_SCALING_STYLES.get(curve.scaling, "-"))


def _panels(
    line: list[Axes], group: list[StrategyCurve], *, scaling: str, overlaid: tuple[str, Sequence[str]]
) -> tuple[list[Line2D], list[str]]:
    """Draws one row of panels. Returns its additions to the legend and to the footnotes."""
    rate, speed, share = line
    base, others = _common_base(group)
    marks.unity(share, at=100, along="y")
    for place, curve in enumerate(group):
        factor = marks.dodge(place, len(group))
        _line(rate, curve, lambda row: row.timing.examples_per_s, factor=factor)
        if curve.base == base:
            _line(speed, curve, lambda row: row.speedup, factor=factor)
        _line(share, curve, lambda row: row.efficiency, factor=factor, scale=100)
    counts = sorted({r.point.devices for s in group for r in s.rows})
    compared = {r.point.devices for s in group if s.base == base for r in s.rows if r.speedup.known}
    # The published series are weak scaling over one GPU, and belong into no other panel.
    wanted = bool(overlaid[1]) and scaling != "strong"
    behind = _overlay(speed, *overlaid) if wanted and base == 1 else []
    their_counts = {int(x) for curve in behind for x in np.asarray(curve.get_xdata())}
    span = sorted(compared | their_counts)
    marks.guide(speed, span, [count / base for count in span])
    _label_axes(line, group, base, prefix=f"{scaling}: " if scaling else "")
    in_margin = max(span, default=1) == max(their_counts, default=0)
    if in_margin:
        marks.end_labels(speed, behind)
    scaled = {r.point.devices for s in group for r in s.rows if r.efficiency.known}
    for axes in line:
        devices_axis(axes, span if axes is speed else counts if axes is rate else sorted(scaled) or counts)
    elsewhere = [f"{short(s.strategy)} {s.scaling} (base {devices(s.base)})" for s in others if s.base is not None]
    remarks = [f"not in the speed-up panel, which has one base: {', '.join(elsewhere)}"] if elsewhere else []
    if wanted:
        source = f"{published.read(overlaid[0]).project}, DGX-1, 8 P100; weak scaling"
        unequal = f"published speed-ups, over 1 GPU, are not drawn: these are over {devices(base)} ({source})"
        remarks.append(notes.cited(source) if behind else unequal)
    return [] if in_margin else behind, remarks


def _label_axes(line: list[Axes], group: list[StrategyCurve], base: int, *, prefix: str) -> None:
    what = short(unit(row for curve in group for row in curve.rows))
    titles = (f"{what}/s", f"speed-up over {devices(base)}", "efficiency, %")
    for axes, title in zip(line, titles, strict=True):
        entitle(axes, f"{prefix}{title}")
    log_axis(line[0], "y", show=si, min_span=2)
    log_axis(line[1], "y", base=2, show=plain, max_ticks=9, min_span=2)
    efficiency_axis(line[2])


def _common_base(group: list[StrategyCurve]) -> tuple[int, list[StrategyCurve]]:
    """(most common base, series with another base). Ties: the smallest base; 1 without any base."""
    votes = Counter(s.base for s in group if s.base is not None)
    base = min(votes, key=lambda count: (-votes[count], count), default=1)
    return base, [s for s in group if s.base not in (None, base)]


def _overlay(axes: Axes, table: str, names: Sequence[str]) -> list[Line2D]:
    """Draws published speed-ups, each over the first row of its own series. Returns the labelled lines."""
    frame, lines = published.read(table).frame.set_index("gpus"), []
    for place, name in enumerate(names):
        speedup, shape = frame[name] / frame[name].iloc[0], marks.series_style(place)[1]
        lines.append(marks.published(axes, frame.index, speedup, shape=shape, label=name))
    return lines


def _handles(every: list[StrategyCurve], *, split: bool) -> list[Artist]:
    """Legend entries of the measured series and the ideal. split: strong and weak scaling have separate panels."""
    handles = []
    for curve in every:
        if not split or curve.scaling == every[0].scaling:
            label = short(curve.strategy) if split else f"{short(curve.strategy)}, {curve.scaling}"
            handles.append(marks.handle(curve.place, label, between=_SCALING_STYLES.get(curve.scaling, "-")))
    return [*handles, marks.guide_handle("ideal")]


@plot("hosts", views=("training",), order=2, diagnostic=True)
def draw_hosts(run: RunReport) -> Figure | None:
    """Examples (or tokens) per second over the number of processes or hosts, next to the ideal: the base's throughput
    times the growth in devices. The number above a pair is the efficiency: measured divided by ideal."""
    every_family = series.families(row for row in run.rows if row.timing.step_s.known)
    groups = {name: rows for name, rows in every_family.items() if len({row.point.processes for row in rows}) > 1}
    if not groups:
        return None
    shown = dict(list(groups.items())[:HOSTS_MOST])
    every = [row for rows in shown.values() for row in rows]
    scalings = list(dict.fromkeys(row.point.scaling for row in every))
    hosts = {row.point_id: points.hosts_of(row.point, run.manifest.get("workers", {})) for row in every}
    hosts = hosts if max(hosts.values()) > 1 else {}  # of one host, the number of processes says more
    sheet = Sheet(len(shown), len(scalings), heights=2.2)
    for line, (name, rows) in zip(sheet.panels, shown.items(), strict=True):
        for axes, scaling in zip(line, scalings, strict=True):
            _pairs(axes, [row for row in rows if row.point.scaling == scaling], hosts)
            rate = "tokens/s" if _of_tokens(rows) else f"{short(unit(rows))}/s"
            entitle(axes, f"{short(name, 30)}, {scaling} scaling", y=rate if axes is line[0] else "")
    handles = [Patch(label="ideal", **IDEAL), marks.bar_handle(0, "measured")]
    remarks = [*series.remarks(every, every), *notes.rest(len(shown), len(groups), "strategies")]
    over = "hosts" if hosts else "processes"
    return sheet.finish(f"{run.experiment}: throughput over {over}", handles, remarks)


def _of_tokens(rows: Sequence[Row]) -> bool:
    return all(math.isfinite(row.point.fact("tokens")) for row in rows)


def _pairs(axes: Axes, rows: Sequence[Row], hosts: Mapping[str, int]) -> None:
    """Draws the pairs of bars of one strategy and scaling. hosts: the host count by point; {} for a run on one host."""
    tokens, top = _of_tokens(rows), 0.0
    for at, row in enumerate(rows):
        rate = row.timing.examples_per_s.times(row.point.fact("tokens") if tokens else 1)
        mark = Mark(at=at + WIDE / 2, value=rate, state=marks.state(row))
        # The base's rate, from the row's own rate and speed-up, times the growth in devices.
        best = rate.value / row.speedup.value * row.relative_devices if row.speedup.known else 0.0
        axes.bar([at - WIDE / 2], [best], width=WIDE, **IDEAL)
        marks.vbars(axes, [mark], thick=WIDE)
        marks.write(axes, at, max(best, mark.end), _efficiency_percent(row), above=True)
        top = max(top, best, mark.end)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, max(len(rows), 2) - 0.4)  # a single pair would fill the panel
    axes.set_xticks(range(len(rows)), [_hosts_name(row, hosts.get(row.point_id)) for row in rows])
    axes.tick_params(axis="x", length=0)
    zero_axis(axes, "y", top, show=si)


def _efficiency_percent(row: Row) -> str:
    value = row.efficiency
    return f"{100 * value.value:.0f} %" if value.known and marks.state(row) in ("solid", "hollow") else ""


def _hosts_name(row: Row, hosts: int | None) -> str:
    """Such as "2 hosts" or "4 processes", with the device count below if it differs. hosts: None for a one-host run."""
    count, what = (row.point.processes, "process") if hosts is None else (hosts, "host")
    name = f"{count} {what}{('es' if hosts is None else 's') * (count > 1)}"
    return name if count == row.point.devices else f"{name}\n{devices(row.point.devices)}"
