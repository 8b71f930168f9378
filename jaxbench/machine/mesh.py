# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Meshes with explicit axis types, and the groups of devices over which collectives run.

The devices of a TPU's grid are arranged so that neighbours on an axis are neighbours in the grid. A TPU lists its
devices tray by tray, so successive devices may be two or more links apart. JAX's own `mesh_utils.create_device_mesh`
supports some shapes, refuses others (2x8 on a grid of 4x4) and leaves others unchanged (eight devices on 2x4 or on
2x2x2). Here every arrangement is scored by the links between neighbours on every axis, including its two ends. The ends
count as neighbours even if no link closes the torus: a ring then returns over the same links in the other direction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxbench.errors import UserError

AXES = ("x", "y")
Box = tuple[int, ...]


def arranged(devices: Sequence[jax.Device], shape: tuple[int, ...]) -> np.ndarray:
    """The devices of a mesh of `shape`, row by row.

    They keep the given order, except TPU devices, which report their position in the torus: those are arranged so that
    neighbours on an axis are near each other. Of several slices each has a part of the first axis.

    Raises UserError for a first axis that the slices do not divide."""
    array = np.empty(len(devices), object)
    array[:] = devices
    coordinates = [(*device.coords, device.core_on_chip) for device in devices if hasattr(device, "core_on_chip")]
    if len(coordinates) < len(devices):
        return array.reshape(shape)
    numbers = [getattr(device, "slice_index", 0) for device in devices]  # a description of one slice has no number
    slices = sorted(set(numbers))
    if len(slices) == 1:
        return array[torus_order(coordinates, shape)].reshape(shape)
    if shape[0] % len(slices):
        raise UserError(
            f"the first axis of a mesh lies across slices, but its {shape[0]} devices do not divide into {len(slices)} "
            f"slices: begin the mesh with data={len(slices)}, for example."
        )
    parts = [[device for device, n in zip(devices, numbers, strict=True) if n == each] for each in slices]
    return np.concatenate([arranged(part, (shape[0] // len(slices), *shape[1:])) for part in parts])


def data_mesh(devices: list[jax.Device], axis_type: AxisType) -> Mesh:
    """A one-axis mesh named "data"."""
    return Mesh(arranged(devices, (len(devices),)), ("data",), axis_types=(axis_type,))


def host_device() -> jax.Device:
    """The CPU device of this process, which uses the host's memory. It exists even if there are accelerators."""
    return jax.local_devices(backend="cpu")[0]


def on_host() -> Any:
    """A context in which programs run on the host's CPU, even inside the context of a mesh of accelerators."""
    return jax.set_mesh(data_mesh([host_device()], AxisType.Auto))


def grid(devices: Sequence[jax.Device], shape: tuple[int, ...]) -> Mesh:
    """A mesh of `shape` with the axes "x" and "y"."""
    return Mesh(arranged(devices, shape), AXES[: len(shape)], axis_types=(AxisType.Explicit,) * len(shape))


def groupings(count: int, shape_text: str, *, parts: int = 1) -> list[tuple[tuple[int, ...], str]]:
    """The (mesh shape, axis) pairs on which collectives over `count` devices are measured. Touches no device.

    shape_text: "" for all devices as one group; "auto" for that and both axes of a 2-D mesh, if there is one; "2x4" for
      the axes of exactly that mesh.
    parts: the number of hosts or processes, each with an equal share of the devices. The 2-D mesh is then parts x
      devices of a part, so one axis is between parts and the other inside them. For 1 part it is the squarest mesh.

    Raises:
      UserError: the text is not a mesh, or its size is not `count`.
    """
    one_group: list[tuple[tuple[int, ...], str]] = [((count,), AXES[0])]
    if not shape_text:
        return one_group
    if shape_text == "auto":
        if 1 < parts < count and count % parts == 0:
            return one_group + [((parts, count // parts), axis) for axis in AXES]
        # Of several parts with one device each, or unequal ones, no axis lies inside the parts.
        square = squarest(count) if parts == 1 else (count,)
        return one_group + [(square, axis) for axis in AXES[: len(square)] if len(square) > 1]
    shape = _read(shape_text)
    if math.prod(shape) != count:
        raise UserError(
            f"--config.mesh.shape={shape_text} needs {math.prod(shape)} devices, but there are {count}: use "
            f"{mesh_text(squarest(count))}, for example."
        )
    return [(shape, axis) for axis in AXES[: len(shape)]]


def groups(shape: tuple[int, ...], axis: str) -> list[tuple[int, ...]]:
    """The positions in a mesh that communicate along `axis`, by group: (2, 4), "x" -> (0, 4), (1, 5), ..."""
    places = np.arange(math.prod(shape)).reshape(shape)
    lines = np.moveaxis(places, AXES.index(axis), -1).reshape(-1, shape[AXES.index(axis)])
    return [tuple(line) for line in lines.tolist()]


def squarest(count: int) -> tuple[int, ...]:
    """The 2-D mesh of `count` devices closest to a square, its longer side last: 8 -> (2, 4). A prime: (7,)."""
    rows = next(n for n in range(math.isqrt(count), 0, -1) if count % n == 0)
    return (rows, count // rows) if rows > 1 else (count,)


def mesh_text(shape: tuple[int, ...]) -> str:
    """(2, 4) -> "2x4"."""
    return "x".join(map(str, shape))


def _read(text: str) -> tuple[int, ...]:
    """The sides of a mesh that was typed. Raises UserError."""
    words = text.strip().split("x")
    if not all(word.isdecimal() and int(word) > 0 for word in words) or len(words) > len(AXES):
        raise UserError(f"--config.mesh.shape={text} is not a mesh of one or two axes: write 2x4, 8 or auto.")
    return tuple(map(int, words))


def torus_order(coordinates: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> list[int]:
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
        # The orders of the axes that share a dimension, from the longest steps to steps of one link.
        orders = (itertools.permutations(axis for axis, factor in enumerate(f) if factor > 1) for f in split)
        for nested in itertools.product(*orders):
            yield _laid(split, nested, shape)


def _factorings(length: int, count: int) -> list[tuple[int, ...]]:
    """Every way to write `length` as an ordered product of `count` factors."""
    if count == 1:
        return [(length,)]
    heads = (head for head in range(1, length + 1) if length % head == 0)
    return [(head, *tail) for head in heads for tail in _factorings(length // head, count - 1)]


def _laid(split: tuple[Box, ...], nested: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> np.ndarray:
    """The coordinates, (*shape, dimensions), of an arrangement: axis a gets split[d][a] of dimension d, ordered by
    nested[d]."""
    # In each dimension a coordinate is a number of mixed radix, with a digit for each axis and `_step` as its weight.
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
