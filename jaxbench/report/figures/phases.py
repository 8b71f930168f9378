# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a training step's time goes: forward, backward, update and communication, stacked to the whole step."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.headline import seconds
from jaxbench.analysis.phases import NAMES, PARTS, Phases
from jaxbench.report.drawing import marks, places
from jaxbench.report.drawing.kit import Axes, Figure, Mark, Sheet, entitle, seconds_tick, short, zero_axis
from jaxbench.report.lever_findings import LeverFindings

VIEWS = ("levers/phases",)
CAPTION = (
    "Each phase is the difference in time of two programs, measured in the same rounds, where the second does one "
    "phase more: backward = gradient - forward, update = local - gradient, communication = step - local. Left: time; "
    "the error bar at the end of a phase is that phase's own. Right: share of the step."
)


def draw(run: LeverFindings) -> Figure | None:
    """Draws two panels with a stack per arm group. None when no group has two measured parts."""
    stacks = run.phases
    if not stacks:
        return None
    sheet = Sheet(1, 2, widths=[1.35, 1])
    left, right = sheet.panels[0]
    for place, one in enumerate(stacks):
        _stack(left, place, one)
    longest = max(one.whole.hi if one.whole.has_interval else one.whole.value for one in stacks)
    zero_axis(left, "x", longest, show=seconds_tick, room=1.16, max_ticks=6)
    entitle(left, "time per step")
    _shares(right, stacks)
    beside = max(len(one.phases) for one in stacks)
    for axes in (left, right):
        sheet.names(axes, [short(one.name, 26) or "step" for one in stacks], beside=beside, shown=axes is left)
    drawn = {style for one in stacks for phase in one.phases for style in phase.indices}
    handles = [marks.bar_handle(style, name) for style, name in enumerate(NAMES) if style in drawn]
    remarks = [*_notes(stacks), *places.remarks(run.places, paired=False)]
    return sheet.finish(f"{run.experiment}: where the step's time goes", handles, remarks)


def _stack(axes: Axes, place: int, one: Phases) -> None:
    """Draws one stack. A negative phase has no length; the notes name it."""
    parts = [(max(0.0, phase.step_s.value), phase.indices[-1]) for phase in one.phases]
    end = marks.stack(axes, place, parts, thick=0.62, hollow=not one.honest)
    at = 0.0
    for (width, style), phase in zip(parts, one.phases, strict=True):
        at += width
        if phase.step_s.has_interval and one.honest:
            reach = [[max(0.0, width - max(0.0, phase.step_s.lo))], [max(0.0, phase.step_s.hi - width)]]
            axes.errorbar(
                [at], [place + 0.12 * (style - 1.5)], xerr=reach, linestyle="none", ecolor="black", elinewidth=0.8,
                capsize=1.8, capthick=0.8, zorder=4,
            )  # fmt: skip
    marks.write(axes, max(end, one.whole.hi if one.whole.has_interval else end), place, seconds(one.whole.value))


def _shares(axes: Axes, stacks: Sequence[Phases]) -> None:
    """Draws each phase as a point with its interval, in percent of the step, grouped by arm group."""
    made = []
    for place, one in enumerate(stacks):
        for i, phase in enumerate(one.phases):
            share, at = phase.share.times(100), place + (i - (len(one.phases) - 1) / 2) * 0.19
            text = f"{share.value:z.0f} %{'' if phase.above_zero or not one.honest else ' ?'}"
            made.append(
                Mark(at=at, value=share, style=phase.indices[-1], state="solid" if one.honest else "hollow", text=text)
            )
    marks.dots(axes, made)
    marks.unity(axes, at=0.0)
    axes.set_xlim(min(0.0, axes.dataLim.x0) - 3, 1.2 * max(mark.end for mark in made))
    entitle(axes, "share of the step, %")


def _notes(stacks: Sequence[Phases]) -> list[str]:
    notes = []
    if any(not phase.above_zero for one in stacks if one.honest for phase in one.phases):
        notes.append("?: the interval contains 0, so the phase may take no time at all")
    every = [phase for one in stacks for phase in one.phases]
    below = [f"{phase.name} {1e3 * phase.step_s.value:.2g} ms" for phase in every if phase.step_s.value < 0]
    if below:
        notes.append(f"negative, so not drawn in the stack: {', '.join(below)}")
    if any(len(phase.indices) > 1 for phase in every):
        notes.append(f"a part that was not measured is included in the next phase ({', '.join(PARTS)})")
    return notes
