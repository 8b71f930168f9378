# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Meshes with explicit axis types, and the groups of devices over which collectives run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxbench.errors import UserError
from jaxbench.machine import torus

AXES = ("x", "y")


def arranged(devices: Sequence[jax.Device], shape: tuple[int, ...]) -> np.ndarray:
    """The devices of a mesh of `shape`, row by row.

    They keep the given order, except TPU devices, which report their position in the torus: those are arranged so that
    neighbours on an axis are near each other."""
    array = np.empty(len(devices), object)
    array[:] = devices
    coordinates = [(*device.coords, device.core_on_chip) for device in devices if hasattr(device, "core_on_chip")]
    if len(coordinates) == len(devices):
        array = array[torus.order(coordinates, shape)]
    return array.reshape(shape)


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
    words = text.strip().split("x")
    if not all(word.isdecimal() and int(word) > 0 for word in words) or len(words) > len(AXES):
        raise UserError(f"--config.mesh.shape={text} is not a mesh of one or two axes: write 2x4, 8 or auto.")
    return tuple(map(int, words))
