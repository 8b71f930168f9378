# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a panel holds: which artists are data, their values and interval ends, and panels without data.

Figures ask here, so that all of them agree on empty panels and on axis limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

LEAST_REACH = 4.0  # an interval may always extend an axis by this factor beyond the values
GUIDE = "_guide"  # the label of a line that is no data: an ideal, a formula or a limit


def intervals(axes: Axes) -> list[ErrorbarContainer]:
    """The error bars of a panel."""
    return [container for container in axes.containers if isinstance(container, ErrorbarContainer)]


def caps(axes: Axes) -> set[Artist]:
    """The short strokes at the ends of the error bars, which matplotlib draws as lines with a marker."""
    return {line for bars in intervals(axes) for line in bars.lines[1]}


def is_reference(line: Line2D) -> bool:
    """Whether a line is no data: it spans the panel, or it is a dashed black line without markers."""
    marker = line.get_marker() not in ("", "None", None, " ")
    dashed = line.is_dashed()
    black = line.get_color() in ("black", "k", "#000000")
    return str(line.get_label()).startswith(GUIDE) or (black and dashed and not marker) or not in_data(line)


def in_data(artist: Artist) -> bool:
    """Whether both coordinates of an artist are data: a line across the whole panel has one in shares of the panel."""
    axes = artist.axes
    return axes is not None and all(artist.get_transform().contains_branch_seperately(axes.transData))


def data_lines(axes: Axes) -> list[Line2D]:
    """The lines and marks with data, without the ends of error bars."""
    ends = caps(axes)
    return [line for line in axes.lines if line not in ends and not is_reference(line) and _has_finite_point(line)]


def _has_finite_point(line: Line2D) -> bool:
    points = np.asarray(line.get_xydata(), dtype=float)
    return bool(points.size) and bool(np.isfinite(points).all(axis=1).any())


def has_data(axes: Axes) -> bool:
    """Whether a panel shows anything that was measured, computed or published."""
    if not axes.axison and axes.texts:
        return True  # a column of explanations
    bars = (patch for patch in axes.patches if isinstance(patch, Rectangle) and in_data(patch))
    areas = (patch.get_width() * patch.get_height() for patch in bars)
    others = any(not isinstance(patch, Rectangle) and in_data(patch) for patch in axes.patches)
    return (
        bool(data_lines(axes))
        or any(area != 0 and math.isfinite(area) for area in areas)
        or others
        or any(map(_collected, axes.collections))
        or bool(axes.images)
    )


def _collected(collection: Collection) -> bool:
    """Whether a collection (a band, points of a scatter, cells) holds anything."""
    return np.size(collection.get_offsets()) > 0 or any(np.size(path.vertices) > 2 for path in collection.get_paths())


def values(axes: Axes, which: str) -> list[float]:
    """The ends along x or y of the drawn values, without those of their intervals."""
    column = "xy".index(which)
    found = [
        float(value)
        for line in axes.lines
        if line not in caps(axes) and line.get_transform().contains_branch_seperately(axes.transData)[column]
        for value in np.asarray(line.get_xydata(), dtype=float).reshape(-1, 2)[:, column]
    ]
    for bar in axes.patches:
        if isinstance(bar, Rectangle) and bar.get_transform().contains_branch_seperately(axes.transData)[column]:
            start, size = (bar.get_x(), bar.get_width()) if which == "x" else (bar.get_y(), bar.get_height())
            found += [start, start + size]
    return [value for value in found if math.isfinite(value)]


def robust(middle: Sequence[float], ends: Sequence[float]) -> tuple[float, float]:
    """(low, high) of a logarithmic axis over positive values and the ends of their intervals.

    An interval extends the axis by at most the ratio of the values' own span, and at least by `LEAST_REACH`: otherwise
    one wide interval hides all others. middle: the values; if empty, the ends are taken as they are.
    """
    low, high = min([*ends, *middle]), max([*ends, *middle])
    if not middle:
        return low, high
    first, last = min(middle), max(middle)
    reach = max(LEAST_REACH, last / first)
    return max(low, first / reach), min(high, last * reach)


def leaving(axes: Axes) -> bool:
    """Whether an error bar goes on beyond the panel."""
    limits = np.sort(np.array([axes.get_xlim(), axes.get_ylim()]), axis=1)
    slack = 1e-6 * (limits[:, 1] - limits[:, 0])
    for bars in intervals(axes):
        for lines in bars.lines[2]:
            for segment in map(np.asarray, lines.get_segments()):
                if len(segment) and ((segment < limits[:, 0] - slack) | (segment > limits[:, 1] + slack)).any():
                    return True
    return False


def drop_empty(figure: Figure, panels: np.ndarray, heights: Sequence[float]) -> list[float]:
    """Removes panels without data, and closes rows and columns that this empties. Returns the remaining heights.

    panels: shape (rows, columns) of Axes as they lie in the grid. heights: one for each row.
    """
    alive = np.array([[axes.figure is not None and has_data(axes) for axes in line] for line in panels])
    for axes in panels[~alive]:
        if axes.figure is not None:
            _hand_on(axes, panels[alive])
            axes.remove()
    rows, columns = np.flatnonzero(alive.any(axis=1)), np.flatnonzero(alive.any(axis=0))
    if alive.any() and (len(rows), len(columns)) != alive.shape:
        _close(figure, panels[alive][0].get_gridspec(), rows.tolist(), columns.tolist())
    return [heights[row] for row in rows.tolist()]


def _hand_on(axes: Axes, others: Iterable[Axes]) -> None:
    """Gives the axis labels and tick labels of a panel that is removed to panels that share its axis and have none."""
    for which in ("x", "y"):
        shared = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
        for other in others:
            if shared.joined(axes, other):
                label = getattr(axes, f"get_{which}label")()
                if label and not getattr(other, f"get_{which}label")():
                    getattr(other, f"set_{which}label")(label)
                if which == "x":
                    other.tick_params(labelbottom=True)
                else:
                    other.tick_params(labelleft=True)


def _close(figure: Figure, grid: GridSpec, rows: list[int], columns: list[int]) -> None:
    """Moves the remaining panels into a grid without the empty rows and columns."""
    widths, tall = np.asarray(grid.get_width_ratios()), np.asarray(grid.get_height_ratios())
    small = GridSpec(
        len(rows),
        len(columns),
        figure=figure,
        width_ratios=widths[columns],
        height_ratios=tall[rows],
    )
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        if spec is None or spec.get_gridspec() is not grid:
            continue
        lines = _positions_within(rows, spec.rowspan)
        across = _positions_within(columns, spec.colspan)
        axes.set_subplotspec(small[lines[0] : lines[-1] + 1, across[0] : across[-1] + 1])


def _positions_within(kept: Sequence[int], span: range) -> list[int]:
    return [number for number, place in enumerate(kept) if place in span]


def visible_panels(figure: Figure) -> Iterator[Axes]:
    """The panels with axes."""
    return (axes for axes in figure.axes if axes.get_visible() and axes.axison)
