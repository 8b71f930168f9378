# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Support for both forms of RNG keys, and a check of a jaxpr for keys that are used twice.

Two draws from one key give equal or dependent numbers. A key is reported only if two of the user's own lines, or one
repeated line, use it directly. Loops inside a program and libraries are not checked. (JAX's experimental key checker
takes every unknown operation for a draw.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from jaxbench import discovery
from jaxbench.workloads.jaxprs import CALLS, inner

Line = tuple[str, int]  # file, line

_DRAWS = {"random_bits", "random_split", "random_gamma"}
_SAME_KEY = {"random_wrap", "random_unwrap", "convert_element_type", "copy"}


def either_form(function: Any) -> Callable[..., Any]:
    """Wraps `function` so that a key given as words (uint32), its last argument, arrives as a typed key.

    A typed key is what ``jax.random.key`` returns. `function` gets the words if it works only with them: older code
    expects a key to be an array of numbers.
    """
    words_work: bool | None = None  # None: not known yet

    def call(*arguments: Any) -> Any:
        nonlocal words_work
        *others, words = arguments
        # Decided at the first call: trying the typed key each time would trace the function twice.
        if words_work or words is None or jax.dtypes.issubdtype(words.dtype, jax.dtypes.prng_key):
            return function(*arguments)
        try:
            result, words_work = function(*others, jax.random.wrap_key_data(words)), False
        except (TypeError, ValueError, IndexError):  # how JAX refuses a key of the other form
            if words_work is not None:
                raise
            result, words_work = function(*arguments), True
        return result

    return functools.wraps(function)(call) if callable(function) else function


def drawn_twice(jaxpr: Any) -> tuple[Line, Line] | None:
    """(line of the first draw, line of the second) of the first key used twice in a jaxpr, or None.

    Args:
      jaxpr: of a forward pass, as ``jax.make_jaxpr(function)(...).jaxpr``.
    """
    reuses: list[tuple[Line, Line]] = []
    _drawn_inputs(jaxpr, reuses)
    return reuses[0] if reuses else None


def _drawn_inputs(jaxpr: Any, reuses: list[tuple[Line, Line]]) -> set[int]:
    """The indices of the inputs that a jaxpr draws from. Appends keys that it draws from twice to `reuses`."""
    names: dict[Any, Any] = {}  # variable that holds another form of a key -> the key
    drawn: dict[Any, list[Line]] = {}  # key -> stack of its first draw
    for equation in jaxpr.eqns:
        inputs = [None if hasattr(x, "val") else names.get(x, x) for x in equation.invars]  # None: a literal
        if equation.primitive.name in _SAME_KEY:
            names[equation.outvars[0]] = inputs[0]
            continue
        frames = _frames(equation)
        for place in _draws_from(equation, reuses):
            reuse = _reuse(drawn.get(inputs[place]), frames)
            if reuse is not None:
                reuses.append(reuse)
            drawn.setdefault(inputs[place], frames)
    return {place for place, x in enumerate(jaxpr.invars) if x in drawn}


def _draws_from(equation: Any, reuses: list[tuple[Line, Line]]) -> set[int]:
    """The indices of the inputs that an equation draws from. A backward pass may repeat forward draws."""
    if equation.params.get("differentiated") or "transpose" in str(equation.source_info.name_stack):
        return set()
    if equation.primitive.name in _DRAWS:
        return {0}
    if equation.primitive.name not in CALLS:
        return set()
    # A call with other inputs than its body, such as a scan with constants, cannot be followed by index.
    called = [each for each, _ in inner(equation) if len(each.invars) == len(equation.invars)]
    return _drawn_inputs(called[0], reuses) if called else set()


def _frames(equation: Any) -> list[Line]:
    """The stack of source lines that produced an equation, innermost first."""
    traceback = equation.source_info.traceback
    return [(frame.file_name, frame.line_num) for frame in traceback.frames] if traceback is not None else []


def _reuse(first: list[Line] | None, second: list[Line]) -> tuple[Line, Line] | None:
    """The user's lines of two draws from one key; None if a library draws twice for one line."""
    if first is None:
        return None
    lines = [next((line for line in frames if discovery.is_theirs(line[0])), None) for frames in (first, second)]
    if lines[0] is None or lines[1] is None or (lines[0] == lines[1] and first != second):
        return None
    return lines[0], lines[1]
