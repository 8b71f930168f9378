# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The groups of devices over which collectives are measured."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax.sharding import AxisType

from jaxbench.errors import UserError
from jaxbench.machine.mesh import grid, groupings, groups, mesh_text, squarest


@pytest.mark.parametrize(
    ("devices", "text", "expected"),
    [
        (8, "", [((8,), "x")]),
        (1, "auto", [((1,), "x")]),
        (2, "auto", [((2,), "x")]),
        (7, "auto", [((7,), "x")]),
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
        (8, "3x2", "--config.mesh.shape=3x2 needs 6 devices, but there are 8: use 2x4, for example."),
        (7, "2x4", "--config.mesh.shape=2x4 needs 8 devices, but there are 7: use 7, for example."),
        (8, "2x2x2", "--config.mesh.shape=2x2x2 is not a mesh of one or two axes: write 2x4, 8 or auto."),
        (8, "two", "--config.mesh.shape=two is not a mesh of one or two axes: write 2x4, 8 or auto."),
        (8, "0x8", "--config.mesh.shape=0x8 is not a mesh of one or two axes: write 2x4, 8 or auto."),
        (8, "2x", "--config.mesh.shape=2x is not a mesh of one or two axes: write 2x4, 8 or auto."),
    ],
)
def test_a_mesh_that_does_not_factor_the_devices_is_one_sentence(devices: int, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        groupings(devices, text)
    assert str(caught.value) == sentence


def test_a_group_holds_the_places_that_differ_along_its_axis_only() -> None:
    assert groups((2, 4), "x") == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert groups((2, 4), "y") == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert groups((3,), "x") == [(0, 1, 2)] and groups((1,), "x") == [(0,)]


def test_a_grid_is_filled_row_by_row_and_says_its_axis_types() -> None:
    mesh = grid(jax.devices(), (2, 4))
    assert mesh.axis_names == ("x", "y") and mesh.axis_types == (AxisType.Explicit, AxisType.Explicit)
    assert mesh.devices[1, 0] == jax.devices()[4] and mesh_text(mesh.devices.shape) == "2x4"
    assert grid(jax.devices()[:1], (1,)).axis_names == ("x",)


def test_the_squarest_mesh_has_its_longer_side_last() -> None:
    assert [squarest(n) for n in (1, 2, 4, 6, 12, 16, 36)] == [(1,), (2,), (2, 2), (2, 3), (3, 4), (4, 4), (6, 6)]
