# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The products and convolutions that are really left in a compiled program, counted in its text.

XLA's own count leaves out what its CPU compiler hands to a library, most products of a transformer for one. In the
optimised text they are all there, inside fusions and calls, with their shapes: two FLOPs per multiply-add.
"""

from __future__ import annotations

import math
import re

from jaxbench.measure.hlo import Instruction, Module, parse

_SHAPE = re.compile(r"^\w+\[([\d,]*)\]")
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"window=\{([^}]*)\}")
_LIBRARY = re.compile(r'custom_call_target="[^"]*(gemm|matmul|conv|dot|cudnn|onednn)[^"]*"', re.IGNORECASE)


def count(hlo: str) -> float | None:
    """FLOPs of the products in optimised HLO text, one device, one run; None where the text does not tell.

    It does not tell of a product that is a call into a library, and of a loop of unknown length that holds products. Of
    a conditional the dearest branch counts.
    """
    if not hlo or _LIBRARY.search(hlo):
        return None
    module = parse(hlo)
    return _cost(module.entry, module, {})


def _cost(name: str, module: Module, known: dict[str, float | None]) -> float | None:
    if name not in known:
        lines = [module.instructions[line] for line in module.computations.get(name, [])]
        costs = [_instruction(line, module, known) for line in lines]
        known[name] = None if None in costs else sum(cost for cost in costs if cost)
    return known[name]


def _instruction(line: Instruction, module: Module, known: dict[str, float | None]) -> float | None:
    if line.opcode == "dot":
        left, contracted = _shape_of(line.operands[0], module), _CONTRACTED.search(line.rest)
        dims = (contracted[1] if contracted else "").split(",")
        return 2.0 * math.prod(_shape(line.type)) * math.prod(left[int(d)] for d in dims if d)
    if line.opcode == "convolution":
        return _convolution(line, module)
    if line.branches:
        costs = [_cost(branch, module, known) for branch in line.branches]
        return None if None in costs else max(cost or 0.0 for cost in costs)
    inside = [_cost(name, module, known) for name in line.called]
    if None in inside:
        return None
    total = sum(cost for cost in inside if cost)
    if line.opcode != "while" or not total:
        return total
    trips = module.trip_count(line)
    return None if trips is None else total * trips


def _convolution(line: Instruction, module: Module) -> float | None:
    """2 x outputs x kernel, the zeros of a dilated input and of padding not counted where there are many.

    Padding by up to half the window counts as work, as the formula of a layer counts it (`workloads.flops`). A window
    that is padded further is a compiler's way to write another product: XLA for a TPU makes of the gradient of a layer
    behind 7 x 7 pixels one image of a pixel under a window of 7 x 7, of which 1 in 49 places meets it.
    """
    labels = _LABELS.search(line.rest)
    image, kernel = (_shape_of(name, module) for name in line.operands[:2])
    out = _shape(line.type)
    if labels is None or [len(found) for found in labels.groups()] != [len(image), len(kernel), len(out)]:
        return None
    window = _window(line.rest)
    per_output = math.prod(side for side, label in zip(kernel, labels[2], strict=True) if label == "i")
    total = 2.0 * per_output * math.prod(side for side, label in zip(out, labels[3], strict=True) if label in "bf")
    for place, label in enumerate(sorted(label for label in labels[2] if label.isdigit())):
        shapes = zip((image, kernel, out), labels.groups(), strict=True)
        into, size, onto = (shape[names.index(label)] for shape, names in shapes)
        low, high = window.get("pad", [(0, 0)] * (place + 1))[place]
        spread = window.get("lhs_dilate", [(1,)] * (place + 1))[place][0]
        if max(low, high) <= size // 2:
            total *= onto * size / spread
        else:
            stride, apart = (window.get(name, [(1,)] * (place + 1))[place][0] for name in ("stride", "rhs_dilate"))
            total *= _meeting(size, into, onto, low=low, spread=spread, stride=stride, apart=apart)
    return total


def _meeting(size: int, into: int, onto: int, *, low: int, spread: int, stride: int, apart: int) -> int:
    """The pairs of an output and a place of the window, along one dimension, that meet an element of the input."""
    places = (stride * at + apart * tap - low for at in range(onto) for tap in range(size))
    return sum(place >= 0 and place % spread == 0 and place // spread < into for place in places)


def _window(rest: str) -> dict[str, list[tuple[int, ...]]]:
    """The fields of a window by dimension: pad=(low, high), the others one number each."""
    found = _WINDOW.search(rest)
    fields = (word.split("=") for word in found[1].split() if "=" in word) if found else ()
    return {name: [tuple(map(int, side.split("_"))) for side in text.split("x")] for name, text in fields}


def _shape_of(name: str, module: Module) -> list[int]:
    return _shape(module.instructions[name].type) if name in module.instructions else []


def _shape(text: str) -> list[int]:
    found = _SHAPE.match(text)
    return [int(side) for side in found[1].split(",") if side] if found else []
