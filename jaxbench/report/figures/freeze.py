# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Frozen parameters: what not training a part of the model saves in time, in FLOPs and in gradient bytes."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.analysis.summary import gradient_bytes
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial
from jaxbench.report.figures.marks import bytes_tick, exact

CAPTION = (
    "Over the share of parameters that is not trained: step time over the baseline's, the compiler's count of FLOPs "
    "over the baseline's, and the bytes of gradient per step: those that the compiled step reduces, or on one device 4 "
    "for each trained parameter. A gradient still passes backward through frozen layers above trained ones."
)


def draw(material: LeverMaterial) -> Figure | None:
    """Three panels. None when nothing was measured."""
    places = [place for place in material.places if any(arm.timing.step_s.known for arm in place.arms)]
    if not places:
        return None
    figure = canvas.blank()
    panels = figure.subplots(1, 3, squeeze=False)[0]
    for number, place in enumerate(places):
        whole = most(place)
        for axes, value in zip(panels, (_ratio, _flops, lambda arm: exact(gradient(arm))), strict=True):
            marks.line(axes, place.arms, lambda arm, whole=whole: 100 * frozen(arm, whole), value, look=number)  # type: ignore[misc]
    for axes, title in zip(
        panels, ("step time over the baseline", "compiler's FLOPs over it", "gradient bytes"), strict=True
    ):
        axes.set_title(title, loc="left")
        axes.set_xlabel("parameters frozen, %")
        axes.set_xlim(-5, 105)
        axes.set_ylim(0, axes.dataLim.y1 * 1.1 if math.isfinite(axes.dataLim.y1) and axes.dataLim.y1 > 0 else 1)
        axes.grid(True)
    panels[2].yaxis.set_major_formatter(lambda value, _: bytes_tick(value))
    for axes in panels[:2]:
        marks.unity(axes, vertical=False)
    title = f"{material.experiment}: frozen parameters"
    lines = canvas.legend(figure, marks.legend_handles(places, lines=True), title=title)
    below = canvas.footnotes(figure, [*marks.remarks(places), _named(places)])
    figure.set_figheight(2.1 + 0.16 * lines + 0.12 * below)
    return figure


def most(place: Place) -> float:
    """The trained parameters of the arm that trains most of them; NaN: none was compiled."""
    counts = [arm.point.record.passport.parameters for arm in place.arms if arm.point.record is not None]
    return float(max(counts, default=0)) or math.nan


def frozen(arm: Arm, whole: float) -> float:
    """The share of `whole` trained parameters that this arm does not train; NaN: unknown."""
    return 1 - arm.point.record.passport.parameters / whole if arm.point.record is not None else math.nan


def gradient(arm: Arm) -> float:
    """Bytes of gradient per step and device; NaN: unknown."""
    record = arm.point.record
    if record is None:
        return math.nan
    return float(gradient_bytes(arm.row) or 0) if arm.point.devices > 1 else 4.0 * record.passport.parameters


def _ratio(arm: Arm) -> Estimate:
    return arm.ratio


def _flops(arm: Arm) -> Estimate:
    record, other = arm.point.record, arm.baseline.point.record
    if record is None or other is None:
        return UNKNOWN
    mine, base = record.passport.product_flops_per_step, other.passport.product_flops_per_step
    return exact(mine / base) if mine and base else UNKNOWN


def _named(places: list[Place]) -> str:
    whole = most(places[0])
    shares = [f"{short(a.label, 30)} {100 * frozen(a, whole):.3g} %" for a in places[0].arms if a.timing.step_s.known]
    return f"frozen: {', '.join(shares)}"
