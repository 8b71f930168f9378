# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Frozen parameters: how much time, FLOP and gradient traffic they save."""

from __future__ import annotations

import math

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.summary import gradient_bytes
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Figure, Sheet, bytes_tick, entitle, exact, plain, short, zero_axis
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/freeze",)
CAPTION = (
    "Step time and compiled FLOPs, each divided by the baseline's, and gradient bytes per step, over the share of "
    "frozen parameters. Gradient bytes are those that the compiled step reduces; on one device, 4 per trained "
    "parameter. Gradients still pass through frozen layers above trained ones."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws three panels. None when nothing was measured."""
    timed = [place for place in run.places if places.timed([place])]
    if not timed:
        return None
    sheet = Sheet(1, 3)
    for axes, value, title, show in zip(
        sheet.panels[0],
        (lambda arm: arm.ratio, _flops, lambda arm: exact(gradient(arm))),
        ("step time over baseline", "compiled FLOPs over baseline", "gradient bytes"),
        (plain, plain, bytes_tick),
        strict=True,
    ):
        for number, place in enumerate(timed):
            whole = most(place)
            made = marks.of(place.arms, lambda arm, whole=whole: 100 * frozen(arm, whole), value)  # type: ignore[misc]
            marks.line(axes, made, place=number)
        top = axes.dataLim.y1
        zero_axis(axes, "y", top if math.isfinite(top) else 0, show=show, room=1.1, max_ticks=7)
        axes.set_xlim(-5, 105)
        entitle(axes, title, x="parameters frozen, %")
        if show is not bytes_tick:
            marks.unity(axes, along="y")
    remarks = [*places.remarks(timed), _named(timed[0])]
    return sheet.finish(f"{run.experiment}: frozen parameters", places.handles(timed), remarks)


def most(place: ArmGroup) -> float:
    """Trained parameters of the arm that trains the most; NaN if no arm was compiled."""
    counts = [arm.point.record.passport.parameters for arm in place.arms if arm.point.record is not None]
    return float(max(counts, default=0)) or math.nan


def frozen(arm: ArmResult, whole: float) -> float:
    """Share (0 to 1) of `whole` parameters that this arm does not train; NaN if unknown."""
    return 1 - arm.point.record.passport.parameters / whole if arm.point.record is not None else math.nan


def gradient(arm: ArmResult) -> float:
    """Bytes of gradient per step and device; NaN if unknown."""
    record = arm.point.record
    if record is None:
        return math.nan
    return float(gradient_bytes(arm.row) or 0) if arm.point.devices > 1 else 4.0 * record.passport.parameters


def _flops(arm: ArmResult) -> Estimate:
    record, other = arm.point.record, arm.baseline.point.record
    if record is None or other is None:
        return UNKNOWN
    flops, base = record.passport.product_flops_per_step, other.passport.product_flops_per_step
    return exact(flops / base) if flops and base else UNKNOWN


def _named(place: ArmGroup) -> str:
    whole = most(place)
    shares = [f"{short(a.label, 30)} {100 * frozen(a, whole):.3g} %" for a in place.arms if a.timing.step_s.known]
    return f"frozen: {', '.join(shares)}"
