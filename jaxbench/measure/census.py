# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The collective census: which collectives the compiled module holds, how many, how many bytes, over which devices.

What each compiler makes of the same step differs: a CPU's keeps arrays apart, a GPU's lays gradients, loss and metrics
end to end into one array, and splits a collective into a start and a done; a TPU's also drops dimensions of size 1, and
runs a collective inside several fusions one after the other. It is counted once in each.
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
# Of one collective that a TPU overlaps with other work, the start has -1 here; the fusions that go on with it have not.
_CONTINUED = re.compile(r'"async_collective_fusion_config":\{"flag_start":"(?!-1)')
# How a TPU, which does not add float16, sums it: two numbers in one, in whole tiles of 128.
_PAIRS = re.compile(r"\bu32\[((?:\d+,)*\d+)\]\{[^}]*T\(")
_CONTEXTS = re.compile(r"u32\[\](\{[^}]*\})?")  # of a start, beside its operands and results


def read(hlo: str, mesh: Mapping[str, int] | None = None) -> tuple[Collective, ...]:
    """Reads the optimised HLO text of one module; one entry for each kind and mesh axis.

    Bytes are those of the results one device gets, summed over the operands that XLA combined into one instruction.
    What stands inside a loop counts as often as the loop turns, once if that is not known; what stands in one branch of
    a condition counts as if it were taken. An asynchronous pair is counted at its -start, with the type of its -done.

    mesh: devices by axis, in the order of the program's devices; None: groups are not named.
    """
    module = parse(hlo)
    turns, devices = module.turns(), math.prod((mesh or {}).values())
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    packed: Counter[tuple[str, str, int]] = Counter()
    for computation, names in module.computations.items():
        done = {operand: line for line in map(module.instructions.__getitem__, names) for operand in line.operands}
        for line in map(module.instructions.__getitem__, names):
            kind = line.opcode.removesuffix("-start")
            if kind not in KINDS or _CONTINUED.search(line.rest):
                continue
            axis, group = _place(kind, line, mesh or {}, devices)
            arrays = _without_filling(line, module) or _results(line, done.get(line.name))
            found.setdefault((kind, axis, group), []).extend(arrays * turns[computation])
            packed[kind, axis, group] += _pairs(line) * turns[computation]
    return tuple(_sum(*where, arrays, packed[where]) for where, arrays in sorted(found.items()))


def kinds(hlo: str) -> tuple[str, ...]:
    """The kinds of collective that optimised HLO text holds."""
    opcodes = {line.opcode.removesuffix("-start") for line in parse(hlo).instructions.values()}
    return tuple(kind for kind in KINDS if kind in opcodes)


def _place(kind: str, line: Instruction, mesh: Mapping[str, int], devices: int) -> tuple[str, int]:
    """(mesh axis, devices of a group), "" and 0 where they are not known."""
    found, pairs = groups.read(line.rest, devices), kind == "collective-permute"
    axis = groups.axes(found, mesh, pairs=pairs)
    if pairs:
        return axis, math.prod(mesh[name] for name in axis.split("+")) if axis else 0
    return axis, len(found[0]) if found else 0


def _without_filling(line: Instruction, module: Module) -> list[tuple[int, int]]:
    """Of a sum of what was filled up before, the array that it was filled up from; else nothing. XLA for a TPU writes a
    scatter so whose parts do not fill its tiles."""
    filled = module.instructions.get(line.operands[0]) if line.opcode == "all-reduce" and line.operands else None
    if filled is None or filled.opcode != "pad" or len(line.operands) > 1 or "T(" not in line.type:  # tiles: a TPU's
        return []
    return _arrays(module.instructions[filled.operands[0]].type)


def _pairs(line: Instruction) -> int:
    """How many elements of a sum hold two numbers each."""
    if line.opcode != "all-reduce":
        return 0
    shapes = ([int(side) for side in found.split(",")] for found in _PAIRS.findall(line.type))
    return sum(math.prod(shape) for shape in shapes if math.prod(shape) % 128 == 0)


def _results(start: Instruction, done: Instruction | None) -> list[tuple[int, int]]:
    """(bytes, elements) of each array that one instruction, or one pair, results in."""
    if not start.opcode.endswith("-start"):
        return _arrays(start.type)
    if done is not None and done.opcode == start.opcode.removesuffix("-start") + "-done":
        return _arrays(done.type)
    # A fragment. The type of a start is (operands..., results..., contexts...), that of an all-reduce results alone.
    arrays = _arrays(_CONTEXTS.sub("", start.type))
    return arrays if start.opcode == "all-reduce-start" else arrays[len(arrays) // 2 :]


def _arrays(text: str) -> list[tuple[int, int]]:
    """(bytes, elements) of each array in an HLO type; 0 elements for one of rank 0."""
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
    return max(1, int(digits[0]) // 8)


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
    """What each of a group of devices sends, by the algorithms that send least, over the bytes of its result; 0 where
    the group is not known."""
    if kind in ("collective-permute", "collective-broadcast"):
        return 1.0
    if group < 1:
        return 0.0
    return {"all-reduce": 2 * (group - 1) / group, "reduce-scatter": float(group - 1)}.get(kind, (group - 1) / group)
