# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rematerialization: memory saved against extra time, and how memory grows with depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbench.analysis.arms import ArmGroup, ArmResult
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.memory_by_depth import Law
from jaxbench.catalog import published
from jaxbench.report.drawing import marks, notes, places
from jaxbench.report.drawing.kit import Axes, Figure, Line2D, Sheet, bytes_tick, entitle, log_axis, plain, short
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/remat",)
CAPTION = (
    "Left: scratch memory of the compiled step (mostly activations) and step time; lower left is better, and the line "
    "joins the Pareto-optimal policies. Middle: extra step time relative to saving all activations, with published "
    "costs. Right, if several depths were compiled: scratch memory over the number of blocks."
)
KORTHIKANTI, CHEN = "korthikanti_table4", "chen2016_claims"
_NAMES = {
    "full_recompute": "full (22B)",
    "selective_recompute": "selective (22B)",
    "selective_plus_sequence": "selective + seq.",
}


def draw(run: LeverFindings) -> Figure | None:
    """Draws two panels, or three if several depths were compiled. None when nothing was measured."""
    if not places.timed(run.places):
        return None
    widths = [1.1, 1, 1] if run.laws else [1, 1]
    sheet = Sheet(1, len(widths), widths=widths, heights=2.3)
    panels = sheet.panels[0]
    _pareto(panels[0], run.places)
    sheet.names(panels[1], _overheads(panels[1], run.places), beside=len(run.places))
    sources = f"{published.read(KORTHIKANTI).project}, Table 4; {published.read(CHEN).project}"
    remarks = [*places.remarks(run.places), notes.cited(sources)]
    if run.laws:
        draw_law(panels[2], run.laws)
        remarks.append("scratch memory includes gradients, which grow with n under every policy; ±: 95 % of the fit")
    return sheet.finish(f"{run.experiment}: memory saved and extra time", places.handles(run.places), remarks)


def _pareto(axes: Axes, everywhere: Sequence[ArmGroup]) -> None:
    for number, place in enumerate(everywhere):
        arms = [arm for arm in place.arms if arm.timing.step_s.known and math.isfinite(arm.temp_bytes)]
        for arm in arms:
            marks.line(axes, marks.of([arm], _megabytes, _milliseconds), place=number)
        best = front(arms)
        for arm in arms if number == 0 else ():
            _name(axes, arm, below=arm in best)
        x, y = [_megabytes(arm) for arm in best], [_milliseconds(arm).value for arm in best]
        axes.plot(x, y, color=marks.series_style(number)[0], linewidth=0.7, linestyle="--", zorder=1)
    axes.margins(x=0.22, y=0.2)
    axes.set_xlim(left=0)
    entitle(axes, "step time, ms", x="scratch memory per device, MB")


def _name(axes: Axes, arm: ArmResult, *, below: bool) -> None:
    """Writes an arm's name clear of the front's line: below an arm on the front, above any other."""
    value = _milliseconds(arm)
    whole = value.has_interval and not arm.point.oversubscribed
    at = (value.lo if below else value.hi) if whole else value.value
    side: Any = dict(xytext=(0, -4), va="top") if below else dict(xytext=(0, 4), va="bottom")
    marks.write(axes, _megabytes(arm), at, short(arm.label, 16), ha="center", **side)


def front(arms: Sequence[ArmResult]) -> list[ArmResult]:
    """Arms on the Pareto front of scratch memory and median time, sorted by memory."""
    best: list[ArmResult] = []
    for arm in sorted((a for a in arms if a.believed), key=lambda a: (a.temp_bytes, a.timing.step_s.value)):
        if not best or arm.timing.step_s.value < best[-1].timing.step_s.value:
            best.append(arm)
    return best


def _megabytes(arm: ArmResult) -> float:
    return arm.temp_bytes / 1e6


def _milliseconds(arm: ArmResult) -> Estimate:
    return arm.timing.step_s.times(1e3)


def overhead(arm: ArmResult) -> Estimate:
    """Extra time relative to the baseline, in percent."""
    value = arm.ratio
    return Estimate(value=100 * (value.value - 1), lo=100 * (value.lo - 1), hi=100 * (value.hi - 1))


def others() -> list[tuple[str, float]]:
    """(name, extra time in percent) as published."""
    frame = published.read(KORTHIKANTI).frame.set_index("experiment")["overhead_pct"]
    claim = published.read(CHEN).frame.set_index("quantity")["value"]["extra_runtime"]
    return [*((name, float(frame[id])) for id, name in _NAMES.items()), ("sqrt(n), Chen", float(claim))]


def _overheads(axes: Axes, everywhere: Sequence[ArmGroup]) -> list[str]:
    """Draws measured extra times above, published ones below. Returns the names of the rows."""
    base = short(everywhere[0].arms[0].label, 12)
    names = [name for name in places.labels(everywhere) if name != everywhere[0].arms[0].label]
    made = places.rows(everywhere, overhead, lambda value: f"{value.value:+.0f} %", names=names)
    marks.hbars(axes, made, thick=0.68 / len(everywhere))
    theirs = others()
    marks.published_bars(axes, [(len(names) + i, value, f"{value:.0f} %") for i, (_, value) in enumerate(theirs)])
    low, high = min([0.0, *(mark.value.value for mark in made)]), max([mark.end for mark in made], default=0.0)
    axes.set_xlim(1.15 * low, 1.3 * max(high, *(value for _, value in theirs)))
    axes.axvline(0, color="black", linewidth=0.6)
    entitle(axes, f"extra time over {base}, %")
    return [*(short(name, 16) for name in names), *(name for name, _ in theirs)]


def draw_law(axes: Axes, laws: Sequence[Law]) -> None:
    """Draws scratch memory over blocks with its fitted slope, and guides of slope 1 and 1/2."""
    for number, law in enumerate(laws):
        n, size = np.array(law.sizes).T
        label = f"{law.remat}: n^{law.slope.value:.2f}" if law.slope.known else law.remat
        if law.slope.has_interval:
            label += f" ± {law.slope.hi - law.slope.value:.2f}"
        colour, marker = marks.series_style(number)
        axes.plot(n, size, color=colour, marker=marker, linestyle="none", label=label, zorder=3)
        if law.slope.known:
            axes.plot(n, np.exp(law.intercept) * n**law.slope.value, color=colour, linewidth=0.9, zorder=2)
    fitted, guides = axes.lines[:], _guides(axes, laws)
    log_axis(axes, "x", base=2, show=plain, max_ticks=6)
    log_axis(axes, "y", show=bytes_tick, max_ticks=5)
    entitle(axes, "scratch memory", x="blocks")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** (0.04 + 0.11 * len(laws)))
    marks.end_labels(axes, guides, reach=1.15, size=6.5)
    axes.legend(
        handles=[line for line in fitted if line.get_linestyle() == "None"],
        loc="upper left",
        fontsize=6.5,
        frameon=False,
        borderpad=0.1,
        handletextpad=0.2,
    )


def _guides(axes: Axes, laws: Sequence[Law]) -> list[Line2D]:
    """Draws the guides below all points, so that they are not taken for fits."""
    every = [size for law in laws for size in law.sizes]
    first, last = min(n for n, _ in every), max(n for n, _ in every)
    if first == last:
        return []
    start = 0.6 * min(size for _, size in every)
    ends = [(name, start * (last / first) ** slope) for name, slope in (("n", 1.0), ("√n", 0.5))]
    return [marks.guide(axes, [first, last], [start, end], label=name) for name, end in ends]
