# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Points that were only compiled: memory per device against a device's capacity, and bytes sent per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbench.analysis.compiled import gigabytes
from jaxbench.records.schema import COLLECTIVES, CompiledRecord
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, short
from jaxbench.report.findings import Findings

VIEWS = ("compiled",)
CAPTION = (
    "Compiled for hardware that this machine does not have; nothing was run. Left: memory that a step needs on one "
    "device; dashed: a device's capacity. Right: bytes that one device sends per step, by kind of collective. A cross "
    "marks a point with other communication than expected."
)
LIMIT = 48  # most points that fit in the figure


def draw(run: Findings) -> Figure | None:
    """Draws two panels with a bar per point. None when nothing compiled."""
    compiled = [(row, row.record) for row in run.rows if row.record is not None]
    if not compiled:
        return None
    shown = compiled[:LIMIT]
    sent = [_sent(record) for _, record in shown]
    kinds = [kind for kind in COLLECTIVES if any(kind in each for each in sent)]
    sheet = Sheet(1, 2)
    memory, wire = sheet.panels[0]
    _memory(memory, [(record.peak_bytes or 0) / 1e9 for _, record in shown], shown[0][0].memory_bytes / 1e9)
    for place, ((row, _), each) in enumerate(zip(shown, sent, strict=True)):
        end = marks.stack(wire, place, [(each.get(kind, 0), style) for style, kind in enumerate(kinds, start=1)])
        if row.right is False:
            marks.cross(wire, end, place)
    entitle(wire, x="sent by a device in a step, MB")
    for axes in (memory, wire):
        sheet.names(axes, [short(row.name, 44) for row, _ in shown], shown=axes is memory)
    handles: list[Any] = [marks.bar_handle(style, kind) for style, kind in enumerate(["memory per device", *kinds])]
    return sheet.finish(run.title, handles, notes.rest(len(shown), len(compiled), "points, the first"))


def _sent(record: CompiledRecord) -> dict[str, float]:
    """MB that one device sends per step, by kind of collective."""
    sizes: dict[str, float] = {}
    for each in record.collectives:
        sizes[each.kind] = sizes.get(each.kind, 0) + each.wire_bytes / 1e6
    return sizes


def _memory(axes: Axes, needed: Sequence[float], has: float) -> None:
    for place, size in enumerate(needed):
        marks.stack(axes, place, [(size, 0)])
    label = "memory per device, GB"
    if max(needed) > has / 50:
        marks.unity(axes, at=has)
        text = f"a device has {gigabytes(1e9 * has)}"
        axes.annotate(text, (has, 1.01), xycoords=("data", "axes fraction"), fontsize=6, ha="center")
    else:
        label += f" (a device has {gigabytes(1e9 * has)})"
    entitle(axes, x=label)
