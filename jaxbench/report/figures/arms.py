# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Forest plot for any sweep of levers: each arm's time divided by its baseline's, with its confidence interval."""

from __future__ import annotations

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.quantities import interval
from jaxbench.report.drawing import marks, notes, places
from jaxbench.report.drawing.kit import Figure, Mark, Sheet, entitle, log_axis, plain, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/arms", "levers/compiler")
CAPTION = (
    "Time per example divided by the baseline's. The baseline is the first arm of the same strategy, scaling and "
    "device count. Arms left of the dashed line are faster; if a confidence interval crosses the line, the comparison "
    "is inconclusive. The scale is logarithmic."
)
LIMIT = 40


def draw(run: LeverFindings) -> Figure | None:
    """Draws one panel. None when no arm can be compared."""
    known = [(place, number, arm) for number, place in enumerate(run.places) for arm in place.arms if arm.ratio.known]
    if not any(arm.row is not arm.baseline for _, _, arm in known):
        return None
    if run.view == "compiler":  # sets of compiler options have no natural order, so they are ranked by cost
        known.sort(key=lambda each: (each[1], each[2].row is not each[2].baseline, cost(each[2]).value))
    shown = known[:LIMIT]
    made = [Mark(at=y, value=cost(arm), state=marks.state(arm), style=style) for y, (_, style, arm) in enumerate(shown)]
    sheet = Sheet()
    axes = sheet.only()
    marks.dots(axes, made)
    marks.unity(axes)
    ends = [end for mark in made for end in (mark.drawn.lo, mark.end)]
    log_axis(axes, "x", show=plain, max_ticks=8, span=[*ends, 1.0])
    sheet.names(axes, [_name(place, arm, run) for place, _, arm in shown])
    for mark, (_, _, arm) in zip(made, shown, strict=True):
        marks.beside(axes, mark.at, _text(arm, mark.drawn))
    entitle(axes, x="time per example over the baseline's")
    remarks = [*notes.rest(len(shown), len(known), "arms, the first"), *places.remarks(run.places)]
    return sheet.finish(f"{run.experiment}: what each setting costs", places.handles(run.places), remarks)


def cost(arm: ArmResult) -> Estimate:
    """Time per example divided by the baseline's."""
    return arm.ratio.times(arm.baseline.point.examples / arm.point.examples)


def _text(arm: ArmResult, value: Estimate) -> str:
    if arm.row is arm.baseline:
        return "baseline"
    return interval(value, "{:.2f}".format) + ("  inconclusive" if arm.verdict == "cannot tell" else "")


def _name(place: ArmGroup, arm: ArmResult, run: LeverFindings) -> str:
    return short(", ".join(filter(None, [arm.label, place.name if len(run.places) > 1 else ""])), 46)
