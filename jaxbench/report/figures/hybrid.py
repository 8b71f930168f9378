# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Different meshes of the same devices, the best first: time per step, memory, and bytes received."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from jaxbench.analysis.headline import devices
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks
from jaxbench.report.drawing.families import fact, received_bytes
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, empty, entitle, exact, short, zero_axis
from jaxbench.report.findings import Findings

VIEWS = ("training/hybrid", "levers/hybrid")
CAPTION = (
    "Each row is one mesh of the same devices. Left: time per step. Middle: compiled memory of one device, split into "
    "its shard of the model's state and everything else. Right: bytes received, the size of all collective results of "
    "a step on one device."
)


def draw(run: Findings) -> Figure | None:
    """Draws three panels that share their rows. None when no mesh was compiled."""
    rows = ranked(families.compiled(run.rows))
    if not rows:
        return None
    sheet = Sheet(1, 3, widths=[1, 1.15, 1])
    time, memory, received = sheet.panels[0]
    _bars(time, rows, [row.timing.step_s.times(1e3) for row in rows], title="time per step, ms")
    _memory(memory, rows)
    sizes = [exact(received_bytes(row) / 1e6) for row in rows]
    _bars(received, rows, sizes, title="received per step, MB", exactly=True)
    for axes in sheet.panels[0]:
        sheet.names(axes, [name(row, rows) for row in rows], shown=axes is time)
    handles = [marks.bar_handle(1, "model and optimizer state"), marks.bar_handle(4, "everything else, mostly scratch")]
    title = f"{run.experiment}: meshes of {', '.join(map(devices, families.counts(rows)))}"
    return sheet.finish(title, handles, [*_remarks(rows), *failures(run.rows)])


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Rows sorted by time, rows without a time last; by received bytes if all times are oversubscribed."""
    by_bytes = not trusted(rows)

    def key(row: Row) -> tuple[bool, float]:
        value = received_bytes(row) if by_bytes else row.timing.step_s.value
        return math.isnan(value), value

    return sorted(rows, key=key)


def trusted(rows: Sequence[Row]) -> bool:
    """Whether any time was measured without oversubscription (on at most as many devices as cores)."""
    return any(row.timing.step_s.known and not row.point.oversubscribed for row in rows)


def mesh(row: Row) -> str:
    """Such as "data=2, tensor=2"; the strategy's name if the strategy chose the mesh."""
    value = row.point.levers.get("mesh", "strategy")
    return row.point.strategy if value == "strategy" else value.replace(",", ", ")


def name(row: Row, rows: Sequence[Row]) -> str:
    """The mesh, and any settings that distinguish it from other rows with the same mesh."""
    label = mesh(row)
    same = [other for other in rows if other is not row and mesh(other) == label]
    if any(other.point.devices != row.point.devices for other in same):
        label = f"{label} on {row.point.devices}"
    levers = {lever: value for lever, value in row.point.levers.items() if lever != "mesh"}
    differing = [value for lever, value in levers.items() if any(o.point.levers.get(lever) != value for o in same)]
    return short(", ".join([label, *differing]), 34)


def failures(rows: Sequence[Row]) -> list[str]:
    """One footnote on the meshes that did not compile, each with the first words of the reason."""
    reasons = []
    for row in (row for row in rows if row.point.record is None):
        reason = row.point.failure.reason if row.point.failure is not None else row.point.reason
        reasons.append(f"{mesh(row)}: {textwrap.shorten(reason, 91, placeholder=' …') or 'not measured'}")
    return [f"not drawn: {'; '.join(dict.fromkeys(reasons))}"] if reasons else []


def _memory(axes: Axes, rows: Sequence[Row]) -> None:
    """Draws stacked bars of state and everything else, with their sum as a number."""
    top = 0.0
    for place, row in enumerate(rows):
        peak, state = families.passport(row, "peak_bytes") / 1e6, fact(row, "state_bytes") / 1e6
        if not math.isfinite(peak):
            continue
        top = max(top, peak)
        if not row.believed:
            marks.cross(axes, peak, place)
            continue
        shard = min(state, peak) if math.isfinite(state) else 0.0
        marks.write(axes, marks.stack(axes, place, [(shard, 1), (peak - shard, 4)]), place, f"{peak:.3g}")
    _finish(axes, top, "memory per device, MB")


def _bars(axes: Axes, rows: Sequence[Row], values: Sequence[Estimate], *, title: str, exactly: bool = False) -> None:
    """Draws a bar per row. exactly: the values do not depend on speed, so no bar is hollow."""
    made = [
        Mark(at=place, value=value, state=marks.state(row, exact=exactly), text=f"{value.value:.3g}")
        for place, (row, value) in enumerate(zip(rows, values, strict=True)) if value.known
    ]  # fmt: skip
    marks.hbars(axes, made)
    _finish(axes, max((mark.end for mark in made), default=0.0), title)


def _finish(axes: Axes, top: float, title: str) -> None:
    zero_axis(axes, "x", top, room=1.3, max_ticks=4)
    entitle(axes, title)
    if not top:
        empty(axes, "not measured", which="x")


def _remarks(rows: Sequence[Row]) -> list[str]:
    notes = families.remarks(rows, rows)
    if trusted(rows):
        notes.append("sorted by time per step")
    else:
        notes.append("sorted by bytes received, because oversubscribed times do not show which mesh is faster")
    notes.append("memory and bytes are exact, so their marks are filled even when oversubscribed")
    shares = {round(100 * (1 - fact(row, "busy_share"))) for row in rows if math.isfinite(fact(row, "busy_share"))}
    if shares:
        low, high = min(shares), max(shares)
        between = f"{low} %" if low == high else f"{low} to {high} %"
        notes.append(f"meshes with stages leave {between} of their schedule idle")
    return notes
