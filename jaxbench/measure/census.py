# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The collective census: which collectives the compiled module holds, how many, and how many bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import jax

from jaxbench.measure.hlo import parse
from jaxbench.records.schema import Collective, Verdict
from jaxbench.workloads.base import PyTree

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")

_ARRAY = re.compile(r"\b(?P<dtype>pred|[sufc]\d+|bf16|f8\w+)\[(?P<shape>[\d,]*)\]")


def read(hlo: str) -> tuple[Collective, ...]:
    """Reads the optimised HLO text of one module.

    Bytes are those of the results one device gets, summed over the operands that XLA combined into one instruction.
    What stands inside a loop counts as often as the loop turns, once if XLA does not know; what stands in one branch of
    a condition counts as if it were taken. An asynchronous pair is counted at its -start.
    """
    module = parse(hlo)
    turns = module.turns()
    found: dict[str, list[tuple[int, int]]] = {}
    for computation, names in module.computations.items():
        for name in names:
            instruction = module.instructions[name]
            kind = instruction.opcode.removesuffix("-start")
            if kind not in KINDS:
                continue
            arrays = _arrays(instruction.type)
            # the result of a -start is (operands..., results...), of all-reduce-start the results alone
            if instruction.opcode.endswith("-start") and kind != "all-reduce":
                arrays = arrays[len(arrays) // 2 :]
            found.setdefault(kind, []).extend(arrays * turns[computation])
    return tuple(_sum(kind, arrays) for kind, arrays in sorted(found.items()))


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


def _sum(kind: str, arrays: list[tuple[int, int]]) -> Collective:
    return Collective(
        kind=kind,
        count=len(arrays),
        bytes=sum(size for size, _ in arrays),
        elements=sum(elements for _, elements in arrays),
        scalar_bytes=sum(size for size, elements in arrays if not elements),
    )


def gradient_bytes(params: PyTree, devices: int) -> int:
    """What data parallelism must reduce: every parameter's gradient once, on more than one device.

    Rank-0 arrays are left out: in the census they cannot be told from the loss.
    """
    if devices == 1:
        return 0
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(params) if x.shape)


def verify(
    collectives: Iterable[Collective],
    expected: int,
    devices: int,
    *,
    stateful: bool = False,
    itemsize: int = 4,
    form: Mapping[str, tuple[int, int]] | None = None,
) -> Verdict:
    """Data parallelism reduces exactly `expected` gradient bytes by all-reduce and needs no other collective.

    A model that computes in 16 bits may have its gradients reduced in 16 bits, one whose parameters have 16 in 32. A
    `stateful` one may reduce more than
    gradients: batch statistics, which each strategy shares in its own way.
    itemsize: bytes of a parameter.
    form: the closed form of a strategy that communicates otherwise, as `Program.expected` has it.
    """
    if devices == 1:  # a collective among one, if the compiler left one in, moves nothing
        return Verdict(name="collectives", ok=True, reason="one device: nothing to communicate", value=0, limit=0)
    collectives = tuple(collectives)
    if form is not None:
        return _judge_form(collectives, form, stateful=stateful)
    surprises = [f"{c.count} {c.kind} of {c.bytes} bytes" for c in collectives if c.kind != "all-reduce"]
    reduced = sum(c.bytes - c.scalar_bytes for c in collectives if c.kind == "all-reduce")
    elements = sum(c.elements for c in collectives if c.kind == "all-reduce")
    if surprises:
        reason = f"data parallelism needs all-reduce only; the compiled step also has {', '.join(surprises)}"
    elif 2 * reduced == expected and 4 * elements == expected:
        reason = f"the compiled step reduces {reduced} gradient bytes, every parameter of float32 once in 16 bits"
        return Verdict(name="collectives", ok=True, reason=reason, value=reduced, limit=expected)
    elif itemsize == 2 and reduced == 2 * expected and 2 * elements == expected:  # as XLA's CPU compiler does
        reason = f"the compiled step reduces {reduced} gradient bytes, every parameter of 16 bits once in float32"
        return Verdict(name="collectives", ok=True, reason=reason, value=reduced, limit=2 * expected)
    elif stateful and reduced > expected:
        reason = f"the compiled step reduces {reduced} bytes, gradients ({expected}) and the model's statistics"
        return Verdict(name="collectives", ok=True, reason=reason, value=reduced, limit=expected)
    elif reduced != expected:
        reason = f"the compiled step reduces {reduced} gradient bytes, the closed form is {expected}"
    else:
        reason = f"the compiled step reduces {reduced} gradient bytes, the closed form, and has no other collective"
    return Verdict(
        name="collectives", ok=not surprises and reduced == expected, reason=reason, value=reduced, limit=expected
    )


def _judge_form(collectives: tuple[Collective, ...], form: Mapping[str, tuple[int, int]], *, stateful: bool) -> Verdict:
    # A loss is all-reduced; a rank-0 value of another kind is the shard of an array with an element for each device.
    sizes = {c.kind: c.bytes - (c.scalar_bytes if c.kind == "all-reduce" else 0) for c in collectives}
    found = {kind: size for kind, size in sizes.items() if size}
    allowed = {"all-reduce": (0, found.get("all-reduce", 0)), **form} if stateful else form
    wrong = [
        f"{found.get(kind, 0)} bytes by {kind} where the closed form is {_range(*allowed.get(kind, (0, 0)))}"
        for kind in sorted(found.keys() | allowed.keys())
        if not allowed.get(kind, (0, 0))[0] <= found.get(kind, 0) <= allowed.get(kind, (0, 0))[1]
    ]
    said = " and ".join(f"{amount} bytes by {kind}" for kind, amount in sorted(found.items())) or "nothing"
    reason = f"the compiled step moves {said}, the closed form" if not wrong else f"the compiled step moves {wrong[0]}"
    most = sum(high for _, high in form.values())
    return Verdict(name="collectives", ok=not wrong, reason=reason, value=sum(found.values()), limit=most)


def _range(least: int, most: int) -> str:
    return f"{most}" if least == most else f"{least} to {most}"
