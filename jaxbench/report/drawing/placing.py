# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Positions labels once the layout is known: next to their marks, without overlap, and inside the figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import Bbox, BboxBase

MOVABLE, SPREAD = "_movable", "_spread"  # marks texts that `settle` may move: around their mark, or up and down
_SIDES: dict[str, int] = {"left": -1, "center": 0, "right": 1, "top": -1, "bottom": 1}
_AROUND = (  # (horizontal, vertical) alignment in order of preference; the offset is away from the mark
    ("left", "center"), ("center", "bottom"), ("center", "top"), ("right", "center"),
    ("left", "bottom"), ("left", "top"), ("right", "bottom"), ("right", "top"),
)  # fmt: skip
_OFFSETS = (4.0, 9.0, 16.0)  # points between a mark and its label
_CUT, _ON_TEXT, _OUTSIDE, _CROSSED = 100, 10, 4, 3  # the costs of a position's faults


def settle(figure: Figure) -> None:
    """Moves labels that overlap something to the best position next to their marks. Call it after the layout."""
    for axes in figure.axes:
        _thin(figure, axes)
        _spread([t for t in axes.texts if isinstance(t, Annotation) and t.get_label() == SPREAD])
    written = [text for text in figure.findobj(Text) if text.axes is None] + [t for a in figure.axes for t in a.texts]
    for axes in figure.axes:
        lines, points = list(_paths(axes)), np.array(list(_points(axes))).reshape(-1, 2)
        for text in axes.texts:
            if isinstance(text, Annotation) and text.get_label() == MOVABLE and not text.get_rotation():
                boxes = [Text.get_window_extent(other) for other in written if other is not text and other.get_text()]
                _move(text, axes, boxes, lines, points)


def _thin(figure: Figure, axes: Axes) -> None:
    """Removes every second tick along x until their labels do not touch. Names are never removed."""
    axis = axes.xaxis
    while isinstance(axis.get_major_formatter(), FuncFormatter) and len(axis.get_majorticklocs()) > 2:
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: box.x0)
        if all(right.x0 - left.x1 > 2 for left, right in zip(boxes, boxes[1:], strict=False)):
            return
        axis.set_major_locator(FixedLocator(axis.get_majorticklocs()[::2].tolist()))
        figure.draw_without_rendering()  # moves the remaining labels to their ticks


def _spread(texts: Sequence[Annotation]) -> None:
    """Shifts labels at the right of a panel up and down, as little as possible, until none overlap."""
    blocks: list[tuple[float, list[Annotation]]] = []  # of touching labels: mean height, labels from the lowest on
    gap = 1.1 * max((Text.get_window_extent(text).height for text in texts), default=0.0)
    for text in sorted(texts, key=lambda text: text.xy[1]):
        blocks.append((_panel(text).transData.transform(text.xy)[1], [text]))
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * sum(len(b[1]) for b in blocks[-2:]) / 2:
            (low, below), (high, above) = blocks.pop(-2), blocks.pop()
            count = len(below) + len(above)
            blocks.append(((low * len(below) + high * len(above)) / count, [*below, *above]))
    for middle, members in blocks:
        for number, text in enumerate(members):
            height = middle + gap * (number - (len(members) - 1) / 2)
            text.set_y(_panel(text).transData.inverted().transform((0, height))[1])


def _panel(text: Annotation) -> Axes:
    assert isinstance(text.axes, Axes)
    return text.axes


def _move(text: Annotation, axes: Axes, boxes: Sequence[Bbox], lines: Sequence[Path], points: np.ndarray) -> None:
    """Moves a label to the position with the least cost. boxes, lines, points: the obstacles."""
    figure, panel = axes.figure.bbox, axes.get_window_extent()
    first = text.xyann, text.get_horizontalalignment(), text.get_verticalalignment()
    outside = not _inside(text.get_window_extent(), panel)

    def cost(box: Bbox) -> float:
        bad = _CUT * (not _inside(box, figure)) + _OUTSIDE * (not outside and not _inside(box, panel))
        bad += _ON_TEXT * sum(box.overlaps(other) for other in boxes)
        bad += _CROSSED * int(((box.min < points) & (points < box.max)).all(axis=1).sum())
        return bad + _CROSSED * sum(path.intersects_bbox(box, filled=False) for path in lines)

    best: tuple[float, tuple[tuple[float, float], str, str]] = cost(text.get_window_extent()), first
    for offset in _OFFSETS if best[0] else ():
        for ha, va in _AROUND:
            side = {"left": 1, "right": -1}.get(ha, 0), _SIDES[va]
            place = (offset * side[0], (offset if not side[0] else offset / 2) * side[1]), ha, va
            _put(text, *place)
            best = min(best, (cost(text.get_window_extent()), place), key=lambda each: each[0])
            if not best[0]:
                break
        if not best[0]:
            break
    _put(text, *best[1])


def _put(text: Annotation, offset: tuple[float, float], ha: str, va: str) -> None:
    text.xyann = offset
    text.set(ha=ha, va=va)


def _inside(box: Bbox, frame: BboxBase) -> bool:
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)


def _paths(axes: Axes) -> Iterator[Path]:
    """The paths in a panel, in figure coordinates: lines, error bars and the outlines of bars."""
    for line in axes.lines:
        if len(line.get_xydata()) > 1 and line.get_linestyle() != "None":  # type: ignore[arg-type]
            yield line.get_transform().transform_path(line.get_path())
    for collection in axes.collections:
        if isinstance(collection, LineCollection):
            yield from map(collection.get_transform().transform_path, collection.get_paths())
    for patch in axes.patches:
        yield patch.get_transform().transform_path(patch.get_path())


def _points(axes: Axes) -> Iterator[np.ndarray]:
    """The positions of a panel's marks, in figure coordinates."""
    for line in axes.lines:
        if line.get_marker() not in ("", "None", None):
            yield from axes.transData.transform(line.get_xydata())
