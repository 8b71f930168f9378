# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The products and convolutions that are really left in a compiled program, counted in its text.

XLA's own count leaves out what its CPU compiler hands to a library, most products of a transformer for one. In the
optimised text they are all there, inside fusions and calls, with their shapes: two FLOPs per multiply-add.
"""

from __future__ import annotations

import math
import re

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>\(.*?\)|\S+) (?P<opcode>[a-z][a-z0-9\-]*)\((?P<rest>.*)$"
)
_SHAPE = re.compile(r"^\w+\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(r"\b(?:calls|to_apply|body|called_computations)=\{?%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?:\{"n":"(\d+)"')
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"dim_labels=\w+_(\w+)->")
_DILATED = re.compile(r"lhs_dilate=([\dx]+)")
_LIBRARY = re.compile(r'custom_call_target="[^"]*(gemm|matmul|conv|dot|cudnn|onednn)[^"]*"', re.IGNORECASE)


def count(hlo: str) -> float | None:
    """FLOPs of the products in optimised HLO text, one device, one run; None where the text does not tell.

    It does not tell of a product that is a call into a library, and of a loop of unknown length that holds products. Of
    a conditional the dearest branch counts.
    """
    if not hlo or _LIBRARY.search(hlo):
        return None
    computations, entry = _read(hlo)
    return _cost(entry, computations, {})


def _read(hlo: str) -> tuple[dict[str, list[re.Match[str]]], str]:
    computations: dict[str, list[re.Match[str]]] = {}
    inside = entry = ""
    for line in hlo.splitlines():
        if head := _COMPUTATION.match(line):
            inside = head["name"]
            entry = inside if head["entry"] else entry
        elif found := _INSTRUCTION.match(line):
            computations.setdefault(inside, []).append(found)
    return computations, entry


def _cost(name: str, computations: dict[str, list[re.Match[str]]], known: dict[str, float | None]) -> float | None:
    if name not in known:
        lines = computations.get(name, [])
        shapes = {line["name"]: _shape(line["type"]) for line in lines}
        costs = [_instruction(line, shapes, computations, known) for line in lines]
        known[name] = None if None in costs else sum(cost for cost in costs if cost)
    return known[name]


def _instruction(
    line: re.Match[str],
    shapes: dict[str, list[int]],
    computations: dict[str, list[re.Match[str]]],
    known: dict[str, float | None],
) -> float | None:
    rest, out = line["rest"], math.prod(_shape(line["type"]))
    if line["opcode"] == "dot":
        left = shapes.get(_operands(rest)[0], [])
        contracted = _CONTRACTED.search(rest)
        return 2.0 * out * math.prod(left[int(d)] for d in (contracted[1] if contracted else "").split(",") if d)
    if line["opcode"] == "convolution":
        return _convolution(rest, out, shapes)
    branches = _BRANCHES.search(rest)
    if branches:
        costs = [_cost(branch.strip(" %"), computations, known) for branch in branches[1].split(",")]
        return None if None in costs else max(cost or 0.0 for cost in costs)
    inside = [_cost(name, computations, known) for name in _CALLED.findall(rest)]
    if None in inside:
        return None
    total = sum(cost for cost in inside if cost)
    if line["opcode"] != "while" or not total:
        return total
    trips = _TRIPS.search(rest)
    return total * int(trips[1]) if trips else None


def _convolution(rest: str, out: int, shapes: dict[str, list[int]]) -> float | None:
    """2 x outputs x kernel, padding counted as work, the zeros of a dilated input not (as `workloads.flops` counts)."""
    labels, kernel = _LABELS.search(rest), shapes.get(_operands(rest)[1], [])
    if labels is None or len(labels[1]) != len(kernel):
        return None
    each = math.prod(side for side, label in zip(kernel, labels[1], strict=True) if label != "o")
    dilated = _DILATED.search(rest)
    return 2.0 * out * each / math.prod(int(d) for d in (dilated[1] if dilated else "1").split("x"))


def _operands(rest: str) -> list[str]:
    return _OPERAND.findall(rest.split("), ")[0])


def _shape(text: str) -> list[int]:
    found = _SHAPE.match(text)
    return [int(side) for side in found[1].split(",") if side] if found else []
