# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Counts the FLOPs of the products and convolutions in a compiled program, from its optimized HLO text.

XLA's own count omits the products that its CPU compiler passes to a library, such as most products of a transformer.
The optimized text contains all of them, inside fusions and calls, with their shapes. A multiply-add is two FLOPs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxbench.hlo.module import Instruction, Module

_CUDNN = re.compile(r"__cudnn\$conv(BackwardInput|BackwardFilter|Forward|BiasActivationForward)$")
_LIBRARY = re.compile(r"gemm|matmul|conv|dot|cudnn|onednn", re.IGNORECASE)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ProductSize:
    """A product of matrices: `batch` times (rows, contracted) times (contracted, columns)."""

    batch: int
    rows: int
    columns: int
    contracted: int


def size(line: Instruction, module: Module) -> ProductSize | None:
    """The size of a matrix product, or of a library call that is one; None for any other instruction."""
    left = _shape_of(line.operands[0], module) if line.operands else ()
    if line.opcode == "dot":
        batch, contracted = line.dims("lhs_batch_dims"), line.dims("lhs_contracting_dims")
    else:
        batch, contracted = _library_dims(line, "batch"), _library_dims(line, "contracting")
        if not contracted:
            return None
    if not left or not math.prod(line.shape):
        return None
    each, inner = (math.prod(left[dim] for dim in dims) for dims in (batch, contracted))
    rows = math.prod(left) // (each * inner)
    return ProductSize(each, rows, math.prod(line.shape) // (each * rows), inner)


def count(module: Module) -> float | None:
    """FLOPs of the products of a program, for one device and one run; None if the text does not tell.

    The text does not tell if a product is an opaque library call, or is in a loop of unknown length. A conditional
    counts as its most expensive branch.
    """
    if not module.instructions:
        return None
    calls = (line for line in module.instructions.values() if _LIBRARY.search(line.target))
    if any(not of_instruction(call, module) for call in calls):
        return None
    return _cost(module.entry, module, {})


def of_instruction(line: Instruction, module: Module) -> float:
    """FLOPs of the products in one instruction, including a GPU's library calls; 0 without a product."""
    return _instruction(line, module, {}) or 0.0


def _library_call(line: Instruction, module: Module) -> float:
    """FLOPs of a call of cuBLAS, from the dimensions that it contracts, or of cuDNN, from the window that it slides; 0
    for any other call."""
    shapes, out = [_shape_of(name, module) for name in line.operands[:2]], line.shape
    if dims := _library_dims(line, "contracting"):
        return 2.0 * math.prod(out) * math.prod(shapes[0][dim] for dim in dims)
    if call := _CUDNN.match(line.target):
        # The gradients are convolutions of other operands: each has the same FLOPs as the forward convolution.
        image, kernel, result = {
            "BackwardInput": (out, shapes[1], shapes[0]), "BackwardFilter": (shapes[0], out, shapes[1]),
        }.get(call[1], (*shapes, out))  # fmt: skip
        return _convolution(line, image, kernel, result) or 0.0
    return 0.0


def _cost(name: str, module: Module, known: dict[str, float | None]) -> float | None:
    if name not in known:
        costs = [_instruction(line, module, known) for line in module.lines(name)]
        # One unknown cost makes the sum unknown: a count that is too small would look like work that was removed.
        known[name] = None if None in costs else sum(cost for cost in costs if cost)
    return known[name]


def _instruction(line: Instruction, module: Module, known: dict[str, float | None]) -> float | None:
    if line.opcode == "custom-call":
        return _library_call(line, module)
    if line.opcode == "dot":
        left = _shape_of(line.operands[0], module)
        return 2.0 * math.prod(line.shape) * math.prod(left[dim] for dim in line.dims("lhs_contracting_dims"))
    if line.opcode == "convolution":
        image, kernel = (_shape_of(name, module) for name in line.operands[:2])
        return _convolution(line, image, kernel, line.shape)
    if line.branches:
        costs = [_cost(branch, module, known) for branch in line.branches]
        return None if None in costs else max(cost or 0.0 for cost in costs)
    costs = [_cost(name, module, known) for name in line.called]
    if None in costs:
        return None
    total = sum(cost for cost in costs if cost)
    if line.opcode != "while" or not total:
        return total  # a loop without products needs no trip count
    trips = module.trip_count(line)
    return None if trips is None else total * trips


def _convolution(line: Instruction, image: Shape, kernel: Shape, out: Shape) -> float | None:
    """2 x outputs x kernel, without multiplications by the zeros of a dilated input or of large padding."""
    labels = re.split("_|->", line.attributes.get("dim_labels", ""))
    if [len(names) for names in labels] != [len(image), len(kernel), len(out)]:
        return None
    # The fields of the window, one entry for each dimension: (low, high) for `pad`, one number for other fields.
    fields = (word.split("=") for word in line.attributes.get("window", "").split())
    window = {name: [tuple(map(int, side.split("_"))) for side in text.split("x")] for name, text in fields}
    # Labels name the dimensions: b batch, f features, i and o the kernel's inputs and outputs, digits the space.
    per_output = math.prod(side for side, label in zip(kernel, labels[1], strict=True) if label == "i")
    total = 2.0 * per_output * math.prod(side for side, label in zip(out, labels[2], strict=True) if label in "bf")
    for place, label in enumerate(sorted(label for label in labels[1] if label.isdigit())):
        shapes = zip((image, kernel, out), labels, strict=True)
        inputs, size, outputs = (shape[names.index(label)] for shape, names in shapes)
        low, high = window.get("pad", [(0, 0)] * (place + 1))[place]
        dilation = window.get("lhs_dilate", [(1,)] * (place + 1))[place][0]
        # Padding by up to half the window counts as work, as in a layer's formula (`workloads.flops`). More padding
        # means that the compiler expresses another product as a convolution: XLA for a TPU writes the gradient of a
        # layer on 7 x 7 pixels as a one-pixel image under a 7 x 7 window, and only 1 of 49 positions meets the pixel.
        if max(low, high) <= size // 2:
            total *= outputs * size / dilation
        else:
            stride, gap = (window.get(name, [(1,)] * (place + 1))[place][0] for name in ("stride", "rhs_dilate"))
            total *= _meeting(size, inputs, outputs, low=low, dilation=dilation, stride=stride, gap=gap)
    return total


def _meeting(size: int, inputs: int, outputs: int, *, low: int, dilation: int, stride: int, gap: int) -> int:
    """The number of (output, window position) pairs along one dimension that meet an element of the input."""
    places = (stride * output + gap * tap - low for output in range(outputs) for tap in range(size))
    return sum(place >= 0 and place % dilation == 0 and place // dilation < inputs for place in places)


def _library_dims(line: Instruction, kind: str) -> list[int]:
    """The batch or contracting dimensions of the left factor, from the JSON in which cuBLAS is told them."""
    found = re.search(rf'"lhs_{kind}_dimensions":\[([^\]]*)\]', line.rest)
    return [int(text) for text in re.findall(r"\d+", found[1])] if found else []


def _shape_of(name: str, module: Module) -> Shape:
    return module.instructions[name].shape if name in module.instructions else ()
