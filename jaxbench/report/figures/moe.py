# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A mixture of experts over devices: state per device, and traffic by kind of collective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbench.analysis.scaling import Row
from jaxbench.report.drawing import families, marks, notes
from jaxbench.report.drawing.axes import bytes_tick, devices_axis, empty, entitle, log_axis, zero_axis
from jaxbench.report.drawing.families import fact, received
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, exact, short
from jaxbench.report.findings import Findings

VIEWS = ("training/moe", "levers/moe")
CAPTION = (
    "Left: model and optimizer state on one device; grey: divided evenly. Right: bytes that one device receives per "
    "step, by kind of collective (the size of the results, including the device's own part). Either tokens travel to "
    "their experts and back (all-to-all), or parameters travel to the tokens (all-gather)."
)
KINDS = ("all-to-all", "all-gather", "reduce-scatter", "all-reduce", "collective-permute")


def draw(run: Findings) -> Figure | None:
    """Draws two panels. None when nothing was compiled."""
    rows = families.compiled(run.rows)
    if not rows:
        return None
    groups = families.families(rows)
    several = {name: [row for row in members if row.point.devices > 1] for name, members in groups.items()}
    kinds = _kinds([row for members in several.values() for row in members])
    sheet = Sheet(1, 2, widths=[1, max(1.0, min(2.2, 0.25 * sum(map(len, several.values()))))], heights=2.4)
    _state(sheet.panels[0, 0], groups)
    _received(sheet.panels[0, 1], several, kinds)
    bars = [marks.bar_handle(style, kind) for kind, style in kinds.items()]
    handles = [*families.handles(groups), marks.guide_handle("divided evenly"), *bars]
    remarks = [notes.EXACT, *_dropped(groups), *([notes.WRONG] if any(not row.believed for row in rows) else [])]
    if any(row.point.devices == 1 for row in rows):
        remarks.append("on one device nothing is received")
    return sheet.finish(f"{run.experiment}: a mixture of experts over devices", handles, remarks)


def _kinds(rows: Sequence[Row]) -> dict[str, int]:
    """The style of each kind of collective in the rows. A known kind has the same style in every run."""
    seen = {kind for row in rows for kind, size in received(row).items() if size}
    every = [*KINDS, *sorted(seen - set(KINDS))]
    return {kind: style for style, kind in enumerate(every, start=2) if kind in seen}  # the left panel's lines use 0, 1


def _state(axes: Axes, groups: Mapping[str, Sequence[Row]]) -> None:
    rows = [row for members in groups.values() for row in members]
    counts = families.counts(rows)
    families.lines(axes, groups, lambda row: exact(fact(row, "state_bytes")), exact=True)
    whole = [fact(row, "state_bytes") for row in rows if row.point.devices == counts[0]]
    whole = [size for size in whole if math.isfinite(size)]
    if whole and len(counts) > 1:
        marks.guide(axes, counts, [max(whole) * counts[0] / count for count in counts])
    log_axis(axes, "y", show=bytes_tick, max_ticks=5)
    if not any(math.isfinite(fact(row, "state_bytes")) for row in rows):
        empty(axes, "state was not measured")
    devices_axis(axes, counts)
    entitle(axes, "state per device")


def _received(axes: Axes, groups: Mapping[str, Sequence[Row]], kinds: Mapping[str, int]) -> None:
    """Draws a stacked bar per point, with a gap between families."""
    at, top, ticks = 0.0, 0.0, {}
    for family, rows in groups.items():
        for place, row in enumerate(rows):
            top = max(top, _stack(axes, at + place, row, kinds))
            ticks[at + place] = str(row.point.devices)
        if rows:
            below: Any = dict(xycoords=("data", "axes fraction"), xytext=(0, -18), ha="center", va="top")
            marks.write(axes, at + (len(rows) - 1) / 2, 0, short(family, 24), size=7.5, **below)
            at += len(rows) + 0.7
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    zero_axis(axes, "y", top)
    axes.set_xlabel("devices", labelpad=15)
    entitle(axes, "received by a device in a step, MB")
    if not ticks:
        empty(axes, "one device only:\nnothing is received")


def _stack(axes: Axes, at: float, row: Row, kinds: Mapping[str, int]) -> float:
    """Draws one stacked bar with its height written above it. Returns the height in MB."""
    sizes = received(row)
    total = sum(sizes.values()) / 1e6
    if not row.believed:
        marks.cross(axes, at, total)
        return total
    parts = [(sizes[kind] / 1e6, style) for kind, style in kinds.items() if sizes.get(kind)]
    marks.write(axes, at, marks.stack(axes, at, parts, thick=0.8, upright=True), f"{total:.3g}", above=True)
    return total


def _dropped(groups: Mapping[str, Sequence[Row]]) -> list[str]:
    """A note on the share of tokens dropped because their expert was full: per family, over all device counts."""
    ranges = []
    for family, rows in groups.items():
        shares = [100 * fact(row, "dropped") for row in rows if math.isfinite(fact(row, "dropped")) and row.believed]
        if shares:
            low, high = (f"{value:.1f}" for value in (min(shares), max(shares)))
            ranges.append(f"{short(family, 24)} {low} %" if low == high else f"{short(family, 24)} {low} to {high} %")
    return [f"tokens dropped because their expert was full: {', '.join(ranges)}"] if ranges else []
