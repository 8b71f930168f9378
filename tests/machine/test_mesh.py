# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The groups of devices over which collectives are measured."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from jaxbench.errors import UserError
from jaxbench.machine import mesh
from jaxbench.machine.mesh import grid, groupings, groups, mesh_text, squarest
from jaxbench.parallel import axes


@pytest.mark.parametrize(
    ("devices", "text", "expected"),
    [
        *((devices, "auto", [((devices,), "x")]) for devices in (1, 2, 7)),
        (8, "", [((8,), "x")]),
        (4, "auto", [((4,), "x"), ((2, 2), "x"), ((2, 2), "y")]),
        (8, "auto", [((8,), "x"), ((2, 4), "x"), ((2, 4), "y")]),
        (8, "4x2", [((4, 2), "x"), ((4, 2), "y")]),
        (8, "8", [((8,), "x")]),
    ],
)
def test_groupings(devices: int, text: str, expected: Any) -> None:
    assert groupings(devices, text) == expected


@pytest.mark.parametrize(
    ("devices", "text", "sentence"),
    [
        (8, "3x2", "needs 6 devices, but there are 8: use 2x4, for example."),
        (7, "2x4", "needs 8 devices, but there are 7: use 7, for example."),
        *(
            (8, text, "is not a mesh of one or two axes: write 2x4, 8 or auto.")
            for text in ("2x2x2", "two", "0x8", "2x")
        ),
    ],
)
def test_a_mesh_that_does_not_factor_the_devices_is_one_sentence(devices: int, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        groupings(devices, text)
    assert str(caught.value) == f"--config.mesh.shape={text} {sentence}"


def test_a_grid_is_filled_row_by_row_and_a_group_differs_along_its_axis_only() -> None:
    mesh = grid(jax.devices(), (2, 4))
    assert mesh.axis_names == ("x", "y") and mesh.axis_types == (AxisType.Explicit, AxisType.Explicit)
    assert mesh.devices[1, 0] == jax.devices()[4] and mesh_text(mesh.devices.shape) == "2x4"
    assert grid(jax.devices()[:1], (1,)).axis_names == ("x",)
    assert groups((2, 4), "x") == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert groups((2, 4), "y") == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert groups((3,), "x") == [(0, 1, 2)] and groups((1,), "x") == [(0,)]
    assert [squarest(n) for n in (1, 2, 4, 6, 12, 16, 36)] == [(1,), (2,), (2, 2), (2, 3), (3, 4), (4, 4), (6, 6)]


# Neighbours on an axis of a mesh are neighbours in a TPU's grid; other devices keep their order.


# Trays of 2x2, as a v5e lists its devices.
TRAYS_2X4 = [(x, y, 0) for y in range(4) for x in range(2)]
TRAYS_4X4 = [(2 * X + x, 2 * Y + y, 0) for Y in range(2) for X in range(2) for y in range(2) for x in range(2)]
CUBE = [(x, y, z) for z in range(2) for y in range(2) for x in range(2)]
CASES = [
    (TRAYS_2X4, (8,), [1.5], [1.0]),
    (TRAYS_2X4, (2, 4), [2.0, 1.5], [1.0, 1.0]),
    (TRAYS_2X4[:4], (4,), [1.5], [1.0]),
    (TRAYS_4X4, (16,), [1.5], [1.0]),
    (TRAYS_4X4, (4, 4), [3.0, 1.5], [1.0, 1.0]),
    (TRAYS_4X4, (2, 8), [2.0, 1.5], [1.0, 1.25]),
    (CUBE, (8,), [1.75], [1.0]),
    (CUBE, (2, 4), [1.0, 1.5], [1.0, 1.0]),
    (CUBE, (2, 2, 2), [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
]


class Chip(SimpleNamespace):
    __hash__ = object.__hash__


def chips(coordinates):
    """TPU devices with the attributes that a mesh reads."""
    about = {"platform": "tpu", "core_on_chip": 0, "process_index": 0}
    return [Chip(id=number, coords=coords, **about) for number, coords in enumerate(coordinates)]


def mean_links(devices, shape):
    grid = np.array([device.coords for device in devices]).reshape(*shape, -1)
    return [float(np.mean(mesh.links(grid, axis))) for axis in range(len(shape))]


@pytest.mark.parametrize(("coordinates", "shape", "before", "after"), CASES)
def test_neighbours_on_every_axis_are_as_near_as_the_grid_allows(coordinates, shape, before, after):
    given = chips(coordinates)
    assert mean_links(given, shape) == before
    found = mesh.arranged(given, shape)
    assert found.shape == shape and {chip.id for chip in found.flat} == set(range(len(given)))
    assert mean_links(list(found.flat), shape) == after


def test_every_mesh_of_a_chip_set_is_laid_so():
    given = chips(TRAYS_2X4)
    assert mean_links(list(mesh.data_mesh(given, AxisType.Auto).devices.flat), (8,)) == [1.0]
    assert mean_links(list(mesh.grid(given, (2, 4)).devices.flat), (2, 4)) == [1.0, 1.0]
    assert mean_links(list(axes.mesh_of(given, {"data": 2, "tensor": 4}).devices.flat), (2, 4)) == [1.0, 1.0]


def test_slices_share_the_first_axis_of_a_mesh():
    given = chips([*TRAYS_2X4, *TRAYS_2X4])
    for number, chip in enumerate(given):
        chip.slice_index = number // 8
    found = mesh.arranged(given, (2, 8))
    assert [{chip.slice_index for chip in row} for row in found] == [{0}, {1}]
    assert all(mean_links(list(row), (8,)) == [1.0] for row in found)
    assert [chip.slice_index for chip in mesh.arranged(given, (16,))] == [0] * 8 + [1] * 8
    with pytest.raises(UserError, match="its 1 devices do not divide into 2 slices: begin the mesh with data=2"):
        mesh.arranged(given, (1, 16))


def test_cores_of_one_chip_are_neighbours():
    given = chips([(x, y, 0) for y in range(2) for x in range(2) for _ in range(2)])
    for number, chip in enumerate(given):
        chip.core_on_chip = number % 2
    found = list(mesh.arranged(given, (8,)).flat)
    where = [(*chip.coords, chip.core_on_chip) for chip in found]
    apart = [sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one, other in itertools.pairwise(where)]
    assert set(apart) == {1}


def test_devices_without_a_box_or_a_grid_keep_their_order():
    holes = chips([(0, 0, 0), (1, 0, 0), (3, 0, 0)])
    assert list(mesh.arranged(holes, (3,))) == holes
    for shape in ((8,), (2, 4), (2, 2, 2)):
        assert list(mesh.arranged(jax.devices(), shape).flat) == jax.devices()


@pytest.mark.parametrize("box", [(1,), (5,), (3, 5), (4, 4), (3, 4), (2, 3, 5), (3, 3, 3), (1, 6, 1)])
def test_a_walk_visits_each_place_once_and_goes_a_link_at_a_time(box):
    walk = mesh._ring(box)
    assert sorted(walk) == list(itertools.product(*map(range, box)))
    steps = [sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p, q in itertools.pairwise(walk)]
    assert set(steps) <= {1}
    wide = [length for length in box if length > 1]
    if len(wide) > 1 and math.prod(wide) % 2 == 0:  # such a box has a ring
        assert sum(abs(a - b) for a, b in zip(walk[0], walk[-1], strict=True)) == 1
