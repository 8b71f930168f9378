# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Named meshes, such as "data=2,tensor=4": what each axis splits, and which models can be split over it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
from jax.sharding import AxisType, Mesh

from jaxbench.core.workload import Partition
from jaxbench.errors import UserError, did_you_mean
from jaxbench.machine.mesh import arranged

# Whether the devices along an axis have different examples. Ordered from outermost to innermost, because the axes that
# communicate most should connect neighbouring devices.
AXES = {
    "data": True,  # splits the batch
    "fsdp": True,  # the batch, and each parameter's elements
    "expert": True,  # the batch, and the experts
    "stage": False,  # the sequence of blocks
    "context": False,  # the positions
    "tensor": False,  # heads, hidden units and vocabulary
}
# The axes of a mesh with stages. The stages run other branches in a tick, and a ring or an exchange inside one of them
# would wait for all devices.
PIPELINED = ("data", "fsdp", "stage", "tensor")
# A model's table names the logical axis of each dimension of a parameter (`core.workload.Partition`). This maps
# logical axes to mesh axes.
LIES_ON = {"heads": "tensor", "hidden": "tensor", "vocab": "tensor", "experts": "expert"}
Sizes = Mapping[str, int]

# The axes that `meshes` combines: with a pipeline, and without. A typed mesh may have more.
TOGETHER = (("data", "stage", "tensor"), ("data", "fsdp", "tensor"))


def parse(text: str) -> dict[str, int]:
    """ "data=2,tensor=4" -> {"data": 2, "tensor": 4}, in the order of AXES. Raises UserError."""
    sizes: dict[str, int] = {}
    for word in text.split(","):
        name, equals, number = (part.strip() for part in word.partition("="))
        if name not in AXES:
            raise UserError(f"--config.lever.mesh={text} has the axis '{name}': {did_you_mean(name, list(AXES))}")
        if not equals or not number.isdecimal() or int(number) < 1 or name in sizes:
            raise UserError(f"--config.lever.mesh={text} is not a mesh: use data=2,tensor=4, for example.")
        sizes[name] = int(number)
    for name, size in sizes.items() if "stage" in sizes else ():
        if name not in PIPELINED and size > 1:
            raise UserError(
                f"--config.lever.mesh={text} has stages and {name}={size}, but a pipeline takes only the axes "
                f"{', '.join(PIPELINED)}: remove one of the two."
            )
    return {name: sizes[name] for name in AXES if name in sizes}


def text(sizes: Sizes) -> str:
    """{"data": 2, "tensor": 4} -> "data=2,tensor=4"."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def require_product(sizes: Sizes, devices: int, typed: str) -> None:
    """Raises UserError unless the mesh has exactly one position for each device. typed: what the user typed."""
    places = math.prod(sizes.values())
    if places != devices:
        rest = devices // math.gcd(devices, sizes.get("tensor", 1))  # keep as much of the typed tensor axis as divides
        near = text({"data": rest, "tensor": devices // rest} if rest < devices else {"data": devices})
        raise UserError(
            f"--config.lever.mesh={typed} has {places} places for {devices} devices: use {near}, for example."
        )


def splits(partition: Partition | None, axis: str) -> bool:
    """Whether a model can be split over a mesh axis. partition: the model's; None if it declares none."""
    if axis in ("data", "fsdp"):  # these split the batch and the state, which every model has
        return True
    if partition is None:
        return False
    if axis == "context":
        return partition.positions > 0
    if axis == "stage":
        return partition.stages is not None
    return any(LIES_ON[name] == axis for dimensions in partition.axes.values() for name in dimensions if name)


def batch_parts(sizes: Sizes) -> int:
    """The number of parts that a mesh splits the batch into."""
    return math.prod(size for name, size in sizes.items() if AXES.get(name))


def meshes(devices: int) -> list[dict[str, int]]:
    """All meshes of `devices` devices over axes that go TOGETHER, without axes of one device."""
    by_text = {text(sizes): sizes for family in TOGETHER for sizes in _factorings(devices, family)}
    return list(by_text.values()) if devices > 1 else [{"data": 1}]


def _factorings(devices: int, names: tuple[str, ...]) -> list[dict[str, int]]:
    """Every way to write `devices` as a product over the named axes, in decreasing size of the first axis."""
    if not names:
        return [{}] if devices == 1 else []
    return [
        {**({names[0]: size} if size > 1 else {}), **rest}
        for size in range(devices, 0, -1)
        if devices % size == 0
        for rest in _factorings(devices // size, names[1:])
    ]


def mesh_of(devices: list[jax.Device], sizes: Sizes) -> Mesh:
    """The mesh with these axes. Neighbours along the last axis are neighbouring devices."""
    # Axes of type Auto: `shard_map` writes the step by hand, and a gathered update is left to the compiler.
    places = arranged(devices, tuple(sizes.values()))
    return Mesh(places, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
