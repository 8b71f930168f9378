# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Walking through a jaxpr and the jaxprs inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

# Primitives that run one inner jaxpr once, on their own operands.
CALLS = frozenset(
    """jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat remat2
    checkpoint""".split()
)


def inner(equation: Any) -> list[tuple[Any, list[Any]]]:
    """(jaxpr, its constants) of each function that an equation runs."""
    groups = [value if isinstance(value, tuple | list) else (value,) for value in equation.params.values()]
    found = [value for group in groups for value in group if hasattr(value, "eqns")]
    return [(value.jaxpr, value.consts) if hasattr(value, "consts") else (value, []) for value in found]


def equations(jaxpr: Any) -> Iterator[Any]:
    """Of a jaxpr and of all inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for each, _ in inner(equation):
            yield from equations(each)


def reached(jaxpr: Any, sources: Sequence[Any]) -> list[bool]:
    """Of each result of a jaxpr, whether it is computed from one of these variables."""
    tainted = {id(source) for source in sources}  # literals cannot be hashed
    for equation in jaxpr.eqns:
        given = [i for i, x in enumerate(equation.invars) if id(x) in tainted]
        if not given:
            continue
        hit = [True] * len(equation.outvars)
        if equation.primitive.name in ("pjit", "jit"):
            ((called, _),) = inner(equation)
            hit = reached(called, [called.invars[i] for i in given])
        tainted.update(id(out) for out, is_hit in zip(equation.outvars, hit, strict=True) if is_hit)
    return [id(out) in tainted for out in jaxpr.outvars]
