# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Recomputation: the memory that it saves against the time that it costs, and how memory grows with depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.arms import Arm, Place
from jaxbench.analysis.intervals import Estimate
from jaxbench.analysis.remat_law import Law
from jaxbench.catalog import published
from jaxbench.report.figures import canvas, marks
from jaxbench.report.figures.axes import log_axis, plain
from jaxbench.report.figures.canvas import DASHES, GREY, short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Left: scratch memory of the compiled step, most of it activations, against step time; lower left is better, and "
    "the line joins the policies that no other beats in both. Middle: extra step time over keeping everything, beside "
    "published costs. Right, where several depths were compiled: scratch memory over the number of blocks."
)
KORTHIKANTI, CHEN = "korthikanti_table4", "chen2016_claims"
_NAMES = {
    "full_recompute": "full (22B)",
    "selective_recompute": "selective (22B)",
    "selective_plus_sequence": "selective +\nsequence par.",
}


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels, three with a law of depth. None when nothing was measured."""
    places = material.places
    if not any(arm.timing.step_s.known for arm in material.arms):
        return None
    figure = canvas.blank()
    widths = [1.1, 1, 1] if material.laws else [1, 1]
    panels = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    _pareto(panels[0], places)
    rows = _overheads(panels[1], places)
    if material.laws:
        draw_law(panels[2], material.laws)
    lines = canvas.legend(
        figure, marks.legend_handles(places, lines=True), title=f"{material.experiment}: memory saved against time paid"
    )
    sources = f"{published.read(KORTHIKANTI).project}, Table 4; {published.read(CHEN).project}"
    notes = [*marks.remarks(places), f"hollow, dashed: published by others, not measured here. {sources}"]
    if material.laws:
        notes.append("scratch memory also holds gradients, which grow with n under every policy; ±: 95 % of the fit")
    below = canvas.footnotes(figure, notes)
    figure.set_figheight(max(2.3, 0.9 + 0.25 * rows * max(1.0, 0.55 * len(places))) + 0.16 * lines + 0.12 * below)
    return figure


def _pareto(axes: Axes, places: Sequence[Place]) -> None:
    for number, place in enumerate(places):
        arms = [arm for arm in place.arms if arm.timing.step_s.known and math.isfinite(arm.temp_bytes)]
        for arm in arms:
            marks.line(axes, [arm], _megabytes, _milliseconds, look=number)
        best = front(arms)
        for arm in arms if number == 0 else ():
            _name(axes, arm, below=arm in best)
        axes.plot(
            [_megabytes(a) for a in best], [_milliseconds(a).value for a in best], color=marks.colour(number),
            linewidth=0.7, linestyle="--", zorder=1,
        )  # fmt: skip
    axes.margins(x=0.22, y=0.2)
    axes.set_xlim(left=0)
    axes.grid(True)
    axes.set_xlabel("scratch memory per device, MB")
    axes.set_title("step time, ms", loc="left")


def _name(axes: Axes, arm: Arm, *, below: bool) -> None:
    """On the outer side of the front: below it, or above what it beats."""
    value = _milliseconds(arm)
    whole = value.has_interval and not arm.point.oversubscribed
    at, y = (value.lo if below else value.hi) if whole else value.value, -4 if below else 4
    said = axes.annotate(
        short(arm.label, 16), (_megabytes(arm), at), xytext=(0, y), textcoords="offset points", fontsize=6.5,
        ha="center", va="top" if below else "bottom",
    )  # fmt: skip
    said.set_in_layout(False)


def front(arms: Sequence[Arm]) -> list[Arm]:
    """The arms that no other beats in both scratch memory and median time, by memory."""
    found: list[Arm] = []
    for arm in sorted((a for a in arms if a.believed), key=lambda a: (a.temp_bytes, a.timing.step_s.value)):
        if not found or arm.timing.step_s.value < found[-1].timing.step_s.value:
            found.append(arm)
    return found


def _megabytes(arm: Arm) -> float:
    return arm.temp_bytes / 1e6


def _milliseconds(arm: Arm) -> Estimate:
    return arm.timing.step_s.times(1e3)


def overhead(arm: Arm) -> Estimate:
    """Extra time over the baseline in percent."""
    value = arm.ratio
    return Estimate(value=100 * (value.value - 1), lo=100 * (value.lo - 1), hi=100 * (value.hi - 1))


def others() -> list[tuple[str, float]]:
    """(name, percent) as published."""
    frame = published.read(KORTHIKANTI).frame.set_index("experiment")["overhead_pct"]
    claim = published.read(CHEN).frame.set_index("quantity")["value"]["extra_runtime"]
    return [*((name, float(frame[id])) for id, name in _NAMES.items()), ("sqrt(n), Chen", float(claim))]


def _overheads(axes: Axes, places: Sequence[Place]) -> int:
    """Ours above, published below. Returns how many rows."""
    names = [name for name in marks.labels(places) if name != places[0].arms[0].label]
    height = 0.74 / len(places)
    high = low = 0.0
    for number, place in enumerate(places):
        for arm in place.arms:
            value = overhead(arm)
            if arm.label not in names or not value.known:
                continue
            y = names.index(arm.label) + (number - (len(places) - 1) / 2) * height
            marks.bar(axes, arm, y, value, f"{value.value:+.0f} %", height=height, look=number)
            low, high = (min(low, value.value), max(high, value.value, value.hi if value.has_interval else 0))
    theirs = others()
    count = len(names)
    marks.published_bars(axes, [(count + i, value, f"{value:.0f} %") for i, (_, value) in enumerate(theirs)])
    top = max(high, *(value for _, value in theirs))
    axes.set_xlim(1.15 * low, 1.3 * top)
    marks.rows_axis(axes, [*(short(name, 16) for name in names), *(name for name, _ in theirs)])
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_title(f"extra time over {short(places[0].arms[0].label, 12)}, %", loc="left")
    return count + len(theirs)


def draw_law(axes: Axes, laws: Sequence[Law]) -> None:
    """Scratch memory over blocks with its fitted slope, and guides of slope 1 and 1/2."""
    for number, law in enumerate(laws):
        n, size = np.array(law.sizes).T
        label = f"{law.remat}: n^{law.slope.value:.2f}" if law.slope.known else law.remat
        if law.slope.has_interval:
            label += f" ± {law.slope.hi - law.slope.value:.2f}"
        look: Any = dict(color=marks.colour(number), marker=marks.marker(number))
        axes.plot(n, size, **look, linestyle="none", label=label, zorder=3)
        if law.slope.known:
            axes.plot(
                n, np.exp(law.intercept) * n**law.slope.value, color=marks.colour(number), linewidth=0.9, zorder=2
            )
    _guides(axes, laws)
    log_axis(axes, "x", base=2, show=plain, most=6)
    log_axis(axes, "y", show=marks.bytes_tick, most=5)
    axes.set_xlabel("blocks")
    axes.set_title("scratch memory", loc="left")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** (0.04 + 0.11 * len(laws)))
    axes.legend(loc="upper left", fontsize=6.5, frameon=False, borderpad=0.1, handletextpad=0.2)


def _guides(axes: Axes, laws: Sequence[Law]) -> None:
    """From below all points, so that they can be compared with and are not taken for fits."""
    every = [size for law in laws for size in law.sizes]
    first, last = min(n for n, _ in every), max(n for n, _ in every)
    if first == last:
        return
    start = 0.6 * min(size for _, size in every)
    for slope, name in ((1.0, "n"), (0.5, "√n")):
        end = start * (last / first) ** slope
        axes.plot([first, last], [start, end], **DASHES, zorder=1)
        axes.annotate(
            name, (last, end), xytext=(2, 0), textcoords="offset points", fontsize=6.5, color=GREY, va="center"
        )
