# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training to a target accuracy on the CPU and on the accelerator."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.ways_to_target import Way
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.kit import Figure, Mark, Sheet, entitle, log_axis, plain, seconds_tick, short

VIEWS = ("cases/versus",)
ORDER = 2
CAPTION = (
    "Left: time from initialization to the target accuracy, without compilation; mean over seeds with its 95 % "
    "confidence interval. Right: speed-up over NumPy on one core, paired by seed."
)


def draw(run: CaseFindings) -> Figure | None:
    """Draws two panels. None when no training was measured."""
    ways = run.ways
    if not ways:
        return None
    sheet = Sheet(1, 2)
    left, right = sheet.panels[0]
    times, ratios = _marks(ways)
    marks.dots(left, times)
    marks.dots(right, ratios)
    drawn = [end for mark in times for end in (mark.value.value, mark.end)]
    log_axis(left, "x", show=seconds_tick, max_ticks=5, span=[min(drawn) / 2, 2.5 * max(drawn)])
    log_axis(right, "x", show=plain, max_ticks=5, span=[0.1, 10.0])
    marks.unity(right)
    entitle(left, "time to the target")
    entitle(right, "speed-up over NumPy on one core")
    labels = [f"{way.job.removeprefix('train_')}: {way.name}" for way in ways]
    for axes in (left, right):
        sheet.names(axes, [short(label, 34) for label in labels], shown=axes is left)
    missed = ["small grey x: a seed did not reach the target, so the true time is longer"]
    remarks = missed * any(way.reached < way.seeds for way in ways)
    n = f"{notes.BARS} of the mean; {notes.n_of([(way.seeds,) for way in ways])}"
    return sheet.finish(f"{run.experiment}: training to a target", [], [n, *remarks])


def _marks(ways: Sequence[Way]) -> tuple[list[Mark], list[Mark]]:
    """(marks of times, marks of speed-ups) of the ways, in their order."""
    jobs = list(dict.fromkeys(way.job for way in ways))
    times, ratios = [], []
    for at, way in enumerate(ways):
        style = jobs.index(way.job)
        state = "solid" if way.reached == way.seeds else "refused"
        times.append(Mark(at=at, value=way.time, state=state, style=style, text=seconds(way.time.value)))
        if way.speedup.known:
            ratios.append(Mark(at=at, value=way.speedup, style=style, text=f"{way.speedup.value:.2g} x"))
    return times, ratios
