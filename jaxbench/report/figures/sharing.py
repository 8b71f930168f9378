# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Concurrent trainings on the same devices: total throughput, time of each training, and fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxbench.analysis import sharing
from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import Estimate
from jaxbench.levers import TRAININGS
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Axes, Figure, Sheet, entitle, log_axis, plain
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/sharing",)
CAPTION = (
    "Left: throughput of all trainings together, divided by the throughput when they run one after the other. Middle: "
    "step time divided by that of a training alone; small dots are the single trainings, the dashed line is taking "
    "turns. Right: Jain's fairness index: 1 if all are equally fast; dashed: its least possible value."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws three panels. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    lines = _lines(run.places)
    sheet = Sheet(1, 3)
    rate, time, fair = sheet.panels[0]
    places.line(rate, lines, trainings, lambda arm: arm.speedup)
    marks.unity(rate, along="y")
    places.line(time, lines, trainings, lambda arm: arm.ratio)
    for number, place in enumerate(lines):
        for arm in place.arms:
            _each(time, arm, number)
    counts = sorted({trainings(arm) for arm in run.arms})
    marks.guide(time, counts, counts)
    places.line(fair, lines, trainings, fairness)
    marks.guide(fair, counts, [1 / count for count in counts])
    fair.set_ylim(0, 1.08)
    for axes, title in ((rate, "throughput over one after the other"), (time, "time over alone"), (fair, "fairness")):
        log_axis(axes, "x", base=2, show=plain)
        entitle(axes, title, x="trainings at once")
    handles = [*places.handles(lines), marks.guide_handle("taking turns; least fairness")]
    return sheet.finish(f"{run.experiment}: trainings that share devices", handles, places.remarks(run.places))


def _lines(found: Sequence[ArmGroup]) -> list[ArmGroup]:
    """Splits each arm group in two: trainings that take turns, and trainings that share a GPU through MPS."""
    made: list[ArmGroup] = []
    for place in found:
        for mps in (False, True):
            if arms := [arm for arm in place.arms if TRAININGS.of(arm.point.levers).mps == mps]:
                name = ", ".join(filter(None, (place.name, "with MPS" if mps else "without MPS")))
                made.append(replace(place, name=name, arms=arms))
    return made if len(made) > len(found) else list(found)


def trainings(arm: ArmResult) -> float:
    return float(TRAININGS.of(arm.point.levers).at_once)


def fairness(arm: ArmResult) -> Estimate:
    """Jain's index of an arm; a training alone has 1."""
    found = sharing.of(arm.row)
    return found.fairness if found is not None else Estimate(value=1.0)


def _each(axes: Axes, arm: ArmResult, number: int) -> None:
    """Draws a small dot per training, if there are several."""
    found = sharing.of(arm.row)
    if found is not None and arm.ratio.known:
        x, y = [trainings(arm)] * len(found.relative), [arm.ratio.value * one for one in found.relative]
        axes.plot(x, y, ".", color=marks.series_style(number)[0], markersize=3, linestyle="none", alpha=0.6)
