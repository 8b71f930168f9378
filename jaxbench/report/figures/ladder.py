# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers added one by one: the speed-up after each rung over the first rung, and the factor of each rung alone."""

from __future__ import annotations

from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.intervals import UNKNOWN, Estimate
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, bar_axis, entitle, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/ladder",)
CAPTION = (
    "Each rung includes the rungs above it. Bars: throughput divided by the first rung's. In parentheses: throughput "
    "divided by that of the rung before. The axis is logarithmic: compare the ends of the bars, not their lengths."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws a panel per strategy, scaling and device count. None when nothing was measured."""
    compared = [place for place in run.places if any(arm.speedup.known for arm in place.arms)]
    if not compared:
        return None
    sheet = Sheet(len(compared))
    for axes, place in zip(sheet.panels[:, 0], compared, strict=True):
        _panel(axes, place)
        sheet.names(axes, [short(arm.label, 32) for arm in place.arms])
        entitle(axes, place.name if len(compared) > 1 else "")
    entitle(sheet.panels[-1, 0], x="speed-up over the first rung")
    what = "rung: speed-up over the rung before it, with its 95 % confidence interval; ?: it contains 1"
    return sheet.finish(f"{run.experiment}: what each rung gains", notes=[what, *places.remarks(compared)])


def factors(place: ArmGroup) -> list[Estimate]:
    """Speed-up of each rung over the one before; UNKNOWN for the first rung and next to a rung without times."""
    speedups = [UNKNOWN]
    for before, arm in zip(place.arms, place.arms[1:], strict=False):
        speedups.append(place.speedup(arm, before) if before.believed and arm.believed else UNKNOWN)
    return speedups


def _panel(axes: Axes, place: ArmGroup) -> None:
    made, missing = [], []
    for y, (arm, factor) in enumerate(zip(place.arms, factors(place), strict=True)):
        alone = factor.alone() if arm.point.oversubscribed else factor
        text = f"{arm.speedup.value:.2f} x" + (f"   {_factor(alone)}" if factor.known else "")
        made.append(Mark(at=y, value=arm.speedup, state=marks.state(arm), text=text))
        if not arm.speedup.known:
            missing.append((y, arm.point.status if arm.point.status in ("failed", "unsupported") else "not measured"))
    made = [mark for mark in made if mark.value.known]
    start = bar_axis(axes, made, room=0.42)
    marks.hbars(axes, made, thick=0.68, start=start)
    marks.unity(axes)
    for y, why in missing:
        marks.write(axes, start, y, why)


def _factor(value: Estimate) -> str:
    if not value.has_interval:
        return f"(rung {value.value:.2f} x)"
    sure = "" if value.lo > 1 or value.hi < 1 else " ?"
    return f"(rung {value.value:.2f} x [{value.lo:.2f}, {value.hi:.2f}]{sure})"
