# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Arranges the devices of a TPU's grid in a mesh, so that neighbours on an axis are neighbours in the grid.

A TPU lists its devices tray by tray, so successive devices may be two or more links apart. JAX's own
`mesh_utils.create_device_mesh` supports some shapes, refuses others (2x8 on a grid of 4x4) and leaves others unchanged
(eight devices on 2x4 or on 2x2x2). Here every arrangement is scored by the links between neighbours on every axis,
including its two ends. The ends count as neighbours even if no link closes the torus: a ring then returns over the same
links in the other direction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

Box = tuple[int, ...]


def order(coordinates: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> list[int]:
    """The index of the device at each position of a mesh of `shape`, row by row.

    The arrangement has the fewest links between neighbours. Devices that do not fill a box keep the given order.
    """
    places = np.array(coordinates) - np.min(coordinates, axis=0)
    box = tuple(int(extent) for extent in places.max(axis=0) + 1)
    at = {tuple(place): number for number, place in enumerate(places.tolist())}
    # Not a full box, or two devices in one place, such as the two cores of a chip.
    if math.prod(box) != len(coordinates) or len(at) != len(coordinates):
        return list(range(len(coordinates)))
    # The first of several equal arrangements has axes made of the fewest lines.
    best = min(
        _arrangements(box, shape), key=lambda grid: int(sum(links(grid, axis).sum() for axis in range(len(shape))))
    )
    return [at[tuple(place)] for place in best.reshape(-1, len(box)).tolist()]


def links(grid: np.ndarray, axis: int) -> np.ndarray:
    """The number of torus links between each device and the next one on an axis, which is closed to a ring.

    grid: the coordinates of an arrangement, (*shape, dimensions).
    """
    apart = np.abs(grid - np.roll(grid, -1, axis))
    box = grid.reshape(-1, grid.shape[-1]).max(axis=0) + 1
    return np.minimum(apart, box - apart).sum(axis=-1)  # around the torus, whichever way is shorter


def _arrangements(box: Box, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """The ways to build each axis of `shape` from a box of its own, such that these boxes together fill `box`."""
    splits = itertools.product(*(_factorings(length, len(shape)) for length in box))
    fitting = [split for split in splits if tuple(math.prod(factors) for factors in zip(*split, strict=True)) == shape]
    for split in sorted(fitting, key=lambda split: sum(factor > 1 for factors in split for factor in factors)):
        for nested in itertools.product(*(_nestings(factors) for factors in split)):
            yield _laid(split, nested, shape)


def _factorings(length: int, count: int) -> list[tuple[int, ...]]:
    """Every way to write `length` as an ordered product of `count` factors."""
    if count == 1:
        return [(length,)]
    heads = (head for head in range(1, length + 1) if length % head == 0)
    return [(head, *tail) for head in heads for tail in _factorings(length // head, count - 1)]


def _nestings(factors: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The orders of the axes that share a dimension, from the longest steps to steps of one link."""
    return list(itertools.permutations(axis for axis, factor in enumerate(factors) if factor > 1))


def _laid(split: tuple[Box, ...], nested: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> np.ndarray:
    """The coordinates, (*shape, dimensions), of an arrangement: axis a gets split[d][a] of dimension d, ordered by
    nested[d]."""
    grid = np.zeros((*shape, len(split)), int)
    for axis, length in enumerate(shape):
        box = tuple(factors[axis] for factors in split)
        steps = [_step(factors, axes, axis) for factors, axes in zip(split, nested, strict=True)]
        grid += (np.array(_ring(box)) * steps).reshape(*(length if a == axis else 1 for a in range(len(shape))), -1)
    return grid


def _step(factors: tuple[int, ...], axes: tuple[int, ...], axis: int) -> int:
    """The links between two neighbours of `axis` in a dimension that `axes` share; 0 if `axis` has no part of it."""
    return math.prod(factors[inner] for inner in axes[axes.index(axis) + 1 :]) if axis in axes else 0


def _ring(box: Box) -> list[Box]:
    """Every position of a box, each one link from the previous; the last one link from the first if possible."""
    rows = next((d for d, length in enumerate(box) if length % 2 == 0), None)
    if rows is None:
        return _snake(box)  # a box of odd sides only has no closed path of single links
    line = _snake((*box[:rows], 1, *box[rows + 1 :]))
    if len(line) == 1:
        return _snake(box)
    out = [(row, 0) for row in range(box[rows])]  # along the line's first position, then back through the others
    back = [(box[rows] - 1 - row, 1 + place) for row, place in _snake((box[rows], len(line) - 1))]
    return [(*line[place][:rows], row, *line[place][rows + 1 :]) for row, place in out + back]


def _snake(box: Box) -> list[Box]:
    """Every position of a box, each one link from the previous."""
    if not box:
        return [()]
    rest = _snake(box[1:])
    return [(row, *place) for row in range(box[0]) for place in (rest if row % 2 == 0 else rest[::-1])]
