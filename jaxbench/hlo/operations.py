# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The category of each operation of a program, its requests to the host, and the FLOPs of its products.

A table gives the category of each HLO opcode. A fusion has the first category of `KINDS` that it contains, so a matmul
fused with its bias and activation is "matmul". An operation that only moves values, such as a transpose, is "copy".

If a step calls back into Python, or the host feeds or reads it while it runs, the host decides how long it takes.
Compilers implement ordinary operations by custom calls too; those are not counted. On a CPU the host executes every
custom call, so there a custom call counts unless XLA or jaxlib registers its name.

XLA's own count omits the products that its CPU compiler passes to a library, such as most products of a transformer.
The optimized text contains all of them, inside fusions and calls, with their shapes. A multiply-add is two FLOPs.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxbench.hlo.module import Instruction, Module

# By kind of attention, what its operations are called in a compiled text, before or after optimization.
ATTENTIONS = {
    "plain": "plain_attention",
    "ring": "ring_attention",
    "ulysses": "ulysses_attention",
    "flash": "mha_forward|splash_mha_fwd|cudnn.fmha",
}
UNMASKED = "unmasked_attention"  # the scope of a kernel that computes all of its products
KINDS = ("convolution", "matmul", "collective", "element-wise", "other", "copy")  # a fusion has its first

OPCODES = {
    "matmul": "dot ragged-dot scaled-dot",
    "convolution": "convolution",
    "collective": "all-reduce all-gather reduce-scatter all-to-all ragged-all-to-all collective-permute "
    "collective-broadcast send recv",
    "copy": "copy transpose reshape concatenate slice dynamic-slice dynamic-update-slice pad reverse broadcast gather",
    "element-wise": "abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp clz compare complex convert cosine "
    "cosh divide erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum "
    "minimum multiply negate not or popcnt power real reduce reduce-precision reduce-window remainder "
    "round-nearest-afz round-nearest-even rsqrt scatter select select-and-scatter shift-left shift-right-arithmetic "
    "shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan tanh xor",
}
_KIND_OF = {opcode: kind for kind, opcodes in OPCODES.items() for opcode in opcodes.split()}
# They name, carry or reinterpret values, which takes no time on a device.
_NO_WORK = frozenset(
    "parameter constant tuple get-tuple-element bitcast iota partition-id replica-id after-all opt-barrier".split()
)
CONTAINERS = frozenset({"while", "conditional", "call"})  # the trace lists their contents separately

# For targets of custom calls, GPU kernels and one-operation programs: the first pattern that matches counts.
_MOVES = "copy|transpose|reshape|broadcast|bitcast|concatenate|slice|pad|gather"
NAMES = (
    ("collective", r"nccl|rccl|all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective|psum"),
    ("convolution", r"conv(?!ert)|fprop|dgrad|wgrad|winograd|implicit_gemm"),
    ("matmul", r"gemm|gemv|matmul|dot|cutlass|nvjet|wgmma|fmha|attention"),
    ("other", r"lapack|cusolver|cholesky|fft|sort|top_?k|rng|threefry|while|conditional"),
    ("copy", rf"memcpy|memset|^(({_MOVES}|in_dim)[-_]?)+(fusion)?$"),
    ("element-wise", r"reduce|fusion|softmax|norm|elementwise"),
)
# TPU traces have a category. A "convolution fusion" may be a matmul, which only the program's text shows.
CATEGORIES = (
    ("collective", r"all-reduce|all-gather|reduce-scatter|all-to-all|collective|send|recv"),
    ("convolution", r"convolution"),
    ("element-wise", r"(loop|input|output) fusion|elementwise|reduce|scatter"),
    ("copy", r"copy|data formatting|broadcast|dynamic-(update-)?slice|gather"),
)

_SPATIAL = re.compile(r"dim_labels=\w*\d")

# jax's callbacks: xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_gpu_callback, xla_python_cpu_callback.
_CALLBACK = re.compile(r"\w*python\w*callback$")
# XLA's and jaxlib's on a CPU: top-k, LAPACK and sparse products, libraries of kernels, and marks that do nothing.
_OWN = re.compile(r"TopK|lapack_|blas_|cpu_|__|annotate_|Sharding|SPMD|xla\.|AllocateBuffer|PadToStatic|SliceToDynamic")
_PRIMITIVE = re.compile(r'op_name="(?:[^"]*/)?([^"/]+)"')
_CUDNN = re.compile(r"__cudnn\$conv(BackwardInput|BackwardFilter|Forward|BiasActivationForward)$")
_LIBRARY = re.compile(r"gemm|matmul|conv|dot|cudnn|onednn", re.IGNORECASE)


class OperationClassifier:
    """Classifies operations of a trace, given the program that was traced."""

    def __init__(self, module: Module):
        self._module = module
        self.kind = functools.cache(self._kind)

    def _kind(self, operation: str, module: str = "", category: str = "", kernel: str = "") -> str:
        """One of KINDS.

        Args:
          operation: the name of the instruction.
          module: the name of its HLO module. For a module other than the traced program, such as the one-operation
            "jit_dot_general", only the names are known.
          category: from the trace of a TPU. kernel: the name of a GPU kernel.
        """
        if operation in self._module.instructions and module in ("", self._module.name):
            kind = self._of(operation)
            if kind != "other":  # else a name may tell more than the text
                return kind or "copy"  # without work: it only renames values
        if category and (kind := _first(CATEGORIES, category)):
            return kind
        opcode, program = stem(operation), "" if module == self._module.name else module
        named = (_first(NAMES, name) for name in (program, opcode, kernel))
        return _KIND_OF.get(opcode) or next(filter(None, named), "other")

    def _of(self, name: str) -> str | None:
        """The category from the program's text; None for an instruction that does no work, such as a tuple."""
        instruction = self._module.instructions[name]
        opcode = _without_phase(instruction.opcode)
        if opcode in _NO_WORK:
            return None
        if opcode == "convolution" and not _SPATIAL.search(instruction.rest):
            return "matmul"  # how a TPU's compiler writes a matmul: no window moves over a spatial dimension
        if opcode in _KIND_OF:
            return _KIND_OF[opcode]
        if instruction.target:
            return _first(NAMES, instruction.target) or "other"
        if opcode not in ("fusion", "call", "async"):
            return "other"
        inner = (name for called in instruction.called for name in self._module.computations.get(called, ()))
        return min((kind for kind in map(self._of, inner) if kind is not None), key=KINDS.index, default=None)

    def contains_others(self, operation: str) -> bool:
        """Whether this is a loop, a branch or a call. The trace lists the contents of these separately."""
        instruction = self._module.instructions.get(operation)
        return (instruction.opcode if instruction is not None else stem(operation)) in CONTAINERS


def stem(operation: str) -> str:
    """The opcode that an instruction is named after: "wrapped_add.3" -> "add", "all-reduce-start.1" -> "all-reduce"."""
    name = re.sub(r"(\.(\d+|clone|remat\d*))+$", "", operation.removeprefix("%").removeprefix("wrapped_"))
    # Some names have underscores for the hyphens of an opcode: "reduce_window" is one, "top_k" is not.
    return _without_phase(name).replace("_", "-" if name.replace("_", "-") in _KIND_OF else "_")


def _without_phase(opcode: str) -> str:
    return re.sub(r"-(start|done|update)$", "", opcode)


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    """The kind of the first pattern in a table that the text has."""
    return next((kind for kind, pattern in table if re.search(pattern, text, re.IGNORECASE)), None)


def host_calls(
    module: Module, functions: Mapping[str, Sequence[str]] | None = None, *, platform: str = ""
) -> tuple[str, ...]:
    """The program's requests to the host, each listed once: the operation and, if known, the names of the Python
    functions.

    functions: the names of the Python functions that each primitive calls back. platform: of the devices that the
    program is compiled for.
    """
    known, unknown = dict[str, None](), dict[str, None]()
    for line in module.instructions.values():
        if _asks_host(line):
            primitive = _PRIMITIVE.search(line.rest) if line.opcode == "custom-call" else None
            name = primitive[1] if primitive else line.opcode
            called = ", ".join((functions or {}).get(name, ()))
            known[f"{name} of '{called}'" if called else name] = None
        elif platform == "cpu" and line.opcode == "custom-call" and line.target and not _OWN.match(line.target):
            unknown[f"a custom call '{line.target}', which is none of XLA's or jaxlib's"] = None
    return (*known, *unknown)


def _asks_host(line: Instruction) -> bool:
    if line.opcode == "custom-call":
        return _CALLBACK.match(line.target) is not None
    # A send or a receive is between devices, unless it is marked.
    return line.opcode in ("infeed", "outfeed") or (
        line.opcode in ("send", "recv") and "is_host_transfer=true" in line.rest
    )


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
            "BackwardInput": (out, shapes[1], shapes[0]),
            "BackwardFilter": (shapes[0], out, shapes[1]),
        }.get(call[1], (*shapes, out))
        return _convolution(line, image, kernel, result) or 0.0
    return 0.0


def _cost(name: str, module: Module, known: dict[str, float | None]) -> float | None:
    """The FLOPs of a computation; None if one of its instructions has an unknown cost."""
    if name not in known:
        costs = [_instruction(line, module, known) for line in module.lines(name)]
        # One unknown cost makes the sum unknown: a count that is too small would look like work that was removed.
        known[name] = None if None in costs else sum(cost for cost in costs if cost)
    return known[name]


def _instruction(line: Instruction, module: Module, known: dict[str, float | None]) -> float | None:
    """The FLOPs of one instruction and what it calls; None: unknown."""
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
