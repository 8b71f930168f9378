# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The collectives of a compiled step, to be run alone with their payloads.

A step that somebody else compiled has no jaxpr in which its collectives are written: the compiler places them. So they
are read from the text of the compiled step.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxbench.core.program import Program
from jaxbench.core.schema import COLLECTIVES
from jaxbench.errors import Unsupported
from jaxbench.features.ablations.programs import CollectiveLoop, CompiledCall, Item, sending
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import Instruction, Module
from jaxbench.parallel.step import keep_barriers

_DIMENSION = re.compile(r"(?:dimensions|split_dimension)=\{?(\d+)")
# XLA's names of types, where they differ from NumPy's by more than the letter: bf16, f32, s32, u8, pred, f8e4m3fn.
_LETTERS = {"f": "float", "s": "int", "u": "uint", "bf": "bfloat", "c": "complex"}


def dtype_of(name: str) -> np.dtype:
    """ "f32" -> float32. A truth value travels as a byte."""
    letters, digits, more = re.fullmatch(r"([a-z]+)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    if letters == "pred":  # a sum of truth values would be another operation
        return jnp.dtype("uint8")
    return jnp.dtype(f"{_LETTERS[letters]}{digits}{'_' + more if more else ''}")


def communication(module: Module, mesh: Mesh) -> Program:
    """The Program that sends what the compiled module sends. Raises Unsupported for what it cannot send."""
    # The same devices and axes, without the types that a user's mesh may give to its axes.
    mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    items, _ = _items(module, module.entry, mesh)
    return Program(mesh=mesh, put=lambda batch: {}, disabled_passes=keep_barriers(mesh), **sending(items, mesh))


def _items(module: Module, computation: str, mesh: Mesh) -> tuple[list[Item], int]:
    """(the collectives of a computation, how many of them follow each other)."""
    items: list[Item] = []
    rank: dict[str, int] = {}
    for line in module.lines(computation):
        # A collective that needs the result of another one must follow it here, too: both at once would be faster.
        before = max((rank[name] for name in line.references if name in rank), default=0)
        rank[line.name] = before
        if line.kind in COLLECTIVES and not collective_counts.continued(line):
            items.append(_call(line, module, mesh, before))
            rank[line.name] = before + 1
        elif line.opcode == "while":
            inside, _ = _items(module, line.body, mesh)
            if inside:
                items.append(CollectiveLoop(tuple(inside), module.trip_count(line) or 1, before))
                rank[line.name] = before + 1
        elif line.opcode in ("call", "conditional"):
            branches = [_items(module, name, mesh) for name in line.called if name in module.computations]
            # Which branch runs is not in the text, so the one that sends most counts.
            if branches and (most := max(branches, key=lambda branch: len(branch[0])))[0]:
                items += [dataclasses.replace(item, rank=item.rank + before) for item in most[0]]
                rank[line.name] = before + most[1]
    return items, max(rank.values(), default=0)


def _call(line: Instruction, module: Module, mesh: Mesh, rank: int) -> CompiledCall:
    """A collective of the compiled step as one that can be called alone. Raises Unsupported."""
    groups = collective_counts.replica_groups(line.rest, mesh.size)
    axis = collective_counts.axes_of(groups, dict(mesh.shape), pairs=line.kind == "collective-permute")
    if not axis and line.kind != "collective-permute":
        raise Unsupported(f"it has a {line.kind} over devices that are no axes of its mesh")
    arrays = [a for name in line.operands if name in module.instructions for a in module.instructions[name].arrays]
    avals = [jax.ShapeDtypeStruct(a.shape, dtype_of(a.dtype)) for a in arrays]
    if line.kind == "all-to-all" and len(avals) > 1:  # XLA passes one operand for each device of a group
        first = avals[0]
        avals = [jax.ShapeDtypeStruct((len(avals) * math.prod(first.shape),), first.dtype)]
    axes, found = tuple(axis.split("+")), _DIMENSION.search(line.rest.split("), ", 1)[-1])
    dimension = int(found[1]) if found else 0
    by_kind: dict[str, Callable[[jax.Array], jax.Array]] = {
        "all-gather": lambda x: jax.lax.all_gather(x, axes, axis=dimension, tiled=True),
        "reduce-scatter": lambda x: jax.lax.psum_scatter(x, axes, scatter_dimension=dimension, tiled=True),
        "all-to-all": lambda x: jax.lax.all_to_all(x, axes, dimension, dimension, tiled=True),
        "collective-permute": lambda x: jax.lax.ppermute(x, mesh.axis_names, [(a, b) for a, b in groups or ()]),
    }
    if line.kind == "all-reduce":  # one call for all arrays: XLA has combined them into one message
        return CompiledCall(avals, rank, lambda payload: [*jax.lax.psum(payload, axes)])
    if line.kind not in by_kind:
        raise Unsupported(f"it has a {line.kind}, which is not measured alone")
    return CompiledCall(avals, rank, lambda payload: [*map(by_kind[line.kind], payload)])
