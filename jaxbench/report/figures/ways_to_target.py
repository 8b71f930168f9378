# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training to a target on the processor and on the accelerator, beside a published pair."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.quantities import seconds
from jaxbench.analysis.ways_to_target import Way
from jaxbench.catalog import published
from jaxbench.report.case_findings import CaseFindings
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, entitle, log_axis, plain, seconds_tick, short

VIEWS = ("cases/versus",)
ORDER = 2
CAPTION = (
    "Left: seconds from the first parameters to the target accuracy, compiled before; mean over seeds with its 95 % "
    "interval. Right: how many times as fast as NumPy on one core, seed by seed. Below, hollow: what texts published "
    "of a classifier of texts, on hardware that they do not name; another model on other data, as published."
)


def draw(run: CaseFindings) -> Figure | None:
    """None when no training was measured."""
    ways, pairs = run.ways, published.texts_on_both()
    if not ways:
        return None
    sheet = Sheet(1, 2)
    left, right = sheet.panels[0]
    times, ratios = _marks(ways)
    marks.dots(left, times)
    marks.dots(right, ratios)
    for at, pair in enumerate(pairs, start=len(ways)):
        _published(left, right, pair, at)
    drawn = [mark.value.value for mark in times] + [s for pair in pairs for s in (pair.cpu_s, pair.gpu_s)]
    log_axis(left, "x", show=seconds_tick, max_ticks=5, span=[min(drawn) / 2, 2.5 * max(drawn)])
    log_axis(right, "x", show=plain, max_ticks=5, span=[0.1, 100.0])
    marks.unity(right)
    entitle(left, "time to the target", x="seconds")
    entitle(right, "beside NumPy", x="times as fast as NumPy on one core")
    labels = [f"{way.job}: {way.name}" for way in ways] + [f"{pair.job}, published" for pair in pairs]
    for axes in (left, right):
        sheet.names(axes, [short(label, 34) for label in labels], shown=axes is left)
    missed = ["small grey x: a seed did not reach the target, so the time is at least that"]
    remarks = missed * any(way.reached < way.seeds for way in ways)
    cited = notes.cited("The texts that this project grew from, which name neither hardware nor year of it")
    return sheet.finish(f"{run.experiment}: training to a target", [], [*remarks, cited])


def _marks(ways: Sequence[Way]) -> tuple[list[Mark], list[Mark]]:
    """(times, ratios) of the ways, in their order."""
    jobs = list(dict.fromkeys(way.job for way in ways))
    times, ratios = [], []
    for at, way in enumerate(ways):
        style = jobs.index(way.job)
        state = "solid" if way.reached == way.seeds else "refused"
        times.append(Mark(at=at, value=way.time, state=state, style=style, text=seconds(way.time.value)))
        if way.speedup.known:
            ratios.append(Mark(at=at, value=way.speedup, style=style, text=f"{way.speedup.value:.2g} x"))
    return times, ratios


def _published(left: Axes, right: Axes, pair: published.PublishedTimes, at: int) -> None:
    marks.published(left, [pair.cpu_s, pair.gpu_s], [at, at], shape="D")
    for where, time in (("CPU", pair.cpu_s), ("GPU", pair.gpu_s)):
        marks.write(left, time, at, f"{where} {seconds(time)}", above=True)
    marks.published(right, [pair.cpu_s / pair.gpu_s], [at], shape="D", joined=False)
    marks.write(right, pair.cpu_s / pair.gpu_s, at, f"{pair.cpu_s / pair.gpu_s:.2g} x")
