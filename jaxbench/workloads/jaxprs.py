# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Walks through a jaxpr and the jaxprs inside it, and evaluates it with other rules for some of its primitives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import jax
import numpy as np
from jax.extend import core
from jax.sharding import NamedSharding

Fact = TypeVar("Fact")  # what is known of a value
Key = tuple[object, ...]

# Primitives that run one inner jaxpr once, on their own operands.
CALLS = frozenset(
    """jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat remat2
    checkpoint""".split()
)

CASTS = ("pvary", "pbroadcast")  # change only what the type checker knows

# (equation, operands) -> results: replaces an equation
Replace = Callable[[core.JaxprEqn, Sequence[jax.Array]], Sequence[jax.Array]]
Rules = Mapping[str, Replace]  # by primitive


def aval_of(var: core.Var | core.Literal) -> jax.ShapeDtypeStruct:
    """The shape and type of a variable, which jax's stubs call an abstract value without either."""
    return cast(jax.ShapeDtypeStruct, var.aval)


def inner(equation: core.JaxprEqn) -> list[tuple[core.Jaxpr, list[jax.Array]]]:
    """(jaxpr, its constants) of each function that an equation runs."""
    # Found by what they are: each primitive names its own differently ("jaxpr", "call_jaxpr", "branches").
    groups = [value if isinstance(value, tuple | list) else (value,) for value in equation.params.values()]
    found = [value for group in groups for value in group if hasattr(value, "eqns")]
    return [(value.jaxpr, value.consts) if hasattr(value, "consts") else (value, []) for value in found]


def equations(jaxpr: core.Jaxpr) -> Iterator[core.JaxprEqn]:
    """The equations of a jaxpr and of all jaxprs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for each, _ in inner(equation):
            yield from equations(each)


def interpret(
    jaxpr: core.Jaxpr,
    constants: Iterable[Fact],
    given: Iterable[Fact],
    literal: Callable[[core.Literal], Fact],
    apply: Callable[[core.JaxprEqn, list[Fact]], Iterable[Fact]],
) -> list[Fact]:
    """One value for each result of a jaxpr. constants, given: the values of its constants and inputs.

    literal: (a literal) -> its value. apply: (an equation, the values of its operands) -> the values of its results.
    """
    values = {id(v): x for v, x in zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *given), strict=True)}

    def of(atom: core.Var | core.Literal) -> Fact:
        return literal(atom) if isinstance(atom, core.Literal) else values[id(atom)]

    for equation in jaxpr.eqns:
        results = apply(equation, [of(operand) for operand in equation.invars])
        values.update((id(out), x) for out, x in zip(equation.outvars, results, strict=True))
    return [of(out) for out in jaxpr.outvars]


def reached(jaxpr: core.Jaxpr, sources: Sequence[core.Var | core.Literal]) -> list[bool]:
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


def numbered(jaxpr: core.Jaxpr) -> list[Key]:
    """One key for each result of a jaxpr: equal keys are the same operations on the same values (value numbering)."""
    keys: dict[Key, int] = {}
    return _numbered(jaxpr, [("argument", index) for index, _ in enumerate(jaxpr.invars)], [], keys)


def _numbered(
    jaxpr: core.Jaxpr, given: Sequence[Key], constants: Sequence[jax.Array], keys: dict[Key, int]
) -> list[Key]:
    """A number for each output: equal numbers are equal values of equal inputs."""
    # The same array in two places is one value. Without arrays (an open jaxpr) each variable is its own.
    held: list[Key] = [("constant", id(c)) for c in constants] or [("constant", id(var)) for var in jaxpr.constvars]

    def apply(equation: core.JaxprEqn, inputs: list[Key]) -> list[Key]:
        bodies = inner(equation)
        if equation.primitive.name in CALLS and len(bodies) == 1 and len(bodies[0][0].invars) == len(inputs):
            return _numbered(bodies[0][0], inputs, bodies[0][1], keys)
        number = keys.setdefault((equation.primitive.name, str(equation.params), *inputs), len(keys))
        return [(number, index) for index, _ in enumerate(equation.outvars)]

    return interpret(jaxpr, held, given, lambda var: ("literal", str(var.aval), str(var.val)), apply)


def evaluate(
    jaxpr: core.Jaxpr, consts: Sequence[jax.Array], operands: Sequence[jax.Array], rules: Rules
) -> list[jax.Array]:
    """Runs the jaxpr of one device, with `rules` in place of some primitives.

    Casts that only the type checker needs are dropped, so call this in a `shard_map` without type checking.
    """

    def literal(var: core.Literal) -> jax.Array:
        """The value of a literal without the mesh that it was traced for."""
        return cast(jax.Array, np.asarray(var.val, aval_of(var).dtype))

    return interpret(jaxpr, consts, operands, literal, lambda equation, given: _results(equation, given, rules))


def _results(equation: core.JaxprEqn, given: Sequence[jax.Array], rules: Rules) -> Sequence[jax.Array]:
    """The results of one equation, by its rule if it has one."""
    name, params = equation.primitive.name, equation.params
    if name in rules:
        return rules[name](equation, given)
    if name in CASTS:
        return given
    # One that splits nothing only ends the type check, which is off here.
    if name in CALLS or (name == "shard_map" and not any(map(any, (*params["in_specs"], *params["out_specs"])))):
        if params.get("differentiated") and params.get("prevent_cse"):  # the barrier that the call would become
            given = jax.lax.optimization_barrier(tuple(given))
        ((called, consts),) = inner(equation)[:1]
        return evaluate(called, consts, given, rules)
    # Rebuilt and not bound as they are: their bodies may hold primitives that `rules` replace.
    if rebuild := {"scan": _scan, "while": _while, "cond": _cond}.get(name):
        # Its scope says how often it runs (`hlo/module.py`).
        with jax.named_scope(scope) if (scope := str(equation.source_info.name_stack)) else contextlib.nullcontext():
            return rebuild(equation, given, rules)
    # Layouts name the mesh that the step was traced for.
    params = {name: None if isinstance(value, NamedSharding) else value for name, value in params.items()}
    results = equation.primitive.bind(*given, **params)
    return results if equation.primitive.multiple_results else [results]


def _scan(equation: core.JaxprEqn, given: Sequence[jax.Array], rules: Rules) -> Sequence[jax.Array]:
    """A scan with the rules applied to its body."""
    params = equation.params
    ((body, consts),) = inner(equation)
    if "ft_in" in params:  # jax 0.12 has trees instead of counts
        constants, carry_in, _ = params["ft_in"].unpack()
        held, carried = len(constants), len(carry_in)
    else:
        held, carried = params["num_consts"], params["num_carry"]
    first, carry, rows = given[:held], given[held : held + carried], given[held + carried :]

    def step(carry: list[jax.Array], row: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
        results = evaluate(body, consts, [*first, *carry, *row], rules)
        return results[:carried], results[carried:]

    settings = {name: params[name] for name in ("length", "reverse", "unroll")}
    last, stacked = jax.lax.scan(step, [*carry], [*rows], **settings)
    return [*last, *stacked]


def _while(equation: core.JaxprEqn, given: Sequence[jax.Array], rules: Rules) -> Sequence[jax.Array]:
    """A while loop with the rules applied to test and body."""
    params = equation.params  # operands: constants of the test, constants of the body, carry
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_test, of_body, carry = given[: split[0]], given[split[0] : split[1]], given[split[1] :]
    return jax.lax.while_loop(
        lambda carry: evaluate(test.jaxpr, test.consts, [*of_test, *carry], rules)[0],
        lambda carry: evaluate(body.jaxpr, body.consts, [*of_body, *carry], rules),
        [*carry],
    )


def _cond(equation: core.JaxprEqn, given: Sequence[jax.Array], rules: Rules) -> Sequence[jax.Array]:
    """A conditional with the rules applied to its branches."""

    def branch(closed: core.ClosedJaxpr) -> Callable[..., list[jax.Array]]:
        return lambda *operands: evaluate(closed.jaxpr, closed.consts, operands, rules)

    return jax.lax.switch(given[0], [branch(closed) for closed in equation.params["branches"]], *given[1:])
