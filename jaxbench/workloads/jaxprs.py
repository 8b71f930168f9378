# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Walks through a jaxpr and the jaxprs inside it."""

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
    """The equations of a jaxpr and of all jaxprs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for each, _ in inner(equation):
            yield from equations(each)


def reached(jaxpr: Any, sources: Sequence[Any]) -> list[bool]:
    """For each result of a jaxpr, whether it is computed from one of the variables `sources`."""
    tainted = {id(source) for source in sources}  # literals cannot be hashed
    for equation in jaxpr.eqns:
        given = [i for i, x in enumerate(equation.invars) if id(x) in tainted]
        if not given:
            continue
        # Without looking inside, every result counts as reached. Only plain calls are followed, result by result.
        hit = [True] * len(equation.outvars)
        if equation.primitive.name in ("pjit", "jit"):
            ((called, _),) = inner(equation)
            hit = reached(called, [called.invars[i] for i in given])
        tainted.update(id(out) for out, is_hit in zip(equation.outvars, hit, strict=True) if is_hit)
    return [id(out) in tainted for out in jaxpr.outvars]


def numbered(jaxpr: Any) -> list[Any]:
    """One key for each result of a jaxpr: equal keys are the same operations on the same values (value numbering)."""
    keys: dict[Any, int] = {}
    return _numbered(jaxpr, [("argument", place) for place, _ in enumerate(jaxpr.invars)], [], keys)


def _numbered(jaxpr: Any, given: Sequence[Any], constants: Sequence[Any], keys: dict[Any, int]) -> list[Any]:
    values = {id(var): value for var, value in zip(jaxpr.invars, given, strict=True)}
    for place, var in enumerate(jaxpr.constvars):
        values[id(var)] = ("constant", id(constants[place]) if place < len(constants) else id(var))

    def of(var: Any) -> Any:
        return ("literal", str(var.aval), str(var.val)) if hasattr(var, "val") else values[id(var)]

    for equation in jaxpr.eqns:
        inputs, bodies = [of(var) for var in equation.invars], inner(equation)
        if equation.primitive.name in CALLS and len(bodies) == 1 and len(bodies[0][0].invars) == len(inputs):
            body, held = bodies[0]
            outputs = _numbered(body, inputs, held, keys)
        else:
            key = (equation.primitive.name, str(equation.params), *inputs)
            number = keys.setdefault(key, len(keys))
            outputs = [(number, place) for place, _ in enumerate(equation.outvars)]
        values.update((id(var), value) for var, value in zip(equation.outvars, outputs, strict=True))
    return [of(var) for var in jaxpr.outvars]
