# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Arms as marks of a figure. Each row of the figure is an arm; each arm group of the run has its own style."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from jaxbench.analysis.arms import ArmGroup, arms_of
from jaxbench.analysis.run_rows import Row
from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.canvas import short
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate

Value = Callable[[Row], Estimate]
Show = Callable[[Estimate], str]


def timed(places: Sequence[ArmGroup]) -> bool:
    return any(arm.timing.step_s.known for arm in arms_of(places))


def labels(places: Sequence[ArmGroup]) -> list[str]:
    """The labels of all arms without duplicates."""
    return list(dict.fromkeys(arm.label for arm in arms_of(places)))


def ticks(places: Sequence[ArmGroup]) -> list[str]:
    """`labels`, with the baseline marked."""
    base = {place.arms[0].label for place in places}
    return [f"{short(name, 26)}\n(baseline)" if name in base else short(name, 26) for name in labels(places)]


def remarks(places: Sequence[ArmGroup], *, paired: bool = True) -> list[str]:
    """The footnotes of every figure of arms. paired: whether its ratios are over shared rounds."""
    arms = [arm for arm in arms_of(places) if arm.timing.step_s.known]
    sentences = notes.of_times(arms, "per arm", of=", ratios over shared rounds" if paired else "")
    sentences += notes.of_states(arms)
    missing = [arm.label for arm in arms_of(places) if not arm.timing.step_s.known]
    if missing:
        sentences.append(f"not measured: {', '.join(short(name, 30) for name in dict.fromkeys(missing))}")
    return sentences


def handles(places: Sequence[ArmGroup], *, bars: bool = False) -> list[Artist]:
    """A legend entry for each arm group; [] if there is only one."""
    make = marks.bar_handle if bars else marks.handle
    return [make(i, short(place.name)) for i, place in enumerate(places)] if len(places) > 1 else []


def line(axes: Axes, places: Sequence[ArmGroup], at: Callable[[Row], float], value: Value, **style: Any) -> None:
    """Draws a line for each arm group. style: passed to `marks.line`."""
    for number, place in enumerate(places):
        marks.line(axes, marks.of(place.arms, at, value), place=number, **style)


def side_by_side(
    places: Sequence[ArmGroup], names: Sequence[str], *, apart: float = 0.74
) -> Iterator[tuple[Row, int, float]]:
    """(arm, number of its group, its y) for each arm in `names`. apart: the share of a row's height that the groups
    fill."""
    for number, place in enumerate(places):
        for arm in place.arms:
            if arm.label in names:
                yield arm, number, names.index(arm.label) + (number - (len(places) - 1) / 2) * apart / len(places)


def rows(
    places: Sequence[ArmGroup],
    value: Value,
    show: Show | None = None,
    *,
    names: Sequence[str] = (),
    apart: float = 0.74,
) -> list[Mark]:
    """A mark for each arm with a known value, in the row of its label (those in `names`, or all)."""
    made = []
    for arm, number, at in side_by_side(places, names or labels(places), apart=apart):
        mark = Mark(at=at, value=value(arm), style=number, state=marks.state(arm))
        if mark.value.known:
            made.append(mark if show is None else replace(mark, text=show(mark.drawn)))
    return made


def dots(axes: Axes, places: Sequence[ArmGroup], value: Value, show: Show | None = None) -> None:
    """Draws a point with its interval for each arm and group."""
    marks.dots(axes, rows(places, value, show, apart=0.5))
