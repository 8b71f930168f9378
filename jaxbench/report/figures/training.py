# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of how a training step scales, and of what it loses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jaxbench.analysis import points
from jaxbench.analysis.quantities import devices
from jaxbench.analysis.quantities import devices as devices_word
from jaxbench.analysis.scaling import Row
from jaxbench.catalog import published
from jaxbench.core.schema import ProfileRecord
from jaxbench.features.ablations.waterfall import (
    CONTENTION,
    NAMES,
    SLOWEST_PROCESS,
    SMALLER_BATCH,
    STAGE_WORK,
    Factor,
    Waterfall,
)
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.report.details import IDLE
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import (
    devices_axis,
    efficiency_axis,
    empty,
    entitle,
    log_axis,
    plain,
    seconds_tick,
    si,
    zero_axis,
)
from jaxbench.report.drawing.canvas import Sheet, short
from jaxbench.report.drawing.marks import GREY, Mark
from jaxbench.report.drawing.plot import plot
from jaxbench.report.findings import Findings, TrainingFindings, unit
from jaxbench.statistics.bootstrap import Estimate

# scaling: The scaling figure: throughput, speed-up and efficiency over devices. Marker and colour show the strategy;
# strong scaling is a solid line, weak scaling a dotted one.

_SCALING_STYLES: dict[str, Any] = {"strong": "-", "weak": ":"}


class StrategyCurve(NamedTuple):
    """One line: the timed rows of a strategy in one scaling.

    Attributes:
      place: index of its style.
      base: the device count that its speed-ups are over.
    """

    strategy: str
    scaling: str
    rows: list[Row]
    place: int
    base: int | None


@plot("scaling", views=("training",), order=1)
def draw_scaling(run: Findings) -> Figure:
    """Left: examples (or tokens) per second, on a logarithmic axis. Middle: speed-up over the smallest device count;
    dashed: linear. Right: efficiency, the speed-up divided by the growth in devices."""
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
    split = len({s.strategy for s in every}) > 2 and len(scalings) > 1
    groups = [[s for s in every if s.scaling == scaling] for scaling in scalings] if split else [every]
    sheet = Sheet(len(groups), 3)
    handles, remarks = _handles(every, split=split), notes.of_marks(rows)
    for line, group in zip(sheet.panels, groups, strict=True):
        entries, more = _panels(line, group, scaling=group[0].scaling if split else "", overlaid=overlaid)
        handles += entries
        remarks += more
    return sheet.finish(title, handles, remarks, even=False)


def _series(rows: Sequence[Row]) -> list[StrategyCurve]:
    strategies = list(dict.fromkeys(r.point.strategy for r in rows))
    every = []
    for number, (strategy, scaling) in enumerate(dict.fromkeys((r.point.strategy, r.point.scaling) for r in rows)):
        members = [r for r in rows if (r.point.strategy, r.point.scaling) == (strategy, scaling)]
        timed = sorted((r for r in members if r.timing.step_s.known), key=lambda r: r.point.devices)
        place = strategies.index(strategy) if len(strategies) > 1 else number
        base = next((r.base.devices for r in timed if r.base is not None), None)
        every.append(StrategyCurve(strategy, scaling, timed, place, base))
    return every


def _line(axes: Axes, one: StrategyCurve, value: Callable[[Row], Estimate], *, factor: float, scale: float = 1) -> None:
    """Draws one series. factor: shifts it along the axis of devices, so that series of equal values stay visible."""
    made = marks.of(one.rows, lambda row: row.point.devices * factor, value, scale=scale)
    marks.line(axes, made, place=one.place, between=_SCALING_STYLES.get(one.scaling, "-"))


def _panels(
    line: list[Axes], group: list[StrategyCurve], *, scaling: str, overlaid: tuple[str, Sequence[str]]
) -> tuple[list[Line2D], list[str]]:
    """Draws one row of panels. Returns its additions to the legend and to the footnotes."""
    rate, speed, share = line
    base, others = _common_base(group)
    marks.unity(share, at=100, along="y")
    for place, one in enumerate(group):
        factor = marks.dodge(place, len(group))
        _line(rate, one, lambda row: row.timing.examples_per_s, factor=factor)
        if one.base == base:
            _line(speed, one, lambda row: row.speedup, factor=factor)
        _line(share, one, lambda row: row.efficiency, factor=factor, scale=100)
    counts = sorted({r.point.devices for s in group for r in s.rows})
    reach = {r.point.devices for s in group if s.base == base for r in s.rows}
    wanted = bool(overlaid[1]) and scaling != "strong"
    behind = _overlay(speed, *overlaid) if wanted and base == 1 else []
    their_counts = {int(x) for one in behind for x in np.asarray(one.get_xdata())}
    span = sorted(reach | their_counts)
    marks.guide(speed, span, [count / base for count in span])
    _axes(line, group, base, prefix=f"{scaling}: " if scaling else "")
    in_margin = max(span, default=1) == max(their_counts, default=0)
    if in_margin:
        marks.end_labels(speed, behind)
    if not counts:
        empty(speed, "nothing was measured")
    for axes in line:
        devices_axis(axes, span if axes is speed else counts)
    remarks = [_left_out(others)] if others else []
    if wanted:
        remarks.append(_citation(overlaid[0], drawn=bool(behind), base=base))
    return [] if in_margin else behind, remarks


def _axes(line: list[Axes], group: list[StrategyCurve], base: int, *, prefix: str) -> None:
    what = short(unit(row for series in group for row in series.rows))
    titles = (f"{what}/s", f"speed-up over {devices(base)}", "efficiency, %")
    for axes, title in zip(line, titles, strict=True):
        entitle(axes, f"{prefix}{title}")
    log_axis(line[0], "y", show=si, min_span=2)
    log_axis(line[1], "y", base=2, show=plain, max_ticks=9, min_span=2)
    efficiency_axis(line[2])


def _common_base(group: list[StrategyCurve]) -> tuple[int, list[StrategyCurve]]:
    """(most common base, notes on series with another base). Ties: the smallest base; 1 without any base."""
    votes = Counter(s.base for s in group if s.base is not None)
    base = min(votes, key=lambda count: (-votes[count], count), default=1)
    return base, [s for s in group if s.base not in (None, base)]


def _left_out(others: list[StrategyCurve]) -> str:
    names = [f"{short(s.strategy)} {s.scaling} (base {devices(s.base)})" for s in others if s.base is not None]
    return f"not in the speed-up panel, which has one base: {', '.join(names)}"


def _citation(overlay: str, *, drawn: bool, base: int) -> str:
    source = f"{published.read(overlay).project}, DGX-1, 8 P100; weak scaling"
    if not drawn:
        return f"published speed-ups, over 1 GPU, are not drawn: these are over {devices(base)} ({source})"
    return notes.cited(source)


def _overlay(axes: Axes, table: str, names: Sequence[str]) -> list[Line2D]:
    """Draws published speed-ups, each over the first row of its own series. Returns the labelled lines."""
    frame = published.read(table).frame.set_index("gpus")
    return [
        marks.published(
            axes, frame.index, frame[name] / frame[name].iloc[0], shape=marks.series_style(place)[1], label=name
        )
        for place, name in enumerate(names)
    ]


def _handles(every: list[StrategyCurve], *, split: bool) -> list[Any]:
    """Legend entries of the measured series and the ideal. split: strong and weak scaling have separate panels."""
    handles = []
    for one in every:
        if not split or one.scaling == every[0].scaling:
            label = short(one.strategy) if split else f"{short(one.strategy)}, {one.scaling}"
            handles.append(marks.handle(one.place, label, between=_SCALING_STYLES.get(one.scaling, "-")))
    return [*handles, marks.guide_handle("ideal")]


WATERFALL_MOST = 3  # most strategies: more rows of panels do not fit on a page
_LEFT: Any = dict(facecolor="#e3e3e3", edgecolor="#333333", linewidth=0.8)  # the bar of the measured efficiency
_ERROR: Any = dict(linestyle="none", ecolor="black", elinewidth=0.7, capsize=1.5, capthick=0.7, zorder=4)
_KIN = {STAGE_WORK: SMALLER_BATCH, SLOWEST_PROCESS: CONTENTION}  # related factors: drawn like these, but hollow
_PLACES = [name for name in NAMES if name not in _KIN]
_WATERFALL_STYLES = {
    name: (_PLACES.index(_KIN.get(name, name)), name in _KIN) for name in NAMES
}  # (colour and hatch, hollow)
_GAP, _LEAST = 1.2, 12.0  # in widths of a bar: the gap between device counts, and the least width of a panel


@plot("waterfall", views=("training",), order=1)
def draw_waterfall(run: TrainingFindings) -> Figure | None:
    """Each step down from 100 % is the loss by one factor in points of efficiency, with its confidence interval; the
    grey bar is the measured efficiency. Smaller per-device batch: a device with less work does it less efficiently.
    Contention: all devices running at once are slower than one alone, even without communication. Pipeline bubble:
    stages wait for each other. Communication: the part that does not overlap with computation. Unexplained:
    the rest."""
    every = run.waterfalls
    if not every:
        return None
    scalings = list(dict.fromkeys(one.point.scaling for one in every))
    strategies = list(dict.fromkeys(_waterfall_name(one) for one in every))
    shown = strategies[:WATERFALL_MOST]
    sheet = Sheet(len(shown), len(scalings), heights=1.9, sharey=True)
    for line, strategy in zip(sheet.panels, shown, strict=True):
        for axes, scaling in zip(line, scalings, strict=True):
            members = [one for one in every if (_waterfall_name(one), one.point.scaling) == (strategy, scaling)]
            panel(axes, members)
            entitle(axes, f"{short(strategy, 26)}, {scaling}", y="efficiency, %" if axes is line[0] else "")
    drawn = handles([one for one in every if _waterfall_name(one) in shown])
    rest = notes.rest(len(shown), len(strategies), "strategies, in the order of the table")
    return sheet.finish(f"{run.experiment}: why not 100 %", drawn, [*remarks(every), *rest])


def handles(every: Sequence[Waterfall]) -> list[Any]:
    """Legend entries of the factors that have a bar."""
    drawn = {factor.name for one in every for factor in one.factors if not factor.negligible}
    return [
        marks.bar_handle(place, short(name), hollow=hollow)
        for name, (place, hollow) in _WATERFALL_STYLES.items()
        if name in drawn
    ]


def _waterfall_name(one: Waterfall) -> str:
    return " ".join(filter(None, (one.point.strategy, one.point.arm)))


def panel(axes: Axes, members: Sequence[Waterfall]) -> None:
    """Draws one group of bars per device count."""
    axes.axhline(100, **marks.DASHES, zorder=1)
    start, centres = 0.0, []
    for one in members:
        end = _steps(axes, one, start)
        centres.append((start + end) / 2)
        start = end + 1 + _GAP
    axes.set_xticks(centres, [devices(one.point.devices) for one in members])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    spare = max(0.0, _LEAST - start) / 2  # so that the bars of one device count are no wider than those of many
    axes.set_xlim(-1 - spare, start - _GAP + spare)
    together = axes.get_shared_y_axes().get_siblings(axes)  # a panel on the same y axis may be higher, if it has a gain
    axes.set_ylim(0, max(112.0, *(1.12 * each.dataLim.y1 for each in together)))
    if not members:
        axes.text(0.5, 0.5, "no waterfall", transform=axes.transAxes, ha="center", color=GREY)


def _steps(axes: Axes, one: Waterfall, start: float) -> float:
    """Draws the steps of one device count from x = start. Returns the x of the last bar, which is the efficiency."""
    level, at = 100.0, start
    for factor in one.factors:
        below = level - factor.lost.value
        if factor.negligible:
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
    text = f"{-lost.value:+z.0f}".replace("-", "−") if factor.resolved else "?"
    if lost.value < 0:
        marks.write(axes, at, max(high, level - lost.lo) if lost.has_interval else high, text, size=6, above=True)
    else:
        bottom = min(low, level - lost.hi) if lost.has_interval else low
        marks.write(axes, at, bottom, text, size=6, xytext=(0, -2), ha="center", va="top")


def _interval(axes: Axes, at: float, value: Estimate) -> None:
    if value.has_interval:
        axes.errorbar([at], [value.value], yerr=[[value.value - value.lo], [value.hi - value.value]], **_ERROR)


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


@plot("factors")
def draw_factors(comparison: Comparison) -> Figure | None:
    """The efficiency of each run in steps down from 100 %: one per factor, with its confidence interval."""
    families = list(dict.fromkeys((pair.a.family, pair.b.family) for pair in comparison.waterfalls))
    if not families:
        return None
    shown = families[:WATERFALL_MOST]
    pairs = [pair for pair in comparison.waterfalls if (pair.a.family, pair.b.family) in shown]
    sheet = Sheet(len(shown), 2, heights=1.9, sharey=True)
    for (left, right), family in zip(sheet.panels, shown, strict=True):
        members = [pair for pair in pairs if (pair.a.family, pair.b.family) == family]
        panel(left, [pair.a for pair in members])
        panel(right, [pair.b for pair in members])
        entitle(left, f"A: {short(family[0], 30)}", y="efficiency, %")
        entitle(right, f"B: {short(family[1], 30)}")
    every = [one for pair in pairs for one in (pair.a, pair.b)]
    rest = notes.rest(len(shown), len(families), "strategies and scalings, in the order of the table")
    return sheet.finish("Why not 100 %: A and B", handles(every), [*remarks(every), *rest])


# hosts: Throughput over processes or hosts: bars of ideal and measured throughput, with the efficiency above them.
# The same kind of figure as for Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) and MegaScale (Jiang et al.,
# NSDI 2024).

HOSTS_MOST = 3  # most strategies, one row of panels each
IDEAL: Any = dict(facecolor="#ededed", edgecolor=GREY, linewidth=0.6)  # pale, because it was not measured
WIDE = 0.38  # width of a bar; pairs of bars are 1 apart


@plot("hosts", views=("training",), order=2)
def draw_hosts(run: Findings) -> Figure | None:
    """Examples (or tokens) per second over the number of processes or hosts, next to the ideal: the base's throughput
    times the growth in devices. The number above a pair is the efficiency: measured divided by ideal."""
    timed = [row for row in run.rows if isinstance(row, Row) and row.timing.step_s.known and not row.point.explains]
    groups = {name: rows for name, rows in families.families(timed).items() if len(_counts(rows)) > 1}
    if not groups:
        return None
    shown = dict(list(groups.items())[:HOSTS_MOST])
    every = [row for rows in shown.values() for row in rows]
    scalings = list(dict.fromkeys(row.point.scaling for row in every))
    hosts = {row.point.point: points.hosts_of(row.point, run.manifest.get("workers", {})) for row in every}
    hosts = hosts if max(hosts.values()) > 1 else {}
    sheet = Sheet(len(shown), len(scalings), heights=2.2)
    for line, (name, rows) in zip(sheet.panels, shown.items(), strict=True):
        for axes, scaling in zip(line, scalings, strict=True):
            _pairs(axes, [row for row in rows if row.point.scaling == scaling], hosts)
            entitle(axes, f"{short(name, 30)}, {scaling} scaling", y=_unit(rows) if axes is line[0] else "")
    handles = [Patch(label="ideal", **IDEAL), marks.bar_handle(0, "measured")]
    remarks = [*families.remarks(every, every), *notes.rest(len(shown), len(groups), "strategies")]
    over = "hosts" if hosts else "processes"
    return sheet.finish(f"{run.experiment}: throughput over {over}", handles, remarks)


def _counts(rows: Sequence[Row]) -> set[int]:
    return {row.point.processes for row in rows}


def _unit(rows: Sequence[Row]) -> str:
    return "tokens/s" if _of_tokens(rows) else f"{short(unit(rows))}/s"


def _of_tokens(rows: Sequence[Row]) -> bool:
    return all(math.isfinite(row.point.fact("tokens")) for row in rows)


def _pairs(axes: Axes, rows: Sequence[Row], hosts: Mapping[str, int]) -> None:
    """Draws the pairs of bars of one strategy and scaling. hosts: the host count by point; {} for a run on one host."""
    tokens, top = _of_tokens(rows), 0.0
    for at, row in enumerate(rows):
        rate = row.timing.examples_per_s.times(row.point.fact("tokens") if tokens else 1)
        mark = Mark(at=at + WIDE / 2, value=rate, state=marks.state(row))
        best = rate.value / row.speedup.value * row.relative_devices if row.speedup.known else 0.0
        axes.bar([at - WIDE / 2], [best], width=WIDE, **IDEAL)
        marks.vbars(axes, [mark], thick=WIDE)
        marks.write(axes, at, max(best, mark.end), _percent(row), above=True)
        top = max(top, best, mark.end)
    axes.grid(False, axis="x")
    axes.set_xlim(-0.6, max(len(rows), 2) - 0.4)
    axes.set_xticks(range(len(rows)), [_hosts_name(row, hosts.get(row.point.point)) for row in rows])
    axes.tick_params(axis="x", length=0)
    zero_axis(axes, "y", top, show=si)


def _percent(row: Row) -> str:
    value = row.efficiency
    return f"{100 * value.value:.0f} %" if value.known and marks.state(row) in ("solid", "hollow") else ""


def _hosts_name(row: Row, hosts: int | None) -> str:
    """Such as "2 hosts" or "4 processes", with the device count below if it differs. hosts: None for a one-host run."""
    count, what = (row.point.processes, "process") if hosts is None else (hosts, "host")
    name = f"{count} {what}{('es' if hosts is None else 's') * (count > 1)}"
    return name if count == row.point.devices else f"{name}\n{devices_word(row.point.devices)}"


@plot("profile", views=("training", "levers"), order=3)
def draw_profile(run: Findings) -> Figure | None:
    """Time per step of a few traced steps, by kind of operation, mean over devices. A collective or copy counts only
    while nothing computes. Tracing slows a step down: compare shares, not lengths."""
    profiled = [(row, row.point.profile) for row in run.rows if row.point.profile is not None]
    if not profiled:
        return None
    kinds = _kinds([profile for _, profile in profiled])
    sheet = Sheet()
    axes = sheet.only()
    for place, (row, profile) in enumerate(profiled):
        parts = [(profile.kinds.get(kind, 0.0) / profile.steps, style) for style, kind in enumerate(kinds)]
        marks.stack(axes, place, parts, thick=0.62, hollow=row.point.oversubscribed)
        at = 0.0
        for width, _ in parts:
            share = width * profile.steps / profile.wall_s
            if share >= 0.06:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
                axes.text(at + width / 2, place, f"{100 * share:.0f} %", ha="center", va="center", fontsize=6, bbox=box)
            at += width
    longest = max(profile.wall_s / profile.steps for _, profile in profiled)
    zero_axis(axes, "x", longest, show=seconds_tick, room=1.03, max_ticks=8)
    entitle(axes, "time per traced step")
    sheet.names(axes, [short(_profile_name(row), 34) for row, _ in profiled], abreast=2)
    handles = [marks.bar_handle(style, kind) for style, kind in enumerate(kinds)]
    hollow = [notes.HOLLOW] if any(row.point.oversubscribed for row, _ in profiled) else []
    remarks = [*hollow, "shares of the traced time; those below 6 % are not labelled"]
    return sheet.finish(f"{run.experiment}: time of a step by kind of operation", handles, remarks)


def _kinds(profiles: Sequence[ProfileRecord]) -> list[str]:
    """The kinds that take any time, the longest first, idle last."""
    totals: dict[str, float] = {}
    for profile in profiles:
        for kind, seconds in profile.kinds.items():
            totals[kind] = totals.get(kind, 0.0) + seconds / profile.wall_s
    return sorted((k for k, v in totals.items() if v > 0.001), key=lambda kind: (kind == IDLE, -totals[kind]))


def _profile_name(row: Row) -> str:
    return ", ".join(filter(None, (row.point.strategy, row.point.scaling, devices(row.point.devices), row.point.arm)))
