# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of generation: throughput against speed for a user, and what the time of a token divides into."""

from __future__ import annotations

from matplotlib.figure import Figure

from jaxbench.analysis.decoding import PARTS, TokenTime
from jaxbench.analysis.quantities import devices, seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import entitle, log_axis, seconds_tick, si
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

_AXES = ("tokens_per_s_user", "tokens_per_s_device")


@plot("frontier", views=("decode",), order=1)
def draw_frontier(run: RunReport) -> Figure | None:
    """Tokens per second of a device against tokens per second of a user, one point for each batch, with 95 % confidence
    intervals of both. A larger batch goes up and to the left. A point above and to the right of another one is better
    for both."""
    families: dict[tuple[str, int], list[Row]] = {}
    for row in run.rows:
        if row.usable and not row.point.oversubscribed:
            families.setdefault((row.point.strategy, row.point.devices), []).append(row)
    if not families:
        return None
    sheet = Sheet(1, 1)
    axes = sheet.panels[0][0]
    handles = []
    for number, ((strategy, count), family) in enumerate(families.items()):
        colour, shape = marks.series_style(number)
        family.sort(key=lambda row: row.point.global_batch)
        across, up = ([row.explained.get(name, UNKNOWN) for row in family] for name in _AXES)
        axes.errorbar(
            [each.value for each in across],
            [each.value for each in up],
            xerr=_errors(across),
            yerr=_errors(up),
            color=colour,
            marker=shape,
            markersize=4,
            linewidth=1.0,
            elinewidth=0.8,
        )
        for row, x, y in zip(family, across, up, strict=True):
            marks.write(axes, x.value, y.value, f"{row.point.global_batch}", above=True)
        handles.append(marks.handle(number, f"{short(strategy)}, {devices(count)}"))
    log_axis(axes, "x", show=si, max_ticks=6)
    log_axis(axes, "y", show=si, max_ticks=6)
    entitle(axes, "", x="tokens/s of a user", y="tokens/s of a device")
    remarks = ["numbers at points: requests of the batch", *notes.of_times(run.rows, "per point")]
    return sheet.finish(f"{run.experiment}: throughput against speed", handles, remarks)


def _errors(values: list[Estimate]) -> list[list[float]] | None:
    """Lengths of the arms of error bars; None without intervals."""
    if not all(each.has_interval for each in values):
        return None
    return [[each.value - each.lo for each in values], [each.hi - each.value for each in values]]


@plot("token_time", views=("decode",), order=2)
def draw_token_time(run: RunReport) -> Figure | None:
    """What the time of a token divides into, from programs that leave out a part, measured in the same rounds, with
    95 % confidence intervals. Weights: the products alone. Cache: attention to it, and writing it. Smaller products:
    norms, activations and sums between them. Message latency: all-reduces of one number. Message bytes: what their
    payload adds. Starting: what a call costs more than a step inside a scan. Unexplained: the rest."""
    # On one device all strategies are one program.
    shown = {_panel(each): each for each in reversed(run.token_times)}
    times = [*reversed(shown.values())]
    if not times:
        return None
    sheet = Sheet(1, len(times), heights=2.4, sharey=True)
    for axes, each in zip(sheet.panels[0], times, strict=True):
        made = [_bar(each, name, at) for at, name in enumerate(reversed(PARTS)) if name in each.parts]
        marks.hbars(axes, made)
        axes.axvline(0, color="#333333", linewidth=0.6)
        axes.xaxis.set_major_formatter(
            lambda value, _: seconds_tick(value) if value >= 0 else f"-{seconds_tick(-value)}"
        )
        axes.locator_params(axis="x", nbins=4)
        entitle(axes, short(each.name, 26), x=f"of {seconds(each.token_s.value)}, batch {each.row.point.global_batch}")
        sheet.names(axes, list(reversed(PARTS)), shown=axes is sheet.panels[0][0])
    return sheet.finish(f"{run.experiment}: the time of a token", [], notes.of_times(run.rows, "per point"))


def _bar(each: TokenTime, name: str, at: int) -> Mark:
    return Mark(at=at, value=each.parts[name], style=list(PARTS).index(name), state=marks.state(each.row))


def _panel(each: TokenTime) -> str:
    return each.name if each.row.point.devices > 1 else "one device"
