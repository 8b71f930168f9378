# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The seconds of one instruction of a compiled program on a chip, without communication.

For a matrix product, it is the TPU compiler's own estimate of cycles. If the text has none, it is the longer of two
times: that of a product of its size (below), and its bytes at the memory's rate. For everything else it is the time of
its bytes, on a GPU with the start of a kernel. The TPU compiler's cycles are not used there: for an addition of two
large arrays they imply half of the memory's rate, which real chips exceed.

Products and attention kernels on a GPU take a time by their sizes. A product is divided into tiles, and each
multiprocessor computes one tile at a time, so the last wave of tiles may leave most of them idle. The constants are
those that agree best with a published sweep of single products (`catalog/published/xla_products.csv`). The rates of
attention are from published measurements by width and length (`catalog/attention.csv`). Nothing here is fitted to a
training run.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbench.catalog import hardware, rows, targets
from jaxbench.hlo import operations
from jaxbench.hlo.module import Array, Instruction, Module
from jaxbench.hlo.operations import ProductSize

# Rows and columns of a tile, and the share of the rate of the largest tile that it reaches.
_TILES = ((256, 128, 1.0), (128, 128, 0.95), (64, 128, 0.8), (64, 64, 0.65))
_FILL = 128  # a tile takes as long as if this much more were contracted: it is filled at first and written at last
PRODUCT_S = 5e-6  # the shortest product of the sweep takes this long
KERNEL_S = 1e-6  # of any other kernel, as XLA's own model assumes (openxla/xla, gpu_performance_model_base.h)
# Work takes this much longer while a message travels, because both use multiprocessors and memory: the mean over models
# and GPUs of arXiv:2507.03114, July 2025 (at most 40 %).
OVERLAP = 0.189
_AT = ("fa2", "forward", 128, 2048)  # what `attention_share` of ceilings.csv is measured for

# Instructions without cost: they compute nothing or a single number, or they overlap with work, as a TPU's copies
# between its memories do.
FREE = frozenset(
    "parameter constant get-tuple-element tuple bitcast after-all partition-id replica-id opt-barrier copy-start "
    "copy-done slice-start slice-done add-dependency rng-get-and-update-state".split()
)
# Custom calls that only tell the compiler something, or name memory.
_FREE_CALLS = frozenset("ConcatBitcast AllocateBuffer Sharding AssumeGatherIndicesInBound Pin Unpin".split())
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_ESTIMATE = re.compile(r'"?cost_estimate"?:\{[^}]*?"?flops"?:"?(\d+)')
_KERNEL_NAME = re.compile(r'\bname = "(\w+)"')  # the name of a Triton kernel
_SCRATCH = re.compile(r"\b[su]8\[\d+\](\{0\})?\)$")  # a library's workspace: the last result of its call
_DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
_ATTENTION = 0.5  # the share of the peak of a kernel with known FLOPs, if the catalogue has no rate: that of A100
# JAX's attention kernels for TPUs and GPUs, which do not state their FLOPs: (products, axis). products: how many
# products of positions by positions it has: two forward (scores, values), five backward (scores recomputed, and the
# gradients of weights, values, keys and queries). axis: the axis of the queries with the positions. Queries are
# (examples, heads, positions, width) on a TPU and (examples, positions, heads, width) on a GPU.
_ATTENTION_KERNELS = {
    "splash_mha_fwd": (2, -2),
    "splash_mha_dkv": (5, -2),
    "mha_forward": (2, -3),
    "mha_backward": (5, -3),
}
_HOST = re.compile(r"S\(5\)")  # the space of an array in the host's memory
_COPIES = ("copy-start", "copy", "dynamic-slice-start", "dynamic-update-slice-start", "slice-start", "async-start")
_PICKS = ("dynamic-slice", "slice", "gather")  # instructions that read only as much as they return
_NOT_MAIN = re.compile(r"S\([1-9]\)")  # the spaces of a TPU's on-chip memories and of the host; S(0) is not printed


def product_s(size: ProductSize, flop_per_s: float, cores: int) -> float:
    """The seconds of a product. flop_per_s: what a large product reaches. cores: multiprocessors of the GPU."""
    spent = []
    # The library picks the best tile and either orientation, so the shortest time counts.
    for sides in (size.rows, size.columns), (size.columns, size.rows):
        for tall, wide, share in _TILES:
            tiles = size.batch * math.ceil(sides[0] / tall) * math.ceil(sides[1] / wide)
            tile_s = 2 * tall * wide * (size.contracted + _FILL) * cores / (share * flop_per_s)
            spent.append(math.ceil(tiles / cores) * tile_s)  # whole waves: idle multiprocessors wait for the last tile
    return PRODUCT_S + min(spent)


def attention_factor(kernel: str, direction: str, width: int, positions: int) -> float:
    """The rate of an attention kernel over that of FlashAttention-2 forward at width 128 and 2,048 positions.

    kernel: fa2 | cudnn. direction: forward | backward. Between measured sizes it is interpolated over their logarithms,
    and beyond them it is that of the nearest.
    """
    known = _attention_rates()
    widths = sorted({of[2] for of in known if of[:2] == (kernel, direction)})
    lengths = sorted({of[3] for of in known if of[:2] == (kernel, direction)})
    by_width = []
    for at in widths:  # every width was measured at every length
        measured = [known[kernel, direction, at, length] for length in lengths]
        by_width.append(float(np.interp(math.log(positions), np.log(lengths), measured)))
    return float(np.interp(math.log(width), np.log(widths), by_width)) / known[_AT]


@functools.cache
def _attention_rates() -> dict[tuple[str, str, int, int], float]:
    """TFLOP/s by kernel, direction, head width and positions."""
    return {
        (row["kernel"], row["direction"], int(row["width"]), int(row["positions"])): float(row["tflops"])
        for row in rows("attention.csv")
    }


@dataclass(frozen=True, kw_only=True)
class Chip:
    """Rates of one device.

    Attributes:
      host_bytes_per_s: of a copy from or to the host's memory, in one direction; None: unknown.
      clock_hz: of a TPU, for which the compiler prints cycles; None: use the roofline.
      products: by number format, the FLOP/s that large matrix products reach.
      attention_flop_per_s: the FLOP/s that attention kernels reach; on a GPU FlashAttention-2, forward, with heads of
        128 at 2,048 positions.
      peak_flop_per_s: the bfloat16 peak, for utilisation.
      cores: multiprocessors of a GPU; 0: unknown, and then rates do not depend on sizes.
    """

    memory_bytes_per_s: float
    products: tuple[tuple[str, float], ...]
    peak_flop_per_s: float
    attention_flop_per_s: float
    host_bytes_per_s: float | None = None
    clock_hz: float | None = None
    cores: int = 0

    @property
    def kernel_s(self) -> float:
        """The seconds of a kernel without work."""
        return KERNEL_S if self.cores else 0.0

    @property
    def overlap(self) -> float:
        """By how much longer work takes while a message travels, relative."""
        return OVERLAP if self.cores else 0.0


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of an instruction. how: the method: cycles | roofline | memory | kernel (from its own FLOPs) | unknown
    (no estimate of its FLOPs: only its bytes count). large_s: of a matrix product, its time at the rate of a large one
    of its number format."""

    seconds: float
    how: str
    flops: float = 0.0
    bytes: int = 0
    large_s: float = 0.0
    name: str = ""  # the kernel's name


def chip(device_kind: str) -> Chip | None:
    """The chip's rates from the catalogue; None if a rate is missing."""
    peak = hardware.find(device_kind)
    if peak is None or peak.memory_bytes_per_s is None:
        return None
    # Data sheets give peaks at full clock; a power limit keeps real kernels below them. Without a source: no discount.
    share = {name: hardware.ceiling(peak.name, f"{name}_share") for name in ("product", "memory", "attention")}
    peaks = {name: peak.rate(name) for name in _DTYPES.values()}
    known = {name: rate.flop_per_s for name, rate in peaks.items() if rate is not None}
    if not {"bfloat16", "float32"} & set(known):
        return None
    known.setdefault("bfloat16", known.get("float32", 0.0))  # without units for it, XLA multiplies in float32
    host = hardware.link(peak.name, "host")
    return Chip(
        memory_bytes_per_s=(share["memory"] or 1.0) * peak.memory_bytes_per_s,
        products=tuple((name, (share["product"] or 1.0) * rate) for name, rate in known.items()),
        peak_flop_per_s=max(known["bfloat16"], known.get("float16", 0.0)),  # V100 and T4 are fast in float16 only
        attention_flop_per_s=(share["attention"] or _ATTENTION) * known["bfloat16"],
        host_bytes_per_s=host.bytes_per_s if host is not None else None,
        clock_hz=hardware.ceiling(peak.name, "clock_hz"),
        cores=targets.cores(device_kind),
    )


def cost(line: Instruction, module: Module, on: Chip) -> Cost | None:
    """The cost of an instruction that is no collective, loop or branch; None if it is free."""
    if line.opcode in FREE or line.target in _FREE_CALLS:
        return None
    flops, moved = operations.of_instruction(line, module), traffic(line, module)
    memory_s = on.kernel_s + moved / on.memory_bytes_per_s
    if flops:
        cycles, large_s = _CYCLES.search(line.rest), flops / _rate(line, module, on)
        if cycles and on.clock_hz:
            seconds = int(cycles[1]) / on.clock_hz
            return Cost(seconds=seconds, how="cycles", flops=flops, bytes=moved, large_s=min(seconds, large_s))
        seconds = max(_product_s(line, module, on, flops), memory_s)
        return Cost(seconds=seconds, how="roofline", flops=flops, bytes=moved, large_s=min(seconds, large_s))
    if line.opcode == "custom-call":
        name = line.target or "custom call"
        # What a kernel states about itself is believed first: only JAX's own attention is known by name.
        estimate = _ESTIMATE.search(line.rest)
        flops, factor = (float(estimate[1]), 1.0) if estimate is not None else _attention(line, module)
        if not flops:  # a bound at best, so it is named on the page
            return Cost(seconds=memory_s, how="unknown", bytes=moved, name=name)
        # The factor was measured on GPUs; the catalogue has no such table for TPUs.
        seconds = max(flops / (on.attention_flop_per_s * (factor if on.cores else 1.0)), memory_s)
        return Cost(seconds=seconds, how="kernel", flops=flops, bytes=moved, name=name)
    return Cost(seconds=memory_s, how="memory", bytes=moved)


def to_host(line: Instruction, module: Module) -> int:
    """The bytes that an instruction, or the start of it, moves from or to the host's memory; 0 if none.

    The largest array on the device counts, because that in the host's memory may be the buffer of a whole loop.
    """
    given = [array for name in line.operands for array in _arrays_of(name, module)]
    if line.opcode not in _COPIES or not any(_HOST.search(array.layout) for array in (*line.arrays, *given)):
        return 0
    here = [array.bytes for array in (*line.arrays, *given) if not _HOST.search(array.layout)]
    return max(here, default=0)


def _attention(line: Instruction, module: Module) -> tuple[float, float]:
    """(the FLOPs of an attention kernel, without the half of its products that a causal mask leaves out, the
    `attention_factor` of its size); (0, 1) for another kernel."""
    named = _KERNEL_NAME.search(line.rest)
    called = named[1] if named is not None else line.name
    known = (found for name, found in _ATTENTION_KERNELS.items() if name in called)
    products, side = next(known, (0, 0))
    given = [array for name in line.operands for array in _arrays_of(name, module)[:1]] if products else []
    # Index tables of masks come before the queries and the keys.
    sized = [array for array in given if array.dtype in _DTYPES and len(array.shape) >= 3]
    if len(sized) > 1:
        # Mapped over sets of keys, a GPU's kernel has a result for each; the first is as large as the queries of all.
        queries, keys = line.arrays[0] if side == -3 else sized[0], sized[1]
        positions = keys.shape[side]  # a part of a ring may have more of them than queries
        kernel, direction = "cudnn" if "cudnn" in line.target else "fa2", "forward" if products == 2 else "backward"
        # Each product costs 2 x size x positions FLOPs; a causal mask leaves half of it.
        whole = 2 if operations.UNMASKED in line.rest else 1
        return float(whole * products * queries.size * positions), attention_factor(
            kernel, direction, queries.shape[-1], positions
        )
    return 0.0, 1.0


def _product_s(line: Instruction, module: Module, on: Chip, flops: float) -> float:
    """The seconds of products with this many FLOPs. All count as of the first one's size and number format."""
    first, rate = _first_product(line, module), _rate(line, module, on)
    size = None if first is None else operations.size(first, module)
    if size is None or not on.cores:
        return flops / rate
    one = 2.0 * size.batch * size.rows * size.columns * size.contracted
    return product_s(size, rate, on.cores) * flops / one


def _rate(line: Instruction, module: Module, on: Chip) -> float:
    """The FLOP/s of large products in the number format of the first product of `line`."""
    first, known = _first_product(line, module), dict(on.products)
    operand = _arrays_of(first.operands[0], module)[:1] if first is not None and first.operands else ()
    # Other formats are rare in training and count as bfloat16.
    return known.get(_DTYPES.get(operand[0].dtype if operand else "", ""), known["bfloat16"])


def _first_product(line: Instruction, module: Module) -> Instruction | None:
    """The instruction, if it is a product, or the first product that it calls."""
    if line.opcode in ("dot", "convolution", "custom-call"):
        return line
    for name in line.called:
        for inner in module.lines(name):
            if (found := _first_product(inner, module)) is not None:
                return found
    return None


def traffic(line: Instruction, module: Module) -> int:
    """The bytes that an instruction reads and writes in a device's main memory: its results and its operands.

    If a fusion only slices an array or updates it in place, only the part that it touches counts.
    """
    if line.opcode == "fusion" and line.called and line.called[0] in module.computations:
        return _fusion(line, module)
    if line.opcode == "dynamic-update-slice":  # in place: the update is read and written, the rest stays
        return 2 * size(_arrays_of(line.operands[1], module))
    scratch = line.opcode == "custom-call" and _SCRATCH.search(line.type)
    made = line.arrays[:-1] if scratch else line.arrays  # nobody knows how much of a workspace is used
    reads = [size(line.arrays)] if line.opcode in _PICKS else [size(_arrays_of(name, module)) for name in line.operands]
    return size(made) + sum(reads)


def _fusion(line: Instruction, module: Module) -> int:
    """The bytes that a fusion reads and writes."""
    inner = line.called[0]
    inside = module.lines(inner)
    root = module.instructions.get(module.roots.get(inner, ""))
    users: dict[str, list[Instruction]] = {}
    for each in inside:
        for name in each.operands:
            users.setdefault(name, []).append(each)
    total, aliased = 0, set[str]()
    # XLA updates an array in place if this is the last thing that a fusion does to it, as when a scan stores a row.
    if root is not None and root.opcode == "dynamic-update-slice":
        total += 2 * size(_arrays_of(root.operands[1], module))
        aliased.add(root.operands[0])
    else:
        total += size(line.arrays)
    for each in inside:
        if each.opcode != "parameter" or each.name in aliased:
            continue
        used = users.get(each.name, [])
        # A loop body takes one block from an array of all blocks. In full it would count once for each iteration.
        sliced = used and all(user.opcode in _PICKS and user.operands[0] == each.name for user in used)
        whole = size(each.arrays)
        total += min(whole, sum(size(user.arrays) for user in used)) if sliced else whole
    return total


def size(arrays: Sequence[Array]) -> int:
    """The bytes of arrays in main memory, not in a TPU's on-chip memories or the host's."""
    return sum(array.bytes for array in arrays if not _NOT_MAIN.search(array.layout))


def _arrays_of(name: str, module: Module) -> tuple[Array, ...]:
    return module.instructions[name].arrays if name in module.instructions else ()
