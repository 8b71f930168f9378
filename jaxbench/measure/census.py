# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Collective counts: the collectives of a compiled module, with their number, bytes, kind and mesh axis.

Compilers emit different programs for the same step. The CPU compiler keeps arrays separate. The GPU compiler
concatenates gradients, loss and metrics into one array, and splits a collective into a start and a done. The TPU
compiler also drops dimensions of size 1, and runs a collective in several consecutive fusions. In each case a
collective is counted once.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from jaxbench.measure import groups
from jaxbench.measure.hlo import Instruction, Module, parse
from jaxbench.records.schema import COLLECTIVES, Collective

KINDS = COLLECTIVES

_ARRAY = re.compile(r"\b(?P<dtype>pred|[sufc]\d+|bf16|f8\w+)\[(?P<shape>[\d,]*)\]")
# When a TPU overlaps a collective with other work, the start has -1 here. The fusions that continue it do not.
_CONTINUED = re.compile(r'"async_collective_fusion_config":\{"flag_start":"(?!-1)')
# A TPU, which cannot add float16, sums it as pairs of numbers in one u32, in whole tiles of 128.
_PAIRS = re.compile(r"\bu32\[((?:\d+,)*\d+)\]\{[^}]*T\(")
_CONTEXTS = re.compile(r"u32\[\](\{[^}]*\})?")  # in the type of a start, after its operands and results


def read(hlo: str, mesh: Mapping[str, int] | None = None) -> tuple[Collective, ...]:
    """The collectives in the optimized HLO text of one module: one entry for each kind and mesh axis.

    Bytes are those of one device's results, summed over the operands that XLA combined into one instruction. A
    collective in a loop counts once per iteration, or once if the number of iterations is unknown. A collective in a
    branch counts as if the branch were taken. An asynchronous pair counts at its -start, with the type of its -done.

    mesh: devices by axis, in the order of the program's devices. None: the axes of groups are not named.
    """
    module = parse(hlo)
    turns, devices = module.turns(), math.prod((mesh or {}).values())
    collectives: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    packed: Counter[tuple[str, str, int]] = Counter()
    for computation, names in module.computations.items():
        # By operand, the instruction that uses it: for a -start this is its -done.
        done = {operand: line for line in map(module.instructions.__getitem__, names) for operand in line.operands}
        for line in map(module.instructions.__getitem__, names):
            kind = line.opcode.removesuffix("-start")
            if kind not in KINDS or continued(line):
                continue
            axis, group = _place(kind, line, mesh or {}, devices)
            arrays = _without_padding(line, module) or _results(line, done.get(line.name))
            collectives.setdefault((kind, axis, group), []).extend(arrays * turns[computation])
            packed[kind, axis, group] += _pairs(line) * turns[computation]
    return tuple(_sum(*where, arrays, packed[where]) for where, arrays in sorted(collectives.items()))


def continued(line: Instruction) -> bool:
    """Whether the instruction continues a TPU collective that another instruction started."""
    return _CONTINUED.search(line.rest) is not None


def one(
    line: Instruction, module: Module, mesh: Mapping[str, int], done: Instruction | None = None
) -> tuple[Collective, int]:
    """(the collective of one instruction, as `read` counts it; the stride of its first group of devices).

    The stride is the distance between two neighbours of the group in the order of the program's devices; 0 if unknown.
    done: the end of an asynchronous pair."""
    devices, kind = math.prod(mesh.values()), line.opcode.removesuffix("-start")
    axis, group = _place(kind, line, mesh, devices)
    arrays = _without_padding(line, module) or _results(line, done)
    members = groups.read(line.rest, devices)
    first = sorted(members[0]) if members else []
    return _sum(kind, axis, group, arrays, _pairs(line)), first[1] - first[0] if len(first) > 1 else 0


def kinds(hlo: str) -> tuple[str, ...]:
    """The kinds of collective in optimized HLO text."""
    opcodes = {line.opcode.removesuffix("-start") for line in parse(hlo).instructions.values()}
    return tuple(kind for kind in KINDS if kind in opcodes)


def _place(kind: str, line: Instruction, mesh: Mapping[str, int], devices: int) -> tuple[str, int]:
    """(mesh axis, devices in a group); "" and 0 if unknown."""
    members, pairs = groups.read(line.rest, devices), kind == "collective-permute"
    axis = groups.axes(members, mesh, pairs=pairs)
    if pairs:
        # A permutation has pairs of devices, not groups. Its group size is that of the axes that its pairs span.
        return axis, math.prod(mesh[name] for name in axis.split("+")) if axis else 0
    return axis, len(members[0]) if members else 0


def _without_padding(line: Instruction, module: Module) -> list[tuple[int, int]]:
    """For an all-reduce of a padded array, the array before padding; otherwise [].

    XLA for a TPU writes a reduce-scatter this way if its parts do not fill whole tiles.
    """
    padded = module.instructions.get(line.operands[0]) if line.opcode == "all-reduce" and line.operands else None
    if padded is None or padded.opcode != "pad" or len(line.operands) > 1 or "T(" not in line.type:  # T(: a TPU's tiles
        return []
    return _arrays(module.instructions[padded.operands[0]].type)


def _pairs(line: Instruction) -> int:
    """The number of elements of an all-reduce that each hold a pair of numbers."""
    if line.opcode != "all-reduce":
        return 0
    shapes = ([int(side) for side in text.split(",")] for text in _PAIRS.findall(line.type))
    return sum(math.prod(shape) for shape in shapes if math.prod(shape) % 128 == 0)


def _results(start: Instruction, done: Instruction | None) -> list[tuple[int, int]]:
    """(bytes, elements) of each result of one instruction, or of one asynchronous pair."""
    if not start.opcode.endswith("-start"):
        return _arrays(start.type)
    if done is not None and done.opcode == start.opcode.removesuffix("-start") + "-done":
        return _arrays(done.type)
    # Without a done, the results are taken from the start. Its type is (operands..., results..., contexts...), except
    # for an all-reduce: (results...).
    arrays = _arrays(_CONTEXTS.sub("", start.type))
    return arrays if start.opcode == "all-reduce-start" else arrays[len(arrays) // 2 :]


def _arrays(text: str) -> list[tuple[int, int]]:
    """(bytes, elements) of each array in an HLO type; a rank-0 array counts as 0 elements."""
    out = []
    for match in _ARRAY.finditer(text):
        shape = [int(d) for d in match["shape"].split(",") if d]
        out.append((math.prod(shape) * _itemsize(match["dtype"]), math.prod(shape) if shape else 0))
    return out


def _itemsize(dtype: str) -> int:
    if dtype == "pred":
        return 1
    digits = re.search(r"\d+", dtype)
    assert digits is not None  # every other HLO array type names its bits
    return max(1, int(digits[0]) // 8)  # types below 8 bits are counted as one byte


def _sum(kind: str, axis: str, group: int, arrays: list[tuple[int, int]], packed: int) -> Collective:
    size = sum(size for size, _ in arrays)
    return Collective(
        kind=kind,
        count=len(arrays),
        bytes=size,
        elements=sum(elements for _, elements in arrays),
        scalar_bytes=sum(size for size, elements in arrays if not elements),
        axis=axis,
        group=group,
        scalars=sum(not elements for _, elements in arrays),
        wire_bytes=round(size * sent(kind, group)),
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
