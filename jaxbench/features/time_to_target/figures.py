# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of trainings to a target: steps and seconds over batch sizes and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

from jaxbench.digits import digits
from jaxbench.features.time_to_target.analysis import Curve, SeedGroup
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import devices_axis, entitle, log_axis, plain, seconds_tick, si
from jaxbench.report.drawing.canvas import Sheet, plot
from jaxbench.report.drawing.marks import GREY, Mark

_BETWEEN: tuple[LineStyleType, ...] = ("-", (0, (6, 1.5, 1, 1.5)), ":", marks.DASHED)  # one per learning-rate rule


@plot("targets")
def draw_targets(curves: Sequence[Curve], *, title: str) -> Figure | None:
    """Left: steps to the target over the global batch. Dashed: twice the batch in half the steps. Dotted: the knee, the
    batch that needs twice the least number of steps. Shaded: the measured gradient noise scale, which should predict
    the knee. Middle: time of these steps. Right: time at the fastest batch (written at the mark), over devices. Colour
    shows the device count, line style the learning-rate rule. Arrows: target not reached within the budget, so the mark
    is a lower limit."""
    models = list(dict.fromkeys(curve.model for curve in curves))
    if not models:
        return None
    sheet = Sheet(len(models), 3, widths=[1.25, 1.15, 0.8])
    styles = {rule: _BETWEEN[i % len(_BETWEEN)] for i, rule in enumerate(dict.fromkeys(one.rule for one in curves))}
    counts = sorted({count for curve in curves for count in curve.counts})
    for row, model in zip(sheet.panels, models, strict=True):
        of_model = [curve for curve in curves if curve.model == model]
        _steps(row[0], of_model, styles, counts)
        _seconds(row[1], of_model, styles, counts)
        _targets_devices(row[2], of_model, styles, counts)
        entitle(row[0], f"{model}: steps to the target", x="global batch")
        entitle(row[1], "time to the target", x="global batch")
        entitle(row[2], "time, fastest batch", x="devices")
    handles = [marks.handle(place, f"{n} device{'s' if n > 1 else ''}") for place, n in enumerate(counts)]
    rules = [marks.style_handle(f"learning rate: {rule}", color=GREY, linestyle=s) for rule, s in styles.items()]
    seeds = [(len(place.trained),) for curve in curves for place in curve.places]
    what = "geometric mean over seeds"
    what += f"; {notes.BARS} of the mean; {notes.n_of(seeds)}" if max(seeds) > (1,) else "; n = 1 seed"
    said = [f"marks: {what}; time by the trainings' own clocks"]
    if any(place.censored for curve in curves for place in curve.places):
        said.append("hollow with an arrow: a lower limit, as a seed did not reach the target")
    return sheet.finish(title, [*handles, *rules, marks.guide_handle("1/batch, or 1/devices")], said)


def _steps(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]) -> None:
    for curve in curves:
        for devices in curve.counts:
            place, between = counts.index(devices), styles[curve.rule]
            _targets_line(axes, curve.on(devices), lambda one: one.steps, place=place, between=between)
    # The guide starts at the smallest batch, where doubling the batch still halves the steps if it ever does.
    drawn = [place for place in curves[0].on(curves[0].counts[0]) if not place.censored]
    batches = np.array([place.batch for curve in curves for place in curve.places], float)
    if drawn:
        first = drawn[0]
        lowest = min(place.steps.value for place in curves[0].places)
        ends = np.array([first.batch, min(batches.max(), 2 * first.batch * first.steps.value / lowest)])
        marks.guide(axes, ends, first.steps.value * first.batch / ends)
    for number, curve in enumerate(curve for curve in curves if curve.knee.known):
        axes.axvline(curve.knee.value, color="black", linewidth=0.9, linestyle=":", zorder=1)
        text = f"knee {digits(curve.knee.value)}" + (f" ({curve.rule})" if len(curves) > 1 else "")
        # Each one lower than the one before, because knees of several rules may be close.
        high: marks.Style = dict(xycoords=("data", "axes fraction"), xytext=(3, 0), va="top")
        marks.write(axes, curve.knee.value, 0.99 - 0.09 * number, text, **high)
    scale = next((curve.noise_scale for curve in curves if curve.noise_scale.known), None)
    if scale is not None:
        # Without an interval a narrow band: a line would look like another knee.
        low, high_end = (scale.lo, scale.hi) if scale.has_interval else (scale.value / 1.05, scale.value * 1.05)
        axes.axvspan(low, high_end, color=GREY, alpha=0.18, linewidth=0, zorder=0)
        left = scale.value**2 < batches.min() * batches.max()  # in the axis's left half: the text goes to the right
        style: marks.Style = dict(xycoords=("data", "axes fraction"), color=GREY, va="bottom")
        style |= dict(ha="left", xytext=(5, 2)) if left else dict(ha="right", xytext=(-5, 2))
        marks.write(axes, scale.value, 0.0, f"noise scale {digits(scale.value)}", **style)
    log_axis(axes, "y", show=si, max_ticks=6)
    _batch_axis(axes, batches)


def _seconds(axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]) -> None:
    curve = curves[0]  # the times of the first rule only: those of several rules would cover each other
    for devices in curve.counts:
        of_count, between = curve.on(devices), styles[curve.rule]
        _targets_line(axes, of_count, lambda one: one.seconds, place=counts.index(devices), between=between)
    log_axis(axes, "y", show=seconds_tick, max_ticks=6)
    _batch_axis(axes, np.array([place.batch for place in curve.places], float))


def _targets_devices(
    axes: Axes, curves: Sequence[Curve], styles: Mapping[str, LineStyleType], counts: Sequence[int]
) -> None:
    for curve in curves:
        best = [place for count in curve.counts if (place := curve.fastest(count))]
        at, times = [place.devices for place in best], [place.seconds.value for place in best]
        # Grey, because the marks have the colours of their device counts.
        axes.plot(at, times, color=GREY, linestyle=styles[curve.rule], zorder=2)
        for place in best:
            _targets_line(
                axes, [place], lambda one: one.seconds, at=lambda one: one.devices, place=counts.index(place.devices)
            )
            marks.write(axes, place.devices, place.seconds.value, f"{place.batch}")
        if best and curve is curves[0]:
            ends = np.array([best[0].devices, max(curve.counts)], float)
            marks.guide(axes, ends, best[0].seconds.value * best[0].devices / ends)
    devices_axis(axes, sorted({count for curve in curves for count in curve.counts}))
    log_axis(axes, "y", show=seconds_tick, max_ticks=5)


def _targets_line(
    axes: Axes, places: Sequence[SeedGroup], value: Any, *, place: int, between: LineStyleType = "-",
    at: Any = lambda one: one.batch,
) -> None:  # fmt: skip
    """Draws one series; groups that missed the target are hollow, with an arrow upward."""
    known = [one for one in places if value(one).known]
    made = [Mark(at=at(one), value=value(one), state="hollow" if one.censored else "solid") for one in known]
    marks.line(axes, [mark for mark in made if mark.state == "solid"], place=place, between=between)
    # Not joined: a line through a lower limit would be a curve that nobody measured.
    marks.line(axes, [mark for mark in made if mark.state == "hollow"], place=place, between="none")
    colour, _ = marks.series_style(place)
    for one in known:
        if one.censored:
            marks.write(axes, at(one), value(one).value, "\N{UPWARDS ARROW}", above=True, size=9, color=colour)


def _batch_axis(axes: Axes, batches: np.ndarray) -> None:
    log_axis(axes, "x", base=2, show=plain, max_ticks=6, span=batches.tolist())
