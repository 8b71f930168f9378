# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Counts the collectives of a compiled program, by kind and mesh axis.

Compilers emit different programs for the same step. The CPU compiler keeps arrays separate. The GPU compiler
concatenates gradients, loss and metrics into one array, and splits a collective into a start and a done. The TPU
compiler also drops dimensions of size 1, and runs a collective in several consecutive fusions. In each case a
collective is counted once. Its program for several slices is that of one slice: groups are within the slice, and what
slices send to each other is a pair of a send and a receive by the host, with the collective in its attributes. `flat`
gives what one program over all devices would send.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from jaxbench.core.schema import COLLECTIVES, Collective
from jaxbench.hlo.module import Array, Instruction, Module, arrays

# When a TPU overlaps a collective with other work, the start has -1 here. The fusions that continue it do not.
_CONTINUED = re.compile(r'"async_collective_fusion_config":\{"flag_start":"(?!-1)')
_CONTEXTS = re.compile(r"u32\[\](\{[^}]*\})?")  # in the type of a start, after its operands and results
# {{0,1},{2,3}} | [2,4]<=[8] | [4,2]<=[2,4]T(1,0) | mesh['a'=2,'b'=4] {'b'}
_LISTED = re.compile(r"replica_groups=\{(\{[\d,{} ]*\})?\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_NAMED = re.compile(r"replica_groups=(?:@?\w*)?\[([^\]]*)\]\s*\{([^}]*)\}")
_AXIS = re.compile(r"'([^']+)'(?:=(\d+))?")
_SLICES = re.compile(r'rendezvous="([^"]*)".*_xla_megascale_target=(.*),_xla_megascale_transfer_type="(\w+)"')
_PLACE = 100_000  # slices are counted in these in the numbers of devices
_BETWEEN = " between slices"  # of the first axis, whether or not it goes on within slices
_SUMS = ("all-reduce", "reduce-scatter")
_GRADIENTS = {"context", "expert"}  # axes over which gradients are summed together with those over the first axis
_SAME = ("bitcast", "copy", "copy-start", "copy-done")  # leave the numbers of an array as they are
_TILE = 1024  # numbers of 32 bits
_PAIRS = re.compile(r"source_target_pairs=\{(\{[\d,{} ]*\})\}")

Groups = tuple[tuple[int, ...], ...]  # places of devices in the mesh, row by row


def count(module: Module, mesh: Mapping[str, int] | None = None) -> tuple[Collective, ...]:
    """The collectives of a program: one entry for each kind and mesh axis.

    Bytes are those of one device's results, summed over the operands that XLA combined into one instruction. A
    collective in a loop counts once per iteration, or once if the number of iterations is unknown. A collective in a
    branch counts as if the branch were taken. An asynchronous pair counts at its -start, with the type of its -done.

    mesh: devices by axis, in the order of the program's devices. None: the axes of groups are not named.
    """
    turns = module.turns()
    results: dict[tuple[str, str, int], list[Array]] = {}
    packed: Counter[tuple[str, str, int]] = Counter()
    tiles: Counter[tuple[str, str, int]] = Counter()  # bytes that slices send to fill tiles
    for computation in module.computations:
        lines = module.lines(computation)
        # By operand, the instruction that uses it: for a -start this is its -done.
        done = {operand: line for line in lines for operand in line.operands}
        for line in lines:
            if line.opcode == "send" and (between := between_slices(line)) is not None:
                key = between[1], _across(mesh or {}, *between[2:]), between[3]
                sent, unpadded = _between(line, module)
                results.setdefault(key, []).extend([unpadded] * turns[computation])
                tiles[key] += (sent.bytes - unpadded.bytes) * turns[computation]
            if line.kind in COLLECTIVES and not continued(line):
                key = line.kind, *_axis(line, mesh or {})
                results.setdefault(key, []).extend(_results(line, module, done.get(line.name)) * turns[computation])
                packed[key] += _packed(line) * turns[computation]
    return tuple(_collective(*key, results[key], packed[key], tiles[key]) for key in sorted(results))


def continued(line: Instruction) -> bool:
    """Whether the instruction continues a TPU collective that another instruction started."""
    return _CONTINUED.search(line.rest) is not None


def of_instruction(
    line: Instruction, module: Module, mesh: Mapping[str, int], done: Instruction | None = None
) -> tuple[Collective, int]:
    """(the collective of one instruction, as `count` counts it; the stride of its first group of devices).

    The stride is the distance between two neighbours of the group in the order of the program's devices; 0 if unknown.
    The group of a permutation has the devices that its pairs join, directly or through others: if neighbours swap, two.
    done: the end of an asynchronous pair."""
    members = replica_groups(line.rest, math.prod(mesh.values()))
    first = sorted(members[0]) if members else []
    stride = first[1] - first[0] if len(first) > 1 else 0
    collective = _collective(line.kind, *_axis(line, mesh), _results(line, module, done), _packed(line))
    if line.kind == "collective-permute" and members and collective.group:
        collective = dataclasses.replace(collective, group=len(_reached(members)))
    return collective, stride


def _reached(pairs: Groups) -> set[int]:
    """The devices that the first pair of a permutation joins, directly or through others."""
    found, last = set(pairs[0]), 0
    while len(found) > last:
        last = len(found)
        found |= {device for pair in pairs if found & {*pair} for device in pair}
    return found


def between_slices(line: Instruction) -> tuple[str, str, int, int] | None:
    """(name, kind, slices, members) of a collective between slices, from any of its instructions; None for others.

    members: the devices of one group. A group has one device of each slice in the text "{1,2}x{0:3}" (slices x places
    in each) and in {{100002->200000},{200002->100000}} (pairs of a permutation). {{100000,100001,200000,200001}} lists
    a group with several.
    """
    found = _SLICES.search(line.rest)
    if found is None:
        return None
    kind = found[3].lower().replace("_", "-")
    kind = kind if kind in COLLECTIVES else "collective-permute"
    if product := re.match(r'"\{([^}]*)\}x', found[2]):
        slices = members = sum(map(_members, product[1].split(",")))
    else:
        numbers = [int(number) for number in re.findall(r"\d+", found[2])]
        slices = len({number // _PLACE for number in numbers})
        members = slices if "->" in found[2] else found[2].partition("}")[0].count(",") + 1
    return found[1], kind, slices, members


def _members(text: str) -> int:
    """ "3" -> 1, "0:3" -> 4."""
    first, _, last = text.partition(":")
    return int(last) - int(first) + 1 if last else 1


def of_slices(line: Instruction, module: Module, mesh: Mapping[str, int]) -> tuple[Collective, int] | None:
    """As `of_instruction`, for the send of a collective between slices; None for another instruction."""
    found = between_slices(line)
    if found is None:
        return None
    _, kind, slices, members = found
    sent, unpadded = _between(line, module)
    collective = _collective(kind, _across(mesh, slices, members), members, [unpadded], 0, sent.bytes - unpadded.bytes)
    return collective, math.prod(mesh.values()) // members


def _between(send: Instruction, module: Module) -> tuple[Array, Array]:
    """(the array that a collective between slices results in, the same without what fills its last tiles)."""
    name, kind, slices, _ = between_slices(send) or ("", "", 1, 1)
    received = (each for each in module.instructions.values() if each.opcode == "recv" and f'"{name}"' in each.rest)
    result = next(received, send).arrays[0]
    summed = _unpadded(send.operands[0], module) if kind in _SUMS else None
    if summed is not None and kind == "reduce-scatter":
        summed = dataclasses.replace(summed, shape=(summed.size // slices,))
    return result, summed or result


def _unpadded(operand: str, module: Module) -> Array | None:
    """The array that a TPU extended to whole tiles before it was sent; None if it was not extended."""
    line = module.instructions.get(operand)
    while line is not None and line.target != "ZeroCrop":
        source = module.instructions.get(line.operands[0]) if line.operands else None
        if line.opcode in _SAME or (line.opcode == "all-reduce" and len(line.operands) == 1):
            line = source
        elif line.opcode == "get-tuple-element" and source is not None and source.opcode == "all-reduce":
            line = module.instructions.get(source.operands[int(line.attributes["index"])])
        else:
            return None
    return module.instructions[line.operands[0]].arrays[0] if line is not None else None


def _across(mesh: Mapping[str, int], slices: int, members: int) -> str:
    """The name of what a group across slices spans: all of the first axis, or the part of it between slices."""
    return next(iter(mesh), "") + _BETWEEN * (members == slices)


def flat(collectives: Iterable[Collective]) -> tuple[Collective, ...]:
    """The collectives of the same step if its devices were in one slice, from those of several.

    Over an axis that spans slices and goes on within them, the compiler sums whole arrays in each slice, then each
    device's part of them between slices, and gathers the parts; small arrays it sums whole. That is one all-reduce. A
    permutation is one too: a device receives within its slice or from another.
    """
    collectives = tuple(collectives)
    between = [each for each in collectives if each.axis.endswith(_BETWEEN)]
    spans = between[0].axis.removesuffix(_BETWEEN) if between else ""
    within = [each for each in collectives if spans in each.axis.split("+") and each.kind != "all-to-all"]
    if not within or not between:
        return _joined(collectives)
    sums = [each for each in within if each.kind in _SUMS]
    gathers = [each for each in within if each.kind == "all-gather"]
    whole = sum(_whole(each) for each in sums)
    both = sum(_whole(each) for each in between if each.kind in _SUMS)
    if any(each.kind == "all-gather" for each in between):
        both, gathers = both * max(each.group for each in within), []  # parameters are gathered, and no sum need be
    else:  # what is gathered was sent between slices in parts, the rest whole
        both += sum(each.elements - each.elements // each.group for each in gathers)
        # Parts of an array that slices sum by all-reduce are filled up to tiles.
        gathers = gathers if sum(each.elements for each in gathers) <= whole + _tiles(sums) else []
    numbers = min(whole, both)
    return (
        _one(within[0].axis, sums, numbers),
        *(each for each in collectives if each not in (*sums, *gathers, *between)),
    )


def divided(collectives: tuple[Collective, ...]) -> int:
    """How many numbers devices of a slice divide among them before slices sum their parts; 0 in a single slice."""
    between = any(each.axis.endswith(_BETWEEN) and each.kind in _SUMS for each in collectives)
    return between * sum(each.elements for each in collectives if each.kind == "all-gather")


def _joined(collectives: tuple[Collective, ...]) -> tuple[Collective, ...]:
    """As `flat`, if the first axis is that of the slices: a sum over it and over axes within the slices is one sum.

    Over the axes `_GRADIENTS` no parameter is gathered, so what is gathered there are the parts that slices summed.
    """
    for axis in dict.fromkeys(each.axis for each in collectives if _GRADIENTS & {*each.axis.split("+")}):
        sums = [each for each in collectives if each.axis == axis and each.kind in _SUMS]
        gathers = [each for each in collectives if each.axis == axis and each.kind == "all-gather"]
        between = next((each for each in collectives if each.axis.endswith(_BETWEEN) and each.kind in _SUMS), None)
        if between is None or not sums:
            continue
        whole, gathered = sum(map(_whole, sums)), sum(each.elements for each in gathers)
        # The parts that devices of a slice send are filled up to tiles.
        filled = min(max(0, gathered - whole), _tiles(sums))
        rest = _whole(between) - (whole + filled - gathered + gathered // sums[0].group)
        if rest >= 0:
            made = _one(axis, sums, whole), _one(between.axis, [between], rest)
            collectives = (*made, *(each for each in collectives if each not in (*sums, *gathers, between)))
    return collectives


def _tiles(sums: list[Collective]) -> int:
    """The largest number of zeros that fill the parts of arrays that slices sum by all-reduce."""
    return sum(_TILE * each.group * each.count for each in sums if each.kind == "all-reduce")


def _one(axis: str, sums: list[Collective], numbers: int) -> Collective:
    """One all-reduce of this many of the numbers that are summed."""
    size = sum(each.bytes * _whole(each) // max(1, each.elements + each.scalars) for each in sums)
    whole = max(1, sum(map(_whole, sums)))
    return Collective(kind="all-reduce", count=1, axis=axis, elements=numbers, bytes=size * numbers // whole)


def _whole(summed: Collective) -> int:
    """The numbers of the arrays that an all-reduce or a reduce-scatter sums, all parts of each."""
    return (summed.elements + summed.scalars) * (summed.group if summed.kind == "reduce-scatter" else 1)


def kinds(module: Module) -> tuple[str, ...]:
    """The kinds of collective in a program."""
    opcodes = {line.kind for line in module.instructions.values()}
    return tuple(kind for kind in COLLECTIVES if kind in opcodes)


def _axis(line: Instruction, mesh: Mapping[str, int]) -> tuple[str, int]:
    """(mesh axis, devices in a group); "" and 0 if unknown."""
    groups, pairs = replica_groups(line.rest, math.prod(mesh.values())), line.kind == "collective-permute"
    if groups and not pairs:
        mesh = _of_slice(mesh, sum(map(len, groups)))
    axis = axes_of(groups, mesh, pairs=pairs)
    if pairs:
        # A permutation has pairs of devices, not groups. Its group size is that of the axes that its pairs span.
        return axis, math.prod(mesh[name] for name in axis.split("+")) if axis else 0
    return axis, len(groups[0]) if groups else 0


def _of_slice(mesh: Mapping[str, int], devices: int) -> Mapping[str, int]:
    """The part of a mesh on one slice of `devices` devices, if slices share its first axis."""
    slices = math.prod(mesh.values()) // max(1, devices)
    first = next(iter(mesh), "")
    return {**mesh, first: mesh[first] // slices} if slices > 1 and mesh[first] % slices == 0 else mesh


def _packed(line: Instruction) -> int:
    """The number of elements of an all-reduce that each hold a pair of numbers."""
    # A TPU, which cannot add float16, sums it as pairs of numbers in one u32, in whole tiles of 128.
    if line.opcode != "all-reduce":
        return 0
    return sum(a.size for a in line.arrays if a.dtype == "u32" and a.shape and "T(" in a.layout and a.size % 128 == 0)


def _results(line: Instruction, module: Module, done: Instruction | None) -> list[Array]:
    """The results of one instruction, or of one asynchronous pair."""
    operands = line.operands
    if line.opcode == "all-reduce" and len(operands) == 1 and "T(" in line.type:  # T(: a TPU's tiles
        # XLA for a TPU writes a reduce-scatter as an all-reduce of a padded array if its parts do not fill whole tiles.
        padded = module.instructions.get(operands[0])
        if padded is not None and padded.opcode == "pad":
            return list(module.instructions[padded.operands[0]].arrays)
    if line.opcode == "all-reduce" and len(line.operands) == len(line.arrays):
        return [_unpadded(name, module) or array for name, array in zip(line.operands, line.arrays, strict=True)]
    if not line.opcode.endswith("-start"):
        return list(line.arrays)
    if done is not None and done.opcode == f"{line.kind}-done":
        return list(done.arrays)
    # Without a done, the results are taken from the start. Its type is (operands..., results..., contexts...), except
    # for an all-reduce: (results...).
    found = list(arrays(_CONTEXTS.sub("", line.type)))
    return found if line.kind == "all-reduce" else found[len(found) // 2 :]


def _collective(kind: str, axis: str, group: int, results: list[Array], packed: int, tiles: int = 0) -> Collective:
    """tiles: bytes that are sent in addition to the results, to fill whole tiles."""
    size, scalars = sum(array.bytes for array in results), [array for array in results if not array.shape]
    return Collective(
        kind=kind,
        count=len(results),
        bytes=size,
        elements=sum(array.size for array in results) - len(scalars),
        scalar_bytes=sum(array.bytes for array in scalars),
        axis=axis,
        group=group,
        scalars=len(scalars),
        wire_bytes=round((size + tiles) * sent(kind, group)),
        packed=packed,
    )


def sent(kind: str, group: int) -> float:
    """The bytes that each device of a group sends, divided by the bytes of its result; 0 if the group is unknown.

    The bytes are those of the algorithm that sends least.
    """
    if kind in ("collective-permute", "collective-broadcast"):
        return 1.0
    if group < 1:
        return 0.0
    # The result of a reduce-scatter is 1 / group of its operand, so its factor is larger. The last factor is that of an
    # all-gather or all-to-all.
    return {"all-reduce": 2 * (group - 1) / group, "reduce-scatter": float(group - 1)}.get(kind, (group - 1) / group)


def replica_groups(rest: str, devices: int) -> Groups | None:
    """The groups of a collective, from the text after its operands; None if the text does not tell.

    devices: the number of the program's devices; an empty list of groups means all of them. A permutation gives its
    (source, target) pairs.
    """
    if match := _PAIRS.search(rest) or _LISTED.search(rest):
        inner = match[1] or ""
        listed = tuple(tuple(map(int, group.split(","))) for group in re.findall(r"\{([\d,]+)\}", inner))
        return listed or (tuple(range(devices)),)
    if match := _IOTA.search(rest):
        shape, source = (tuple(map(int, match[i].split(","))) for i in (1, 2))
        places = np.arange(math.prod(source)).reshape(source)
        places = places.transpose(tuple(map(int, match[3].split(",")))) if match[3] else places
        return _rows_as_groups(places.reshape(shape))
    if match := _NAMED.search(rest):
        sizes = {name: int(size) for name, size in _AXIS.findall(match[1]) if size}
        over = [name for name, _ in _AXIS.findall(match[2])]
        if set(over) <= set(sizes) and ":" not in match[2]:
            return _along(sizes, tuple(over))
    return None


def axes_of(groups: Groups | None, mesh: Mapping[str, int], *, pairs: bool) -> str:
    """The mesh axes that groups span, such as "data" or "data+tensor"; "" if they match no axes.

    mesh: devices by axis. pairs: the groups are the (source, target) pairs of a permutation.
    """
    names = [name for name, size in mesh.items() if size > 1]
    if groups is None:
        return ""
    # Few axes first: a group over one axis is also a group over that axis and another one of size 1.
    for count in range(1, len(names) + 1):
        for over in itertools.combinations(names, count):
            along = [frozenset(group) for group in _along(mesh, over)]
            if pairs and all(any({*pair} <= group for group in along) for pair in groups):
                return "+".join(over)
            if not pairs and {frozenset(group) for group in groups} == {*along}:
                return "+".join(over)
    return ""


def _along(mesh: Mapping[str, int], over: tuple[str, ...]) -> Groups:
    """The device positions of a mesh that differ only in the axes `over`, group by group."""
    places = np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    last = [list(mesh).index(name) for name in over]
    moved = np.moveaxis(places, last, range(-len(last), 0))
    return _rows_as_groups(moved.reshape(-1, math.prod(mesh[name] for name in over)))


def _rows_as_groups(places: np.ndarray) -> Groups:
    return tuple(tuple(row) for row in places.tolist())
