# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Named meshes: parsing, refusals that suggest a legal mesh, and all factorizations of a device count."""

import math

import pytest

from jaxbench import parallel
from jaxbench.errors import UserError
from jaxbench.parallel import axes


def test_a_mesh_is_read_in_the_order_of_its_axes():
    assert axes.parse("tensor=2, data=4") == {"data": 4, "tensor": 2}
    assert axes.text(axes.parse("tensor=2,data=4")) == "data=4,tensor=2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("data=2,tenser=2", "did you mean 'tensor'"),
        ("data", "is not a mesh: use data=2,tensor=4"),
        ("data=0", "is not a mesh"),
        ("data=2,data=2", "is not a mesh"),
        ("context=2,stage=2", "has stages and context=2, but a pipeline takes only the axes data, fsdp, stage, tensor"),
        ("expert=2,stage=2", "has stages and expert=2"),
    ],
)
def test_an_illegal_mesh_is_refused(text, said):
    with pytest.raises(UserError, match=said):
        axes.parse(text)


def test_a_mesh_that_does_not_multiply_to_the_devices_names_one_that_does():
    with pytest.raises(UserError, match=r"data=2,tensor=2 has 4 places for 8 devices: use data=4,tensor=2,"):
        parallel.mesh_sizes("hybrid", 8, "data=2,tensor=2")
    with pytest.raises(UserError, match=r"for 2 devices: use data=2,"):
        parallel.mesh_sizes("hybrid", 2, "data=3")


def test_only_hybrid_takes_a_mesh_and_it_needs_one():
    assert parallel.mesh_sizes("tensor", 4, "strategy") == {"tensor": 4}
    assert parallel.mesh_sizes("jit_auto", 4, "strategy") == {"data": 4}
    with pytest.raises(UserError, match=r"'tensor' .*: use --config.strategy=hybrid"):
        parallel.mesh_sizes("tensor", 4, "data=4")
    with pytest.raises(UserError, match=r"use --config.lever.mesh=data=4"):
        parallel.mesh_sizes("hybrid", 4, "strategy")


@pytest.mark.parametrize("devices", [1, 2, 4, 6, 8])
def test_all_meshes_multiply_to_the_devices_and_differ(devices):
    found = axes.meshes(devices)
    assert all(math.prod(sizes.values()) == devices for sizes in found)
    assert len({axes.text(sizes) for sizes in found}) == len(found)


def test_eight_devices_have_sixteen_meshes():
    found = {axes.text(sizes) for sizes in axes.meshes(8)}
    assert len(found) == 16  # ten over three axes, twice, less the four without stage and fsdp
    assert {"data=8", "data=2,stage=2,tensor=2", "fsdp=4,tensor=2"} <= found
    assert not any("fsdp" in text and "stage" in text for text in found)
