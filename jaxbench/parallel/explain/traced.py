# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A traced step as the function of one device, which can be run with its collectives replaced or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from jaxbench.errors import Unsupported
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.jaxprs import CALLS, equations, inner

# The primitives that communicate, by the collective that XLA makes of them.
SENDS = {
    **dict.fromkeys(("psum", "psum_invariant", "pmax", "pmin"), "all-reduce"),
    **dict.fromkeys(("all_gather", "all_gather_invariant"), "all-gather"),
    **{"reduce_scatter": "reduce-scatter", "ppermute": "collective-permute", "all_to_all": "all-to-all"},
}
CASTS = ("pvary", "pbroadcast")  # change only what the type checker knows
WHOLE_ARRAYS = "its optimizer's update needs whole arrays, so it is not the program of one device"

# (equation, operands) -> results: replaces an equation that communicates, or that asks for the index of its device
Replace = Callable[[Any, Sequence[Any]], Sequence[Any]]
Rules = Mapping[str, Replace]  # by primitive


@dataclass(frozen=True)
class Traced:
    """The part of a step that one device runs.

    jaxpr: (constants, then state and batch, flat and per device) -> (state and metrics, flat). in_specs: of state and
    batch. out_specs: of the results. constants: the same on all devices. out_tree: the structure of (state, metrics).
    """

    jaxpr: Any
    in_specs: tuple[Any, ...]
    out_specs: tuple[Any, ...]
    constants: tuple[Any, ...]
    out_tree: Any

    def run(self, operands: Sequence[Any], replace: Replace) -> list[Any]:
        """Evaluates the jaxpr. operands: the state and batch of one device, flat. replace: the rule for collectives."""
        rules = dict.fromkeys((*SENDS, "axis_index"), replace)
        return evaluate(self.jaxpr, (), [*self.constants, *operands], rules)


def trace(workload: TrainWorkload, program: Program, global_batch: int) -> Traced:
    """Traces a step that is written with `shard_map`. Raises Unsupported if a part of it is outside `shard_map`."""
    with jax.set_mesh(program.mesh):
        state = jax.eval_shape(program.init, KEY)
        batch = jax.eval_shape(program.put, workload.batch_avals(global_batch))
        traced = program.step.trace(state, batch)
    outer = traced.jaxpr.jaxpr
    mapped = [equation for equation in outer.eqns if equation.primitive.name == "shard_map"]
    if len(mapped) != 1 or len(outer.eqns) != 1:
        raise Unsupported(WHOLE_ARRAYS)
    params, count = mapped[0].params, len(outer.constvars)
    if not _same(mapped[0].invars, [*outer.constvars, *outer.invars]) or not _same(mapped[0].outvars, outer.outvars):
        raise Unsupported(WHOLE_ARRAYS)
    return Traced(
        params["jaxpr"],
        tuple(params["in_specs"][count:]),
        tuple(params["out_specs"]),
        tuple(traced.jaxpr.consts),
        jax.tree.structure(traced.out_info),
    )


def _same(these: Sequence[Any], others: Sequence[Any]) -> bool:
    return [id(var) for var in these] == [id(var) for var in others]


def evaluate(jaxpr: Any, consts: Sequence[Any], operands: Sequence[Any], rules: Rules) -> list[Any]:
    """Runs the jaxpr of one device, with `rules` in place of some primitives.

    Casts that only the type checker needs are dropped, so call this in a `shard_map` without type checking.
    """
    values: dict[int, Any] = {}
    for var, value in [*zip(jaxpr.constvars, consts, strict=True), *zip(jaxpr.invars, operands, strict=True)]:
        values[id(var)] = value
    for equation in jaxpr.eqns:
        given = [_literal(var) if hasattr(var, "val") else values[id(var)] for var in equation.invars]
        results = _results(equation, given, rules)
        values.update((id(var), value) for var, value in zip(equation.outvars, results, strict=True))
    return [_literal(var) if hasattr(var, "val") else values[id(var)] for var in jaxpr.outvars]


def _literal(var: Any) -> np.ndarray:
    """The value of a literal without the mesh that it was traced for."""
    return np.asarray(var.val, var.aval.dtype)


def _results(equation: Any, given: Sequence[Any], rules: Rules) -> Sequence[Any]:
    name, params = equation.primitive.name, equation.params
    if name in rules:
        return rules[name](equation, given)
    if name in CASTS:
        return given
    if name in CALLS:
        if params.get("differentiated") and params.get("prevent_cse"):  # the barrier that the call would become
            given = jax.lax.optimization_barrier(tuple(given))
        ((called, consts),) = inner(equation)[:1]
        return evaluate(called, consts, given, rules)
    if name in LOOPS:
        return LOOPS[name](equation, given, rules)
    # Layouts name the mesh that the step was traced for.
    params = {name: None if isinstance(value, NamedSharding) else value for name, value in params.items()}
    results = equation.primitive.bind(*given, **params)
    return results if equation.primitive.multiple_results else [results]


def _scan(equation: Any, given: Sequence[Any], rules: Rules) -> Sequence[Any]:
    params = equation.params
    ((body, consts),) = inner(equation)
    held, carried = _scan_counts(params)
    first, carry, rows = given[:held], given[held : held + carried], given[held + carried :]

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        results = evaluate(body, consts, [*first, *carry, *row], rules)
        return results[:carried], results[carried:]

    settings = {name: params[name] for name in ("length", "reverse", "unroll")}
    last, stacked = jax.lax.scan(step, [*carry], [*rows], **settings)
    return [*last, *stacked]


def _scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """(the number of constant operands of a scan, the number of carried ones). jax 0.12 has trees instead."""
    if "ft_in" in params:
        constants, carry, _ = params["ft_in"].unpack()
        return len(constants), len(carry)
    return params["num_consts"], params["num_carry"]


def _while(equation: Any, given: Sequence[Any], rules: Rules) -> Sequence[Any]:
    params = equation.params
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_test, of_body, carry = given[: split[0]], given[split[0] : split[1]], given[split[1] :]
    return jax.lax.while_loop(
        lambda carry: evaluate(test.jaxpr, test.consts, [*of_test, *carry], rules)[0],
        lambda carry: evaluate(body.jaxpr, body.consts, [*of_body, *carry], rules),
        [*carry],
    )


def _cond(equation: Any, given: Sequence[Any], rules: Rules) -> Sequence[Any]:
    def branch(closed: Any) -> Callable[..., list[Any]]:
        return lambda *operands: evaluate(closed.jaxpr, closed.consts, operands, rules)

    return jax.lax.switch(given[0], [branch(closed) for closed in equation.params["branches"]], *given[1:])


LOOPS: dict[str, Callable[[Any, Sequence[Any], Rules], Sequence[Any]]] = {
    "scan": _scan, "while": _while, "cond": _cond,
}  # fmt: skip


def communicates(jaxpr: Any) -> bool:
    """Whether a jaxpr contains a collective, at any depth."""
    return any(equation.primitive.name in SENDS for equation in equations(jaxpr))
