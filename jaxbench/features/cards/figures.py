# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure of all result cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import LineStyleType

from jaxbench.report.drawing import marks, notes
from jaxbench.report.drawing.axes import devices_axis, efficiency_axis, entitle
from jaxbench.report.drawing.canvas import Sheet, plot, short
from jaxbench.report.drawing.marks import Mark

_CARDS_STYLES: dict[str, LineStyleType] = {"strong": "-", "weak": ":"}
_ACROSS = 3  # panels in a row


@dataclass(frozen=True, kw_only=True)
class CardCurve:
    """One strategy of one card in one scaling. marks: efficiency in percent over the number of devices."""

    machine: str
    experiment: str
    strategy: str
    scaling: str
    marks: tuple[Mark, ...]

    @property
    def style(self) -> tuple[str, str]:
        return self.machine, self.strategy


@plot("cards")
def draw_cards(lines: Sequence[CardCurve], *, title: str, further: Sequence[str] = ()) -> Figure | None:
    """Efficiency over devices of all result cards, as recorded in each card."""
    drawn = sorted((line for line in lines if len(line.marks) > 1), key=lambda line: (line.style, line.scaling))
    if not drawn:
        return None
    styles = list(dict.fromkeys(line.style for line in drawn))
    experiments = sorted({line.experiment for line in drawn})
    across = min(_ACROSS, len(experiments))
    sheet = Sheet(-(-len(experiments) // across), across, heights=2.2)
    panels = list(sheet.panels.flat)
    for axes, experiment in zip(panels, experiments, strict=False):
        _panel(axes, [line for line in drawn if line.experiment == experiment], styles, title=experiment)
    for axes in panels[len(experiments) :]:  # the last row may have fewer panels than the grid
        axes.set_axis_off()
    names = [f"{short(machine, 34)}: {short(strategy, 34)}" for machine, strategy in styles]
    handles = [marks.handle(place, name) for place, name in enumerate(names)]
    scalings = [name for name in _CARDS_STYLES if any(line.scaling == name for line in drawn)]
    if len(scalings) > 1:
        handles += [marks.style_handle(name, linestyle=_CARDS_STYLES[name]) for name in scalings]
    every = [mark for line in drawn for mark in line.marks]
    states = {mark.state for mark in every}
    remarks = [f"{notes.BARS}; n is in each card"] if any(mark.value.has_interval for mark in every) else []
    remarks += [note for state, note in (("hollow", notes.HOLLOW), ("wrong", notes.WRONG)) if state in states]
    return sheet.finish(title, [*handles, marks.guide_handle("ideal")], [*remarks, *further], even=False)


def _panel(axes: Axes, lines: Sequence[CardCurve], styles: list[tuple[str, str]], *, title: str) -> None:
    marks.unity(axes, at=100, along="y")
    for place, line in enumerate(lines):
        # Dodged: cards of one machine have the same device counts, and their intervals would cover each other.
        factor, style = marks.dodge(place, len(lines)), _CARDS_STYLES.get(line.scaling, "-")
        made = [replace(mark, at=factor * mark.at) for mark in line.marks]
        marks.line(axes, made, place=styles.index(line.style), between=style)
    devices_axis(axes, sorted({int(mark.at) for line in lines for mark in line.marks}))
    efficiency_axis(axes)
    entitle(axes, f"{short(title, 18)}: efficiency, %")
