# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Collective counts from HLO text in every form that XLA's three compilers print."""

from __future__ import annotations

import pytest

from jaxbench.core.schema import Collective
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import parse

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


@pytest.mark.parametrize(("groups", "stride"), [("{{1,3},{0,2}}", 2), ("{{5,4},{7,6}}", 1), ("{{3},{2}}", 0)])
def test_the_stride_of_a_group_is_the_distance_of_its_neighbours(groups, stride):
    module = parse(f"  %all-reduce.1 = f32[8]{{0}} all-reduce(%x), replica_groups={groups}, to_apply=%add\n")
    (line,) = module.instructions.values()
    assert collective_counts.of_instruction(line, module, {"data": 8})[1] == stride


@pytest.mark.parametrize(
    ("pairs", "group", "stride"),
    [
        ("{{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}", 8, 1),
        ("{{0,4},{1,5},{2,6},{3,7},{4,0},{5,1},{6,2},{7,3}}", 2, 4),
        ("{{0,2},{1,3},{2,4},{3,5},{4,6},{5,7},{6,0},{7,1}}", 4, 2),
    ],
    ids=["ring", "neighbours that swap", "two rings"],
)
def test_a_permutation_has_the_group_that_its_pairs_join(pairs, group, stride):
    """By it a forecast knows whether messages leave a host."""
    text = f"  %collective-permute.1 = f32[8]{{0}} collective-permute(%x), source_target_pairs={pairs}\n"
    module = parse(text)
    (line,) = module.instructions.values()
    found, distance = collective_counts.of_instruction(line, module, {"context": 8})
    assert (found.group, distance, found.axis) == (group, stride, "context")
    assert [each.group for each in collective_counts.count(module, {"context": 8})] == [8]


@pytest.mark.parametrize(
    ("target", "slices", "members"),
    [
        ('"{1,2}x{0:3}"', 2, 2),
        ('"{0:3}x{0:1}"', 4, 4),
        ("{{100002->200000},{200002->100000}}", 2, 2),
        ("{{100000,100001,200000,200001}}", 2, 4),
    ],
)
def test_the_slices_and_members_of_a_collective_between_slices(target, slices, members):
    attributes = (
        f'_xla_host_transfer_rendezvous="x_0",_xla_megascale_target={target},_xla_megascale_transfer_type="ALL_REDUCE"'
    )
    module = parse(f"  %send = (f32[8]{{0}}, u32[]) send(%x), frontend_attributes={{{attributes}}}\n")
    (line,) = module.instructions.values()
    assert collective_counts.between_slices(line) == ("x_0", "all-reduce", slices, members)


def test_groups_are_named_by_the_axes_that_they_are_along():
    mesh = {"data": 2, "fsdp": 1, "tensor": 4}
    rows, columns = ((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))
    assert collective_counts.axes_of(rows, mesh, pairs=False) == "tensor"
    assert collective_counts.axes_of(columns, mesh, pairs=False) == "data"
    assert collective_counts.axes_of((tuple(range(8)),), mesh, pairs=False) == "data+tensor"
    assert collective_counts.axes_of(((0, 1), (1, 2), (2, 3), (3, 0)), mesh, pairs=True) == "tensor"
    assert collective_counts.axes_of(((0, 3), (1, 2)), mesh, pairs=False) == ""
