# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Input pipelines: the throughput of each kind of input, and the share of the step spent on input."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from jaxbench.analysis.arms import ArmResult
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.lever_headline import bound
from jaxbench.analysis.quantities import interval
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Figure, Sheet, entitle, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/inputs",)
CAPTION = (
    "Left: throughput relative to data that are already on the devices. Right: the share of the step spent on input, "
    "1 - T(device) / T(kind), with its confidence interval, and the share of time in which the step's thread waited "
    "for its next batch. If the first is larger, input also costs time without waiting, by copies or shared cores."
)
OWN = "device"


def draw(run: LeverFindings) -> Figure | None:
    """Draws two panels. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    sheet = Sheet(1, 2, widths=[1.1, 1])
    left, right = sheet.panels[0]
    base = short(run.arms[0].label, 14)
    places.hbars(left, run.places, lambda arm: arm.speedup, partial(interval, show="{:.2f}".format), room=1.45)
    marks.unity(left)
    entitle(left, f"throughput over {base}")
    places.dots(right, run.places, share, lambda value: f"{value.value:z.0f} %")
    waits = [
        (100 * arm.outcome("waited_share"), y + 0.24)
        for arm, _, y in places.beside(run.places, places.labels(run.places), apart=0.5)
        if math.isfinite(arm.outcome("waited_share"))
    ]
    style: Any = dict(marker="|", color="black", markersize=7, linestyle="none")
    if waits:
        right.plot(*zip(*waits, strict=True), **style)
    marks.unity(right, at=0.0)
    right.set_xlim(min(-5.0, right.dataLim.x0 - 3), max(20.0, 1.25 * right.dataLim.x1))
    entitle(right, "input-bound share of the step, %")
    for axes in (left, right):
        sheet.names(axes, places.ticks(run.places), beside=len(run.places), shown=axes is left)
    seen = [marks.style_handle("measured waiting", **style)] if waits else []
    remarks = [] if base == OWN else [f"the baseline is {base}, not data on the device: shares are relative to it"]
    title = f"{run.experiment}: is the step waiting for data?"
    return sheet.finish(title, [*places.handles(run.places), *seen], [*remarks, *places.remarks(run.places)])


def share(arm: ArmResult) -> Estimate:
    """Percent of the step spent on input; UNKNOWN for the baseline."""
    return UNKNOWN if arm.row is arm.baseline or not arm.ratio.known else bound(arm).times(100)
