# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: the time cost and the memory saving of more micro-batches per step."""

from __future__ import annotations

from jaxbench.analysis.arms import ArmResult
from jaxbench.levers import ACCUMULATE
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Figure, Sheet, bytes_tick, entitle, exact, log_axis, plain, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/accumulate",)
CAPTION = (
    "The global batch is the same at every point; a step splits it into more, smaller micro-batches. Left: step time "
    "divided by the baseline's. Right: compiled memory per device: total, and scratch memory alone."
)


def draw(run: LeverFindings) -> Figure | None:
    """Two panels. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    sheet = Sheet(1, 2)
    left, right = sheet.panels[0]
    places.line(left, run.places, micro_batches, lambda arm: arm.ratio)
    places.line(right, run.places, micro_batches, lambda arm: exact(arm.peak_bytes))
    places.line(right, run.places, micro_batches, lambda arm: exact(arm.temp_bytes), between=marks.DASHED)
    marks.unity(left, along="y")
    log_axis(right, "y", show=bytes_tick, max_ticks=6)
    for axes, title in ((left, f"step time over that of {short(run.arms[0].label, 12)}"), (right, "memory per device")):
        log_axis(axes, "x", base=2, show=plain)
        entitle(axes, title, x="micro-batches per step")
    kinds = [marks.style_handle("all memory"), marks.style_handle("scratch", linestyle=marks.DASHED)]
    handles = [*places.handles(run.places), *kinds]
    return sheet.finish(f"{run.experiment}: gradient accumulation", handles, places.remarks(run.places))


def micro_batches(arm: ArmResult) -> float:
    return float(ACCUMULATE.of(arm.point.levers))
