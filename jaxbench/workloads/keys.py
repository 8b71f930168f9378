# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Random keys that are drawn from twice, found in a jaxpr.

Who draws twice from one key gets the same numbers, or numbers that depend on each other. Told are only keys that
two of a person's own lines, or one line again and again, draw from outright: what loops in a program and libraries do
inside is theirs. JAX's own experimental checker takes every operation that it does not know for a draw.
"""

from __future__ import annotations

from typing import Any

from jaxbench import discovery
from jaxbench.workloads.jaxprs import CALLS, inner

Line = tuple[str, int]  # file, line

_DRAWS = {"random_bits", "random_split", "random_gamma"}
_SAME_KEY = {"random_wrap", "random_unwrap", "convert_element_type", "copy"}


def drawn_twice(jaxpr: Any) -> tuple[Line, Line] | None:
    """(where a key is drawn from first, where again), of the first such key in a function's jaxpr; None: there is none.

    Args:
      jaxpr: of a forward pass, as ``jax.make_jaxpr(function)(...).jaxpr``.
    """
    found: list[tuple[Line, Line]] = []
    _drawn_inputs(jaxpr, found)
    return found[0] if found else None


def _drawn_inputs(jaxpr: Any, found: list[tuple[Line, Line]]) -> set[int]:
    """Which of its inputs a jaxpr draws from. Adds to `found` what it draws from twice."""
    names: dict[Any, Any] = {}  # a variable that is another form of a key -> the key
    drawn: dict[Any, list[Line]] = {}  # key -> its first draw, as the person's and the libraries' lines
    for equation in jaxpr.eqns:
        inputs = [None if hasattr(x, "val") else names.get(x, x) for x in equation.invars]  # None: a literal
        if equation.primitive.name in _SAME_KEY:
            names[equation.outvars[0]] = inputs[0]
            continue
        frames = _frames(equation)
        for at in _draws_from(equation, found):
            again = _reuse(drawn.get(inputs[at]), frames)
            if again is not None:
                found.append(again)
            drawn.setdefault(inputs[at], frames)
    return {at for at, x in enumerate(jaxpr.invars) if x in drawn}


def _draws_from(equation: Any, found: list[tuple[Line, Line]]) -> set[int]:
    """Which inputs of an equation it draws from. A backward pass may draw again what the forward pass drew."""
    if equation.params.get("differentiated") or "transpose" in str(equation.source_info.name_stack):
        return set()
    if equation.primitive.name in _DRAWS:
        return {0}
    if equation.primitive.name not in CALLS:
        return set()
    called = [each for each, _ in inner(equation) if len(each.invars) == len(equation.invars)]
    return _drawn_inputs(called[0], found) if called else set()


def _frames(equation: Any) -> list[Line]:
    """The lines an equation was made by, the innermost first."""
    traceback = equation.source_info.traceback
    return [(frame.file_name, frame.line_num) for frame in traceback.frames] if traceback is not None else []


def _reuse(first: list[Line] | None, again: list[Line]) -> tuple[Line, Line] | None:
    """The person's lines of two draws from one key; None where it is a library that draws twice for one line."""
    if first is None:
        return None
    lines = [next((line for line in frames if discovery.is_theirs(line[0])), None) for frames in (first, again)]
    if lines[0] is None or lines[1] is None or (lines[0] == lines[1] and first != again):
        return None
    return lines[0], lines[1]
