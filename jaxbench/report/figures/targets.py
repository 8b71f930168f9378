# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Steps and seconds to a target accuracy over batch size and devices, with the knee and the gradient noise scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbench.analysis.targets import Curve, SeedGroup
from jaxbench.report.drawing import marks
from jaxbench.report.drawing.kit import (
    GREY,
    Axes,
    Figure,
    Mark,
    Sheet,
    devices_axis,
    entitle,
    log_axis,
    plain,
    seconds_tick,
    si,
)

VIEWS = ()  # the page of trainings to a target draws it
NAME = "targets"
CAPTION = (
    "Left: steps to the target over the batch. Dashed: twice the batch in half the steps. The dotted line is the knee, "
    "where twice the least number of steps is needed; the shaded band is the measured gradient noise scale, which "
    "should predict it. Middle: seconds of these steps, by devices. Right: seconds at the fastest batch, which stands "
    "at the mark, over devices. Arrows: not reached within the budget, so the mark is a lower limit."
)


def draw(curves: Sequence[Curve], *, title: str) -> Figure | None:
    """A row of panels for each model. None when nothing was trained."""
    models = list(dict.fromkeys(curve.model for curve in curves))
    if not models:
        return None
    sheet = Sheet(len(models), 3, widths=[1.25, 1.15, 0.8])
    rules = list(dict.fromkeys(curve.rule for curve in curves))
    counts = sorted({count for curve in curves for count in curve.counts})
    for row, model in zip(sheet.panels, models, strict=True):
        of_model = [curve for curve in curves if curve.model == model]
        _steps(row[0], of_model, rules)
        _seconds(row[1], of_model[0], {n: len(rules) + i for i, n in enumerate(counts)})
        _devices(row[2], of_model, rules)
        entitle(row[0], f"{model}: steps to the target", x="global batch")
        entitle(row[1], f"seconds ({of_model[0].rule})", x="global batch")
        entitle(row[2], "seconds, fastest batch", x="devices")
    handles = [marks.handle(place, f"rule {rule}") for place, rule in enumerate(rules)]
    handles += [marks.handle(len(rules) + i, f"{n} device{'s' if n > 1 else ''}") for i, n in enumerate(counts)]
    seeds = max(len(place.trained) for curve in curves for place in curve.places)
    what = f"geometric mean of {seeds} seeds, with the 95 % interval of the mean" if seeds > 1 else "one seed"
    note = f"marks: {what}; seconds by the trainings' own clocks; left, further device counts are dashed"
    return sheet.finish(title, [*handles, marks.guide_handle("1/batch, or 1/devices")], [note])


def _steps(axes: Axes, curves: Sequence[Curve], rules: Sequence[str]) -> None:
    for curve in curves:
        place = rules.index(curve.rule)
        for devices in curve.counts:
            between = "-" if devices == curve.counts[0] else marks.DASHED
            _line(axes, curve.on(devices), lambda one: one.steps, place=place, between=between)
    drawn = [place for place in curves[0].on(curves[0].counts[0]) if not place.censored]
    batches = np.array([place.batch for curve in curves for place in curve.places], float)
    if drawn:
        first = drawn[0]
        lowest = min(place.steps.value for place in curves[0].places)
        ends = np.array([first.batch, min(batches.max(), 2 * first.batch * first.steps.value / lowest)])
        marks.guide(axes, ends, first.steps.value * first.batch / ends)
    for number, curve in enumerate(curve for curve in curves if curve.knee.known):
        colour, _ = marks.series_style(rules.index(curve.rule))
        axes.axvline(curve.knee.value, color=colour, linewidth=0.9, linestyle=":", zorder=1)
        text = f"knee {curve.knee.value:.3g}"
        high: dict[str, Any] = dict(xycoords=("data", "axes fraction"), xytext=(3, 0), color=colour, va="top")
        marks.write(axes, curve.knee.value, 0.99 - 0.09 * number, text, **high)
    scale = next((curve.noise_scale for curve in curves if curve.noise_scale.known), None)
    if scale is not None:
        low, high_end = (scale.lo, scale.hi) if scale.has_interval else (scale.value / 1.05, scale.value * 1.05)
        axes.axvspan(low, high_end, color=GREY, alpha=0.18, linewidth=0, zorder=0)
        left = scale.value**2 < batches.min() * batches.max()  # of the axis: the right has room for the text
        beside: dict[str, Any] = dict(xycoords=("data", "axes fraction"), color=GREY, va="bottom")
        beside |= dict(ha="left", xytext=(5, 2)) if left else dict(ha="right", xytext=(-5, 2))
        marks.write(axes, scale.value, 0.0, f"noise scale {scale.value:.3g}", **beside)
    log_axis(axes, "y", show=si, max_ticks=6)
    _batch_axis(axes, batches)


def _seconds(axes: Axes, curve: Curve, styles: Mapping[int, int]) -> None:
    """styles: by device count."""
    for devices in curve.counts:
        _line(axes, curve.on(devices), lambda one: one.seconds, place=styles[devices])
    log_axis(axes, "y", show=seconds_tick, max_ticks=6)
    _batch_axis(axes, np.array([place.batch for place in curve.places], float))


def _devices(axes: Axes, curves: Sequence[Curve], rules: Sequence[str]) -> None:
    counts = sorted({count for curve in curves for count in curve.counts})
    for curve in curves:
        best = [place for count in curve.counts if (place := curve.fastest(count))]
        _line(axes, best, lambda one: one.seconds, at=lambda one: one.devices, place=rules.index(curve.rule))
        for place in best:
            marks.write(axes, place.devices, place.seconds.value, f"{place.batch}")
        if best and curve is curves[0]:
            ends = np.array([best[0].devices, counts[-1]], float)
            marks.guide(axes, ends, best[0].seconds.value * best[0].devices / ends)
    devices_axis(axes, counts)
    log_axis(axes, "y", show=seconds_tick, max_ticks=5)


def _line(
    axes: Axes,
    places: Sequence[SeedGroup],
    value: Any,
    *,
    place: int,
    between: Any = "-",
    at: Any = lambda one: one.batch,
) -> None:
    """The places of one series; censored ones hollow, with an arrow upward."""
    known = [one for one in places if value(one).known]
    made = [Mark(at=at(one), value=value(one), state="hollow" if one.censored else "solid") for one in known]
    marks.line(axes, [mark for mark in made if mark.state == "solid"], place=place, between=between)
    marks.line(axes, [mark for mark in made if mark.state == "hollow"], place=place, between="none")
    colour, _ = marks.series_style(place)
    for one in known:
        if one.censored:
            marks.write(axes, at(one), value(one).value, "\N{UPWARDS ARROW}", above=True, size=9, color=colour)


def _batch_axis(axes: Axes, batches: np.ndarray) -> None:
    log_axis(axes, "x", base=2, show=plain, max_ticks=6, span=batches.tolist())
