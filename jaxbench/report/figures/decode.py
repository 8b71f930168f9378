# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Figures of generation: throughput against speed for a user, and what the time of a token divides into."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from jaxbench.analysis.decoding import PARTS, TokenTime
from jaxbench.analysis.quantities import devices, seconds
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import seconds_tick, si
from jaxbench.report.drawing.canvas import plot, short
from jaxbench.report.drawing.marks import Mark
from jaxbench.report.drawing.shapes import Chart, Log, Panel, on
from jaxbench.report.run_report import RunReport
from jaxbench.statistics.bootstrap import UNKNOWN, Estimate

_ROWS = list(reversed(PARTS))
_AXES = ("tokens_per_s_user", "tokens_per_s_device")


@plot("frontier", views=("decode",), order=1, title="throughput against speed")
def draw_frontier(run: RunReport) -> Chart | None:
    """Tokens per second of a device against tokens per second of a user, one point for each batch, with 95 % confidence
    intervals of both. A larger batch goes up and to the left. A point above and to the right of another one is better
    for both."""
    families: dict[tuple[str, int], list[Row]] = {}
    alone = next((row.point.strategy for row in run.rows if row.point.devices == 1), "")
    for row in run.rows:
        # On one device all strategies are one program.
        if row.usable and not row.point.oversubscribed and (row.point.devices > 1 or row.point.strategy == alone):
            families.setdefault((row.point.strategy, row.point.devices), []).append(row)
    if not families:
        return None
    panel = Panel(
        x="tokens/s of a user",
        y="tokens/s of a device",
        layers=[on(_line, family, number) for number, family in enumerate(families.values())],
        axes=[Log("x", si, max_ticks=6), Log("y", si, max_ticks=6)],
    )
    return Chart(
        panels=[[panel]],
        handles=[marks.handle(at, _titled(name, count)) for at, (name, count) in enumerate(families)],
        remarks=["numbers at points: requests of the batch", *notes.of_times(run.rows, "per point")],
    )


def _titled(strategy: str, count: int) -> str:
    """On one device all strategies are one program."""
    return devices(1) if count == 1 else f"{short(strategy)}, {devices(count)}"


def _line(axes: Axes, family: Sequence[Row], number: int) -> None:
    """Draws one family over batch sizes, with intervals in both directions."""
    colour, shape = marks.series_style(number)
    family = sorted(family, key=lambda row: row.point.global_batch)
    across, up = ([row.derived.get(name, UNKNOWN) for row in family] for name in _AXES)
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


def _errors(values: list[Estimate]) -> list[list[float]] | None:
    """Lengths of the arms of error bars; None without intervals."""
    if not all(each.has_interval for each in values):
        return None
    return [[each.value - each.lo for each in values], [each.hi - each.value for each in values]]


@plot("token_time", views=("decode",), order=2, title="the time of a token")
def draw_token_time(run: RunReport) -> Chart | None:
    """What the time of a token divides into, from programs that leave out a part, measured in the same rounds, with
    95 % confidence intervals. Weights: the products alone. Cache: attention to it, and writing it. Smaller products:
    norms, activations and sums between them. Message latency: all-reduces of one number. Message bytes: what their
    payload adds. Starting: what a call costs more than a step inside a scan. Unexplained: the rest."""
    # On one device all strategies are one program.
    shown = {_panel_title(each): each for each in reversed(run.token_times)}
    times = [*reversed(shown.values())]
    if not times:
        return None
    panels = [
        Panel(
            title=_titled(each.row.point.strategy, each.row.point.devices),
            x=f"of {seconds(each.token_s.value)}, batch {each.row.point.global_batch}",
            layers=[on(marks.hbars, [_bar_of(each, name, at) for at, name in enumerate(_ROWS) if name in each.parts])],
            axes=[_signed],
            names=_ROWS,
            named=each is times[0],
        )
        for each in times
    ]
    return Chart(panels=[panels], heights=2.4, sharey=True, remarks=notes.of_times(run.rows, "per point"))


def _signed(axes: Axes) -> None:
    """Seconds on both sides of 0."""
    axes.axvline(0, color="#333333", linewidth=0.6)
    axes.xaxis.set_major_formatter(lambda value, _: seconds_tick(value) if value >= 0 else f"-{seconds_tick(-value)}")
    axes.locator_params(axis="x", nbins=4)


def _bar_of(each: TokenTime, name: str, at: int) -> Mark:
    return Mark(at=at, value=each.parts[name], style=list(PARTS).index(name), state=marks.state(each.row))


def _panel_title(each: TokenTime) -> str:
    return each.name if each.row.point.devices > 1 else "one device"
