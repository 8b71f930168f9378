# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two panels for each operation, one above the other; operations stand side by side as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from jaxbench.report.drawing.axes import entitle
from jaxbench.report.drawing.canvas import Sheet, short


def bands(
    operations: Sequence[str], *, across: int, heights: tuple[float, float]
) -> tuple[Sheet, dict[str, tuple[Axes, Axes]]]:
    """The sheet, and each operation's (upper, lower) panels, titled with its name. heights: of both, in inches."""
    down, columns = -(-len(operations) // across), min(across, len(operations))
    sheet = Sheet(2 * down, columns, heights=[*heights] * down, sharex=True, sharey="row")
    places = [(2 * band, column) for band in range(down) for column in range(columns)]
    pairs = {
        op: (sheet.panels[row, c], sheet.panels[row + 1, c]) for op, (row, c) in zip(operations, places, strict=False)
    }
    for op, (above, below) in pairs.items():
        entitle(above, short(op, 24))
        below.tick_params(labelbottom=True)
    for row, column in places[len(operations) :]:
        for axes in sheet.panels[row : row + 2, column]:
            axes.remove()
    return sheet, pairs
