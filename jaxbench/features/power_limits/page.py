# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Runs at several power limits for their readers: the terminal, and power_limits.html with one figure.

Each limit is a run of its own, in the folder "400W" for 400 watts, and has its own page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from jaxbench.analysis.run_rows import Row
from jaxbench.core.store import MANIFEST, write_atomic
from jaxbench.digits import digits
from jaxbench.errors import UserError
from jaxbench.report import build, page, sentences
from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.canvas import plot
from jaxbench.report.drawing.shapes import Chart, Panel, on
from jaxbench.report.page import Page, Section
from jaxbench.report.pictures import pictured
from jaxbench.report.run_report import RunReport
from jaxbench.report.table import ALWAYS, TEXT, Column, Table, fill, milliseconds, ratio
from jaxbench.statistics.bootstrap import Estimate

PAGE, FIGURE = "power_limits.html", "power_limits"
DEFINITION = "energy"
BEST = "{name}: least energy at {limit:g} W, with {energy} of the energy and {time} of the time of {most:g} W."
UNKNOWN_ENERGY = "No energy is known, because no counter of a GPU could be read."


@dataclass(frozen=True, kw_only=True)
class Limited:
    """A point at one power limit. most: the same point at the highest limit. idle_w: what its GPUs drew before anything
    ran; NaN: unknown."""

    watts: float
    row: Row
    most: Row
    idle_w: float

    @property
    def time(self) -> float:
        """Its time over that at the highest limit."""
        return self.row.timing.step_s.value / self.most.timing.step_s.value

    @property
    def energy(self) -> float:
        """Its energy over that at the highest limit; NaN: unknown."""
        return self.row.energy.joules_per_step.value / self.most.energy.joules_per_step.value

    @property
    def idle_j(self) -> float:
        """The part of a step's energy that its GPUs would have used idle."""
        return self.idle_w * self.row.timing.step_s.value


def folder_of(watts: float) -> str:
    """The folder of a limit, in that of all of them."""
    return f"{watts:g}W"


def runs(folder: Path) -> dict[float, RunReport]:
    """The runs of a folder by their limit in watts, the lowest first; {} if it has none."""
    found = {}
    for path in folder.glob(f"*W/{MANIFEST}"):
        watts = path.parent.name.removesuffix("W")
        if watts.replace(".", "", 1).isdigit() and isinstance(report := build.find(path.parent), RunReport):
            found[float(watts)] = report
    return dict(sorted(found.items()))


def lines(reports: Mapping[float, RunReport]) -> list[Limited]:
    """Every point that was timed at the highest limit, at each limit."""
    most = {row.point_id: row for row in reports[max(reports)].rows if row.timing.step_s.known}
    return [
        Limited(watts=watts, row=row, most=most[name], idle_w=_idle_w(row, report))
        for name in most
        for watts, report in reports.items()
        for row in report.rows
        if row.point_id == name and row.timing.step_s.known
    ]


def _idle_w(row: Row, report: RunReport) -> float:
    """The idle power of the GPUs that a point uses."""
    used = {device.device for each in row.point.rounds[:1] for device in each.power[0]} if row.energy.known else set()
    workers = report.manifest.get("workers", {}).values()
    read = {name: [each["idle_w"][name] for each in workers if name in each.get("idle_w", {})] for name in used}
    return math.fsum(float(np.median(watts)) for watts in read.values()) if read and all(read.values()) else math.nan


def headlines(points: Sequence[Limited]) -> list[str]:
    """The limit with the least energy for each point."""
    known = [each for each in points if math.isfinite(each.energy)]
    if not known:
        return [UNKNOWN_ENERGY]
    names, most = dict.fromkeys(each.row.point_id for each in known), max(each.watts for each in known)
    best = [min((each for each in known if each.row.point_id == name), key=lambda each: each.energy) for name in names]
    return [
        BEST.format(
            name=each.row.point_id, limit=each.watts, most=most, energy=f"{each.energy:.2f}", time=f"{each.time:.2f}"
        )
        for each in best
    ]


def table(points: Sequence[Limited]) -> Table:
    def alone(value: Callable[[Limited], float]) -> Callable[[Limited], Estimate]:
        return lambda line: Estimate(value=value(line))

    columns = (
        Column("point", "row.point_id", kind=TEXT, terminal=ALWAYS),
        Column("limit, W", "watts", digits, terminal=ALWAYS),
        Column("ms per step", "row.timing.step_s", milliseconds, terminal=ALWAYS),
        Column("time", alone(lambda line: line.time), ratio, terminal=4),
        Column("J per step", "row.energy.joules_per_step", _joules_text, terminal=ALWAYS),
        Column("energy", alone(lambda line: line.energy), ratio, terminal=5),
        Column("of it idle, J", lambda line: _finite_or_none(line.idle_j), digits, terminal=3),
        Column("W", lambda line: _finite_or_none(line.row.energy.power_w), digits, terminal=2),
        Column("MHz", lambda line: _finite_or_none(line.row.energy.sm_mhz), digits, terminal=1),
    )
    note = "time, energy: over those at the highest limit, without an interval, because the runs follow each other."
    return fill(columns, points, group=lambda line: line.row.point_id, note=note)


def _joules_text(estimate: Estimate) -> str:
    between = f" [{digits(estimate.lo)}, {digits(estimate.hi)}]" if estimate.has_interval else ""
    return digits(estimate.value) + between


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


@plot(FIGURE)
def draw_limits(points: Sequence[Limited], *, title: str) -> Chart | None:
    """Energy of a step against its time, one mark for each power limit, joined in their order. Down and to the left is
    better. Bars: 95 % confidence interval of each run."""
    known = [each for each in points if each.row.energy.joules_per_step.known]
    if not known:
        return None
    names = list(dict.fromkeys(each.row.point_id for each in known))
    of_point = [[each for each in known if each.row.point_id == name] for name in names]
    layers = [on(_curve, mine, number) for number, mine in enumerate(of_point)]
    panel = Panel(x="ms per step", y="joules per step", layers=layers)
    handles = [marks.handle(number, canvas.short(name)) for number, name in enumerate(names)]
    return Chart(title=title, panels=[[panel]], heights=2.8, handles=handles)


def _curve(axes: canvas.Axes, mine: Sequence[Limited], number: int) -> None:
    """The limits of one point, with their names."""
    colour, shape = marks.series_style(number)
    at = [(1e3 * each.row.timing.step_s.value, each.row.energy.joules_per_step.value) for each in mine]
    axes.plot(*zip(*at, strict=True), color=colour, marker=shape, markersize=4, linewidth=0.8)
    for each, (time, joules) in zip(mine, at, strict=True):
        step, energy = each.row.timing.step_s, each.row.energy.joules_per_step
        if step.has_interval:
            axes.plot([1e3 * step.lo, 1e3 * step.hi], [joules, joules], color=colour, linewidth=0.6)
        if energy.has_interval:
            axes.plot([time, time], [energy.lo, energy.hi], color=colour, linewidth=0.6)
        axes.annotate(
            f"{each.watts:g} W", (time, joules), xytext=(4, 4), textcoords="offset points", fontsize=6, color=marks.GREY
        )


def write(folder: Path, console: Console) -> None:
    """Prints the table, and writes power_limits.html and figures/power_limits. Raises UserError if it cannot write."""
    reports = runs(folder)
    points, first = lines(reports), reports[max(reports)]
    title = f"{first.experiment}: time and energy at {len(reports)} power limits"
    files, pictures = pictured(FIGURE, partial(draw_limits, points, title=title), draw_limits.caption)
    idle = sentences.idle_power(first.manifest)
    made = Page(
        name="power limits",
        heading=title,
        headlines=headlines(points),
        pictures=pictures,
        table=table(points),
        sections=[Section("Idle power", idle, definition=DEFINITION)] if idle else [],
        links=[(f"{folder_of(watts)}/report.html", f"{watts:g} W") for watts in reports],
        definition=DEFINITION,
        made_from="the run of each limit",
    )
    try:
        canvas.write(files, folder / "figures", FIGURE)
        write_atomic(folder / PAGE, page.render(made))
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error
    page.show(made, console)
    console.print(f"\nPage and figure: {folder / PAGE}", highlight=False, soft_wrap=True)
