# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a training step's time goes: forward, backward, update and communication, stacked to the step."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbench.analysis.headline import seconds
from jaxbench.analysis.phases import NAMES, PARTS, Phase, Phases
from jaxbench.report.figures import bars, canvas, marks
from jaxbench.report.figures.axes import seconds_tick
from jaxbench.report.figures.canvas import short
from jaxbench.report.figures.lever_material import LeverMaterial

CAPTION = (
    "Each phase is the difference of two programs that share their beginning, over the rounds that all of them share: "
    "backward = gradient - forward, update = local - gradient, communication = step - local. Left: time, each "
    "phase's end with the interval of the phase. Right: share of the step."
)


def draw(material: LeverMaterial) -> Figure | None:
    """Two panels, a stack for each place. None when fewer than two parts were measured anywhere."""
    found = material.phases
    if not found:
        return None
    figure = canvas.blank()
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    for place, one in enumerate(found):
        _stack(left, place, one)
    left.set_xlim(0, 1.16 * max(one.whole.hi if one.whole.has_interval else one.whole.value for one in found))
    left.xaxis.set_major_formatter(lambda value, _: seconds_tick(value) if value > 0 else "0")
    left.locator_params(axis="x", nbins=6)
    left.set_title("time per step", loc="left")
    rows = _shares(right, found)
    names = [short(one.name, 26) or "step" for one in found]
    marks.rows_axis(left, names)
    handles = [bars.handle(look, name) for look, name in enumerate(NAMES) if _drawn(found, look)]
    lines = canvas.legend(figure, handles, title=f"{material.experiment}: where the step's time goes")
    below = canvas.footnotes(figure, [*_notes(found), *marks.remarks(material.places, paired=False)])
    figure.set_figheight(max(1.7, 0.8 + 0.34 * len(found), 0.8 + 0.17 * rows) + 0.16 * lines + 0.12 * below)
    return figure


def _drawn(found: Sequence[Phases], look: int) -> bool:
    return any(look in phase.looks for one in found for phase in one.phases)


def _stack(axes: Axes, place: int, one: Phases) -> None:
    """A phase below 0 has no length: it stands in the notes."""
    at = 0.0
    for phase in one.phases:
        width = max(0.0, phase.step_s.value)
        look = bars.style(phase.looks[-1], hollow=not one.honest)
        axes.barh([place], [width], left=at, height=0.62, **look)
        at += width
        if phase.step_s.has_interval and one.honest:
            low, high = at - width + max(0.0, phase.step_s.lo), at - width + max(0.0, phase.step_s.hi)
            y = place + 0.12 * (phase.looks[-1] - 1.5)
            axes.errorbar(
                [at], [y], xerr=[[max(0.0, at - low)], [max(0.0, high - at)]], linestyle="none", ecolor="black",
                elinewidth=0.8, capsize=1.8, capthick=0.8, zorder=4,
            )  # fmt: skip
    marks.write(axes, max(at, one.whole.hi if one.whole.has_interval else at), place, seconds(one.whole.value))


def _shares(axes: Axes, found: Sequence[Phases]) -> int:
    """A point a phase with its interval, in percent of the step, grouped by place. Returns how many rows."""
    rows: list[tuple[float, Phases, Phase]] = []
    for place, one in enumerate(found):
        for i, phase in enumerate(one.phases):
            rows.append((place + (i - (len(one.phases) - 1) / 2) * 0.19, one, phase))
    top = 0.0
    for y, one, phase in rows:
        share = phase.share.times(100)
        look = phase.looks[-1]
        hollow = not one.honest
        ends = [[share.value - share.lo], [share.hi - share.value]] if share.has_interval and not hollow else None
        axes.errorbar(
            [share.value], [y], xerr=ends, color=marks.colour(look), marker=marks.marker(look), linestyle="none",
            markerfacecolor="white" if hollow else marks.colour(look), capsize=1.8, elinewidth=0.8, capthick=0.8,
        )  # fmt: skip
        at = share.hi if ends else share.value
        top = max(top, at)
        unclear = "" if phase.told or hollow else " ?"
        marks.write(axes, at, y, f"{share.value:z.0f} %{unclear}", size=6)
    marks.unity(axes, at=0.0)
    axes.set_xlim(min(0.0, axes.dataLim.x0) - 3, 1.2 * top)
    marks.rows_axis(axes, [""] * len(found), first=False)
    axes.set_xlabel("")
    axes.set_title("share of the step, %", loc="left")
    return len(rows)


def _notes(found: Sequence[Phases]) -> list[str]:
    notes = []
    if any(not phase.told for one in found if one.honest for phase in one.phases):
        notes.append("?: the interval holds 0, so that it cannot be told whether the phase takes any time")
    below = [
        f"{phase.name} {1e3 * phase.step_s.value:.2g} ms" for s in found for phase in s.phases if phase.step_s.value < 0
    ]
    if below:
        notes.append(f"negative, so not drawn in the stack: {', '.join(below)}")
    if any(len(phase.looks) > 1 for one in found for phase in one.phases):
        notes.append(f"parts that were not measured are in the phase after them ({', '.join(PARTS)})")
    return notes
