# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which factor made B faster: the waterfalls of two runs, A on the left and B on the right."""

from __future__ import annotations

from jaxbench.report.drawing import notes
from jaxbench.report.drawing.kit import Figure, Sheet, entitle, short
from jaxbench.report.figures import waterfall
from jaxbench.verdicts.comparison import Comparison

VIEWS = ()  # of a comparison, not of a run
CAPTION = "The efficiency of each run in steps down from 100 %: one per factor, with its confidence interval."


def draw(comparison: Comparison) -> Figure | None:
    """Draws two panels per strategy and scaling. None when no point has a waterfall in both runs."""
    families = list(dict.fromkeys((pair.a.family, pair.b.family) for pair in comparison.waterfalls))
    if not families:
        return None
    shown = families[: waterfall.MOST]
    pairs = [pair for pair in comparison.waterfalls if (pair.a.family, pair.b.family) in shown]
    sheet = Sheet(len(shown), 2, heights=1.9, sharey=True)
    for (left, right), family in zip(sheet.panels, shown, strict=True):
        members = [pair for pair in pairs if (pair.a.family, pair.b.family) == family]
        waterfall.panel(left, [pair.a for pair in members])
        waterfall.panel(right, [pair.b for pair in members])
        entitle(left, f"A: {short(family[0], 30)}", y="efficiency, %")
        entitle(right, f"B: {short(family[1], 30)}")
    every = [one for pair in pairs for one in (pair.a, pair.b)]
    rest = notes.rest(len(shown), len(families), "strategies and scalings, in the order of the table")
    return sheet.finish("Why not 100 %: A and B", waterfall.handles(every), [*waterfall.remarks(every), *rest])
