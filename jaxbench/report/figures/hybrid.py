# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Meshes of the same devices in a row, the best first: time per step, memory, and what a device receives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.figures import bars, canvas, marks, spread_lines
from jaxbench.report.figures.axes import plain
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.marks import exact
from jaxbench.report.figures.spread_material import SpreadMaterial, fact, sent_bytes

CAPTION = (
    "Each row is a way to lay the same devices out in a mesh. Left: time per step. Middle: memory of one device by the "
    "compiler's count, its part of the model's state and all else. Right: the results of all collectives of a step on "
    "one device."
)
_ROOM = 1.3  # of an axis, over its longest bar: for the number beside it


def draw(material: SpreadMaterial) -> Figure | None:
    """Three panels that share their rows. None when no mesh was compiled."""
    rows = ranked(material.measured)
    if not rows:
        return None
    figure = canvas.blank()
    panels = figure.subplots(1, 3, squeeze=False, width_ratios=[1, 1.15, 1])[0]
    _lying(panels[0], rows, [row.timing.step_s.times(1e3) for row in rows], title="time per step, ms")
    _memory(panels[1], rows)
    received = [exact(sent_bytes(row) / 1e6) for row in rows]
    _lying(panels[2], rows, received, title="received per step, MB", exactly=True)
    for axes in panels:
        marks.rows_axis(axes, [name(row, rows) for row in rows], first=axes is panels[0])
    handles = [bars.handle(1, "model and optimizer state"), bars.handle(4, "all else, most of it scratch")]
    counts = sorted({row.point.devices for row in rows})
    title = f"{material.experiment}: meshes of {', '.join(map(devices, counts))}"
    lines = canvas.legend(figure, handles, title=title)
    below = canvas.footnotes(figure, [*_remarks(rows), *failures(material)])
    figure.set_figheight(max(1.9, 0.55 + 0.19 * len(rows)) + 0.16 * lines + 0.12 * below)
    return figure


def ranked(rows: Sequence[Row]) -> list[Row]:
    """The fastest first, those without a time last; by received bytes where no time says anything about speed."""
    by_bytes = not trusted(rows)

    def key(row: Row) -> tuple[bool, float]:
        value = sent_bytes(row) if by_bytes else row.timing.step_s.value
        return math.isnan(value), value

    return sorted(rows, key=key)


def trusted(rows: Sequence[Row]) -> bool:
    """Whether any time was measured on no more devices than cores."""
    return any(row.timing.step_s.known and not row.point.oversubscribed for row in rows)


def mesh(row: Row) -> str:
    """ "data=2, tensor=2"; the strategy where it has a mesh of its own."""
    said = row.point.levers.get("mesh", "strategy")
    return row.point.strategy if said == "strategy" else said.replace(",", ", ")


def name(row: Row, rows: Sequence[Row]) -> str:
    """The mesh, with whatever else tells it from the others of the figure."""
    own = mesh(row)
    same = [other for other in rows if other is not row and mesh(other) == own]
    if any(other.point.devices != row.point.devices for other in same):
        own = f"{own} on {row.point.devices}"
    names = [lever for lever in row.point.levers if lever != "mesh"]
    told = [lever for lever in names if any(o.point.levers.get(lever) != row.point.levers[lever] for o in same)]
    return short(", ".join([own, *(row.point.levers[lever] for lever in told)]), 34)


def failures(material: SpreadMaterial) -> list[str]:
    """One footnote on the meshes that could not be compiled, each with the first words of its reason."""
    failed = [row for row in material.rows if row.point.record is None]
    said = []
    for row in failed:
        reason = row.point.failure.reason if row.point.failure is not None else row.point.reason
        said.append(f"{mesh(row)}: {_words(reason) or 'not measured'}")
    return [f"not drawn: {'; '.join(dict.fromkeys(said))}"] if said else []


def _words(reason: str, limit: int = 90) -> str:
    """The beginning of a sentence, cut between words."""
    flat = " ".join(reason.split())
    return flat if len(flat) <= limit else f"{flat[:limit].rsplit(' ', 1)[0]} …"


def _memory(axes: Axes, rows: Sequence[Row]) -> None:
    """State first, the rest beside it, and their sum as a number."""
    top = 0.0
    for place, row in enumerate(rows):
        peak, state = _peak(row) / 1e6, fact(row, "state_bytes") / 1e6
        if not math.isfinite(peak):
            continue
        top = max(top, peak)
        if not row.believed:
            marks.cross(axes, peak, place)
            continue
        held = min(state, peak) if math.isfinite(state) else 0.0
        axes.barh([place], [held], height=0.7, **bars.style(1))
        axes.barh([place], [peak - held], left=held, height=0.7, **bars.style(4))
        marks.write(axes, peak, place, f"{peak:.3g}")
    _axis(axes, top, "memory per device, MB")


def _peak(row: Row) -> float:
    record = row.point.record
    found = record.passport.peak_bytes if record is not None else None
    return math.nan if found is None else float(found)


def _lying(axes: Axes, rows: Sequence[Row], values: Sequence[Estimate], *, title: str, exactly: bool = False) -> None:
    """A bar a row. exactly: the values do not depend on speed, so no bar is hollow."""
    top = 0.0
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        if not value.known:
            continue
        hollow = row.point.oversubscribed and not exactly
        whole = value.has_interval and not hollow
        end = value.hi if whole else value.value
        top = max(top, end)
        if not row.believed:
            marks.cross(axes, value.value, place)
            continue
        ends: Any = [[value.value - value.lo], [value.hi - value.value]] if whole else None
        error: Any = dict(ecolor="black", elinewidth=0.8, capsize=1.8, capthick=0.8)
        axes.barh([place], [value.value], height=0.7, xerr=ends, error_kw=error, **bars.style(0, hollow=hollow))
        marks.write(axes, end, place, f"{value.value:.3g}")
    _axis(axes, top, title)


def _axis(axes: Axes, top: float, title: str) -> None:
    axes.set_xlim(0, _ROOM * top or 1)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: plain(value))
    if not top:
        axes.set_xticks([])
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=canvas.GREY)
    axes.set_title(title, loc="left")


def _remarks(rows: Sequence[Row]) -> list[str]:
    notes = spread_lines.remarks(rows, rows)
    if trusted(rows):
        notes.append("sorted by time per step")
    else:
        notes.append("sorted by bytes received: on more devices than cores no time says which mesh is faster")
    notes.append("memory and bytes are exact, so they are filled also on more devices than cores")
    shares = {round(100 * (1 - fact(row, "busy_share"))) for row in rows if math.isfinite(fact(row, "busy_share"))}
    if shares:
        low, high = min(shares), max(shares)
        between = f"{low} %" if low == high else f"{low} to {high} %"
        notes.append(f"meshes with stages leave {between} of their schedule idle")
    return notes
