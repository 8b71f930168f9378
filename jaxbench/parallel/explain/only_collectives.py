# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The communication of a step without its computation: its collectives and payloads, in the same order and loops.

Computation is replaced by dependencies: a collective starts as soon as the collectives that it depends on have
finished. So collectives that do not depend on each other may run together, or be combined by the compiler, as in the
step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.errors import Unsupported
from jaxbench.parallel.explain.traced import CASTS, SENDS, communicates, trace
from jaxbench.parallel.program import Program, TrainState, jit_once, keep_barriers
from jaxbench.workloads.base import TrainWorkload
from jaxbench.workloads.jaxprs import CALLS, inner


@dataclass(frozen=True)
class CollectiveCall:
    """One collective. rank: the number of collectives, one after the other, that must finish before it starts."""

    equation: Any
    rank: int

    @property
    def operands(self) -> list[Any]:
        """The shapes and types of its operands on one device."""
        return [var.aval for var in self.equation.invars]


@dataclass(frozen=True)
class CollectiveLoop:
    """Collectives in a loop of `length` iterations, one after the other."""

    items: tuple[CollectiveCall | CollectiveLoop, ...]
    length: int
    rank: int

    @property
    def operands(self) -> list[Any]:
        return [aval for item in self.items for aval in item.operands]


def communication(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program that sends what a step of `program` sends. Its state holds the payloads as parameters.

    Raises Unsupported for a step that is not a per-device program, or has collectives in a loop of unknown length.
    """
    traced, mesh = trace(workload, program, global_batch), program.mesh
    items, _ = collected(traced.jaxpr, [Value() for _ in traced.jaxpr.invars])
    payloads = [aval for item in items for aval in item.operands]
    each, whole = NamedSharding(mesh, PartitionSpec(mesh.axis_names)), NamedSharding(mesh, PartitionSpec())
    state_sharding = TrainState(whole, [each] * len(payloads), (), (), whole)  # type: ignore[arg-type]

    def init(key: jax.Array) -> TrainState:
        # Ones: sums over devices stay finite, since every step sends the same payloads.
        arrays = [jnp.ones((mesh.size, *aval.shape), aval.dtype) for aval in payloads]
        return TrainState(jnp.zeros((), jnp.int32), arrays, (), (), key)

    def on_device(payloads: list[jax.Array]) -> tuple[list[jax.Array], jax.Array]:
        arrays = [x[0] for x in payloads]
        results = sent(items, arrays)
        # The next step's payloads depend on this step's results, so that steps cannot overlap.
        arrays, _ = jax.lax.optimization_barrier((arrays, results))
        return [x[None] for x in arrays], _one_of_each(results)[None]

    spread = PartitionSpec(mesh.axis_names)
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spread,), out_specs=(spread, spread), check_vma=False)

    def step(state: TrainState, batch: Any) -> tuple[TrainState, Any]:
        arrays, used = run(state.params)
        return dataclasses.replace(state, params=arrays), {"used": used}

    return dataclasses.replace(
        program,
        init=jit_once(init, out_shardings=state_sharding),
        step=jax.jit(step, donate_argnums=0, out_shardings=(state_sharding, each)),
        state_sharding=state_sharding,
        batch_sharding=whole,
        put=lambda batch: {},
        gradients=None,
        disabled_passes=tuple(dict.fromkeys((*program.disabled_passes, *keep_barriers(mesh)))),
    )


@dataclass(frozen=True)
class Value:
    """The facts about a value that are collected while the jaxpr of the step is read.

    rank: the number of collectives, one after the other, that the value depends on. same: an identity that is equal for
    values that the compiler knows to be equal.
    """

    rank: int = 0
    same: object = dataclasses.field(default_factory=object)


def collected(jaxpr: Any, inputs: Sequence[Value]) -> tuple[list[CollectiveCall | CollectiveLoop], list[Value]]:
    """(the collectives of a jaxpr, the values of its results).

    A collective of a value that was already sent is left out, because the compiler merges equal collectives. Of several
    branches, the one with the most bytes counts.

    Raises Unsupported for collectives in a loop of unknown length.
    """
    values = {id(var): value for var, value in zip(jaxpr.invars, inputs, strict=True)}
    items: list[CollectiveCall | CollectiveLoop] = []
    done: dict[Any, list[Value]] = {}
    for equation in jaxpr.eqns:
        given = [Value() if hasattr(var, "val") else values.setdefault(id(var), Value()) for var in equation.invars]
        key = equation.primitive.name, str(equation.params), *(id(value.same) for value in given)
        if equation.primitive.name in SENDS and key in done:
            results = done[key]
        else:
            sends, results = _of(equation, given)
            items += sends
            done[key] = results
        values.update((id(var), value) for var, value in zip(equation.outvars, results, strict=True))
    return items, [Value() if hasattr(var, "val") else values[id(var)] for var in jaxpr.outvars]


def _of(equation: Any, given: list[Value]) -> tuple[list[CollectiveCall | CollectiveLoop], list[Value]]:
    name, first = equation.primitive.name, max((value.rank for value in given), default=0)

    def results(rank: int) -> list[Value]:
        return [Value(rank) for _ in equation.outvars]

    if name in SENDS:
        return [CollectiveCall(equation, first)], results(first + 1)
    if name in CASTS:
        return [], given
    bodies = [body for body, _ in inner(equation)]
    if not any(map(communicates, bodies)):
        return [], results(first)
    if name in CALLS:
        again = equation.params.get("differentiated") and equation.params.get("prevent_cse")
        return collected(bodies[0], [Value(value.rank) for value in given] if again else given)
    if name == "cond":
        return max((collected(body, given[1:]) for body in bodies), key=lambda branch: sum(map(_bytes, branch[0])))
    if name != "scan":
        raise Unsupported("it sends in a loop of a length that is not known before it runs")
    items, _ = collected(bodies[0], [Value() for _ in bodies[0].invars])
    return [CollectiveLoop(tuple(items), equation.params["length"], first)], results(first + 1)


# Variants of a collective that differ only for the type checker.
UNTYPED: dict[str, Callable[[jax.Array, dict[str, Any]], jax.Array]] = {
    "psum_invariant": lambda x, params: jax.lax.psum(x, params["axes"]),
    "all_gather_invariant": lambda x, params: jax.lax.all_gather(
        x, params["axis_name"], axis=params["all_gather_dimension"], tiled=params["tiled"]
    ),
}


def _bytes(item: CollectiveCall | CollectiveLoop) -> int:
    size = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in item.operands)
    return size * item.length if isinstance(item, CollectiveLoop) else size


def sent(items: Sequence[CollectiveCall | CollectiveLoop], arrays: list[jax.Array]) -> list[jax.Array]:
    """Runs the collectives on one device. arrays: their payloads, in the order of `items`. Returns what arrives."""
    counts = [len(item.operands) for item in items]
    starts = [sum(counts[:i]) for i in range(len(items))]
    results: list[jax.Array] = []
    for rank in sorted({item.rank for item in items}):
        chosen = [i for i, item in enumerate(items) if item.rank == rank]
        groups = [arrays[starts[i] : starts[i] + counts[i]] for i in chosen]
        # Collectives of one rank may run together; a barrier holds them back until those of lower ranks have finished.
        groups, results = jax.lax.optimization_barrier((groups, results))
        for i, group in zip(chosen, groups, strict=True):
            results += _run(items[i], group)
    return results


def _run(item: CollectiveCall | CollectiveLoop, payload: list[jax.Array]) -> list[jax.Array]:
    if isinstance(item, CollectiveCall):
        params, name = item.equation.params, item.equation.primitive.name
        if name in UNTYPED:
            return [UNTYPED[name](x, params) for x in payload]
        results = item.equation.primitive.bind(*payload, **params)
        return [*results] if item.equation.primitive.multiple_results else [results]

    def again(arrays: list[jax.Array], _: None) -> tuple[list[jax.Array], jax.Array]:
        results = sent(item.items, arrays)
        arrays, _ = jax.lax.optimization_barrier((arrays, results))
        return arrays, _one_of_each(results)

    arrays, used = jax.lax.scan(again, payload, None, length=item.length)
    return [*arrays, used]


def _one_of_each(arrays: list[jax.Array]) -> jax.Array:
    """The sum of one number of each array, so that the compiler keeps all of them."""
    return sum((x[(0,) * x.ndim].astype(jnp.float32) for x in arrays), jnp.zeros(()))
