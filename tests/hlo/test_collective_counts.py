# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Collective counts from HLO text in every form that XLA's three compilers print, and those that can wait at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.core.schema import Collective
from jaxbench.errors import MoreCollectives
from jaxbench.hlo import collective_counts
from jaxbench.hlo.collective_counts import concurrent_collectives
from jaxbench.hlo.module import Module, parse
from jaxbench.machine.mesh import data_mesh
from jaxbench.machine.start import require_threads, threads

HLO = """
  %all-reduce.2 = (f32[3,8]{1,0}, f32[]) all-reduce(%dot.1, %fusion), replica_groups={{0,1}}, to_apply=%add
  %get-tuple-element = f32[3,8]{1,0} get-tuple-element(%all-reduce.2), index=0
  %ar-start = bf16[16]{0} all-reduce-start(%p), replica_groups={{0,1}}
  %ar-done = bf16[16]{0} all-reduce-done(%ar-start)
  %ag-start = (f32[4]{0}, f32[8]{0}) all-gather-start(%p), replica_groups={{0,1}}, dimensions={0}
  %ag-done = f32[8]{0} all-gather-done(%ag-start)
  ROOT %cp = u8[5]{0:T(128)} collective-permute(%x), source_target_pairs={{0,1},{1,0}}
"""


def test_counts_and_bytes():
    where: dict = {"axis": "data", "group": 2}
    scalars: dict = {"scalar_bytes": 4, "scalars": 1}
    assert collective_counts.count(parse(HLO), {"data": 2}) == (
        Collective(kind="all-gather", count=1, bytes=32, elements=8, wire_bytes=16, **where),
        Collective(
            kind="all-reduce", count=3, bytes=96 + 4 + 32, elements=24 + 16, wire_bytes=132, **scalars, **where
        ),
        Collective(kind="collective-permute", count=1, bytes=5, elements=5, wire_bytes=5, **where),
    )  # fmt: skip


def test_a_text_without_a_mesh_is_counted_and_not_placed():
    (permuted,) = [each for each in collective_counts.count(parse(HLO)) if each.kind == "collective-permute"]
    assert (permuted.bytes, permuted.axis, permuted.group) == (5, "", 0)


@pytest.mark.parametrize(
    ("start", "done", "numbers"),
    [
        (  # a TPU's: operand, result and two contexts
            "(f32[6363]{0:T(1024)S(1)}, f32[6363]{0:T(1024)S(1)}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start",
            "f32[6363]{0:T(1024)S(1)} collective-permute-done",
            6363,
        ),
        (  # a GPU's: the operands in a tuple of their own
            "((f32[16,1,5,16]{3,2,1,0}), f32[16,1,5,16]{3,2,1,0}) all-to-all-start",
            "f32[16,1,5,16]{3,2,1,0} all-to-all-done",
            1280,
        ),
        (
            "((f32[64]{0}, f32[16]{0}), (f32[8]{0}, f32[2]{0})) reduce-scatter-start",
            "(f32[8]{0}, f32[2]{0}) reduce-scatter-done",
            10,
        ),
    ],
)
def test_an_asynchronous_pair_is_what_its_done_gives(start, done, numbers):
    text = f"  %s = {start}(%x), channel_id=1\n  %d = {done}(%s)\n"
    (pair,) = collective_counts.count(parse(text))
    (fragment,) = collective_counts.count(parse(text.splitlines()[0]))  # by the type of the start alone
    assert pair.elements == fragment.elements == numbers and pair.scalars == fragment.scalars == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replica_groups={{0,2},{1,3}}, x", ((0, 2), (1, 3))),
        ("replica_groups={}, x", ((0, 1, 2, 3),)),
        ("replica_groups=[2,2]<=[4], x", ((0, 1), (2, 3))),
        ("replica_groups=[2,2]<=[2,2]T(1,0), x", ((0, 2), (1, 3))),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=2] {'axis_1'}, x", ((0, 1), (2, 3))),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=1] {'axis_0'}, x", ((0, 1, 2, 3),)),
        ("source_target_pairs={{0,1},{1,0}}, x", ((0, 1), (1, 0))),
        ("no groups at all", None),
    ],
)
def test_groups_in_every_form(text, expected):
    assert collective_counts.replica_groups(text, 4) == expected


def test_groups_are_named_by_the_axes_that_they_are_along():
    mesh = {"data": 2, "fsdp": 1, "tensor": 4}
    rows, columns = ((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))
    assert collective_counts.axes_of(rows, mesh, pairs=False) == "tensor"
    assert collective_counts.axes_of(columns, mesh, pairs=False) == "data"
    assert collective_counts.axes_of((tuple(range(8)),), mesh, pairs=False) == "data+tensor"
    assert collective_counts.axes_of(((0, 1), (1, 2), (2, 3), (3, 0)), mesh, pairs=True) == "tensor"
    assert collective_counts.axes_of(((0, 3), (1, 2)), mesh, pairs=False) == ""


AROUND = [(i, (i + 1) % 8) for i in range(8)]


def permuted(x: jax.Array) -> jax.Array:
    return jax.lax.ppermute(x, "data", AROUND)


def compiled(function, arrays: int) -> Module:
    mesh = data_mesh(jax.devices(), AxisType.Auto)
    split = NamedSharding(mesh, PartitionSpec("data"))
    given = [jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=split)] * arrays
    step = jax.shard_map(function, mesh=mesh, in_specs=PartitionSpec("data"), out_specs=PartitionSpec("data"))
    return parse(jax.jit(step).lower(*given).compile().as_text())


def chain(x, times):
    for _ in range(times):
        x = jnp.sin(permuted(x))
    return x


@pytest.mark.parametrize(
    ("function", "arrays", "expected"),
    [
        (lambda x: jnp.sin(x), 1, 0),
        (lambda x: chain(x, 4), 1, 1),
        (lambda x, y: (chain(x, 3), chain(y, 2)), 2, 2),
        (lambda x, y, z: permuted(jnp.sin(permuted(x)) + permuted(y) * permuted(z)), 3, 3),
        (lambda x: jax.lax.fori_loop(0, 5, lambda _, x: chain(x, 2), x), 1, 1),
        (lambda x, y: (jax.lax.fori_loop(0, 5, lambda _, x: chain(x, 2), x), permuted(y)), 2, 2),
        (lambda x, y: jax.lax.fori_loop(0, 5, lambda _, xy: (chain(xy[0], 1), chain(xy[1], 2)), (x, y)), 2, 2),
    ],
)
def test_the_widest_place_of_a_program(function, arrays, expected):
    assert concurrent_collectives(Module()) == 0
    assert concurrent_collectives(compiled(function, arrays)) == expected


def test_two_threads_a_device_for_one_collective_at_once_or_a_program_could_hang(monkeypatch):
    assert [threads(devices, 1) for devices in (1, 2, 4, 8)] == [1, 4, 8, 16]
    assert threads(2, 6) == 9 and threads(1, 6) == 1
    monkeypatch.setenv("NPROC", str(threads(8, 2)))
    require_threads(8, 2)
    require_threads(1, 99)
    with pytest.raises(MoreCollectives, match="3 collectives") as raised:
        require_threads(8, 3)
    assert raised.value.count == 3
