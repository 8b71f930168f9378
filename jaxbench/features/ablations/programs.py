# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablations of a sharded step: programs that show where it loses time (docs/metrics, Waterfall).

- `local`: the step without communication, on all devices at once.
- `alone`: one device's share of it, with the machine to itself.
- `in_order`: a pipeline's step in which stages still wait for each other, but send almost nothing.
- `communication`: the collectives of the step and their payloads, in the same order and loops, and nothing else.
- `large_product`: the peak that the same devices reach in a matrix product, measured in the same rounds as the step.

All but the last are made from the traced step itself, so their work is that of the step.

Without communication the result of a collective is made from the device's own operand: a sum becomes the operand, a
gathered array the operand repeated, a scattered array a part of it. The numbers are wrong. The shapes are right, and so
is the remaining work. Barriers before and after keep the compiler from skipping work that the collective would have
needed.

In `communication` computation is replaced by dependencies: a collective starts as soon as the collectives that it
depends on have finished. So collectives that do not depend on each other may run together, or be combined by the
compiler, as in the step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike

from jaxbench.core.program import Program, Shardings, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, Batch, TrainWorkload
from jaxbench.errors import Unsupported
from jaxbench.machine.mesh import data_mesh
from jaxbench.parallel.data_parallel import AXIS
from jaxbench.parallel.stage import AXIS as STAGE
from jaxbench.parallel.step import jit_once, keep_barriers
from jaxbench.workloads.jaxprs import CALLS, CASTS, Replace, aval_of, equations, evaluate, inner, interpret

# The primitives that communicate, by the collective that XLA makes of them.
T = TypeVar("T")
SENDS = {
    **dict.fromkeys(("psum", "psum_invariant", "pmax", "pmin"), "all-reduce"),
    **dict.fromkeys(("all_gather", "all_gather_invariant"), "all-gather"),
    **{"reduce_scatter": "reduce-scatter", "ppermute": "collective-permute", "all_to_all": "all-to-all"},
}
WHOLE_ARRAYS = "its optimizer's update needs whole arrays, so it is not the program of one device"

# Variants of a collective that differ only for the type checker.
UNTYPED: dict[str, Callable[[jax.Array, dict[str, Any]], jax.Array]] = {
    "psum_invariant": lambda x, params: jax.lax.psum(x, params["axes"]),
    "all_gather_invariant": lambda x, params: jax.lax.all_gather(
        x, params["axis_name"], axis=params["all_gather_dimension"], tiled=params["tiled"]
    ),
}
# Rows of a square matrix: large enough that the product is limited by arithmetic, and takes about as long as a step.
SIZE = {"cpu": 1024}
LARGE = 8192  # on an accelerator


@dataclass(frozen=True)
class Traced:
    """The part of a step that one device runs.

    jaxpr: (constants, then state and batch, flat and per device) -> (state and metrics, flat). in_specs: of state and
    batch. out_specs: of the results. constants: the same on all devices. out_tree: the structure of (state, metrics).
    """

    jaxpr: core.Jaxpr
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]
    constants: tuple[jax.Array, ...]
    out_tree: jax.tree_util.PyTreeDef

    def run(self, operands: Sequence[jax.Array], replace: Replace) -> list[jax.Array]:
        """Evaluates the jaxpr. operands: the state and batch of one device, flat. replace: the rule for collectives."""
        rules = dict.fromkeys((*SENDS, "axis_index"), replace)  # axis_index: in `alone` it is that of another device
        return evaluate(self.jaxpr, (), [*self.constants, *operands], rules)


def trace(workload: TrainWorkload, program: Program, global_batch: int) -> Traced:
    """Traces a step that is written with `shard_map`. Raises Unsupported if a part of it is outside `shard_map`."""
    with jax.set_mesh(program.mesh):
        state = jax.eval_shape(program.init, KEY)
        batch = jax.eval_shape(program.put, workload.batch_avals(global_batch))
        traced = program.step.trace(state, batch)
    outer = traced.jaxpr.jaxpr
    mapped = [equation for equation in outer.eqns if equation.primitive.name == "shard_map"]
    # Anything outside of shard_map is work on whole arrays, which no single device does.
    if len(mapped) != 1 or len(outer.eqns) != 1:
        raise Unsupported(WHOLE_ARRAYS)
    params, count = mapped[0].params, len(outer.constvars)
    # Nor may it be given, or return, other arrays than the step itself.
    shapes = (mapped[0].invars, [*outer.constvars, *outer.invars]), (mapped[0].outvars, outer.outvars)
    if any([*map(id, these)] != [*map(id, others)] for these, others in shapes):
        raise Unsupported(WHOLE_ARRAYS)
    in_specs, out_specs = tuple(params["in_specs"][count:]), tuple(params["out_specs"])
    constants, out_tree = tuple(traced.jaxpr.consts), jax.tree.structure(traced.out_info)
    return Traced(params["jaxpr"], in_specs, out_specs, constants, out_tree)


def communicates(jaxpr: core.Jaxpr) -> bool:
    """Whether a jaxpr contains a collective, at any depth."""
    return any(equation.primitive.name in SENDS for equation in equations(jaxpr))


def local(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program in which all devices do their share of the step and none waits for another.

    Raises Unsupported for a step that is not a per-device program.
    """
    return _all_at_once(workload, program, global_batch, _own)


def in_order(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """As `local`, but each message between the stages of a pipeline is one number, so a stage waits for its neighbours.

    Raises Unsupported for a step that is not a per-device program.
    """
    return _all_at_once(workload, program, global_batch, _own_when_it_comes)


def _all_at_once(workload: TrainWorkload, program: Program, global_batch: int, replace: Replace) -> Program:
    traced, mesh = trace(workload, program, global_batch), program.mesh

    def on_device(*operands: jax.Array) -> list[jax.Array]:
        return traced.run(operands, replace)

    # Without check_vma: an own operand varies over mesh axes where the collective's result would not.
    run = jax.shard_map(on_device, mesh=mesh, in_specs=traced.in_specs, out_specs=[*traced.out_specs], check_vma=False)
    shardings = program.state_sharding, NamedSharding(mesh, PartitionSpec())
    return _program(program, jax.jit(_step(traced, run), donate_argnums=0, out_shardings=shardings))


def alone(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program in which only the first device runs, with the share of the last device.

    In a pipeline that device has the loss.

    Raises Unsupported for a step that is not a per-device program.
    """
    traced, mesh = trace(workload, program, global_batch), program.mesh
    place = {axis: size - 1 for axis, size in mesh.shape.items()}

    def at_place(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
        if equation.primitive.name != "axis_index":
            return _own(equation, given)
        axes = equation.params["axis_name"]
        axes = (axes,) if isinstance(axes, str) else axes
        index = np.ravel_multi_index([place[axis] for axis in axes], [mesh.shape[axis] for axis in axes])
        return [jnp.int32(index)]

    def run(*operands: jax.Array) -> list[jax.Array]:
        return traced.run(operands, at_place)

    first, last = mesh.devices.flat[0], mesh.devices.flat[-1]
    own_mesh = Mesh(np.array([first]), ("data",))
    here = NamedSharding(own_mesh, PartitionSpec())

    def share(tree: T, shardings: Shardings) -> T:
        """The shard of each global array on the last device."""
        spread = jax.tree.broadcast(shardings, tree)
        return jax.tree.map(lambda x, sharding: x[sharding.devices_indices_map(x.shape)[last]], tree, spread)

    # In one program with the cut, the whole state need not be kept.
    make = getattr(program.init, "__wrapped__", program.init)
    return dataclasses.replace(
        _program(program, jax.jit(_step(traced, run), donate_argnums=0, out_shardings=(here, here)), own_mesh),
        mesh=own_mesh,
        init=jit_once(lambda key: share(make(key), program.state_sharding), out_shardings=here),
        state_sharding=here,
        batch_sharding=here,
        put=lambda batch: jax.device_put(share(batch, program.batch_sharding), here),
        batch_parts=1,
    )


def _program(program: Program, step: jax.stages.Wrapped, mesh: Mesh | None = None) -> Program:
    """The program with another step. Its own checks of gradients and communication do not apply."""
    passes = tuple(dict.fromkeys((*program.disabled_passes, *keep_barriers(mesh or program.mesh))))
    # Its gradients are wrong on purpose, and `Ablations.verdicts` judges what it sends.
    return dataclasses.replace(
        program, step=step, expected=lambda _: {}, sums=0, gradients=None, disabled_passes=passes
    )


def _step(
    traced: Traced, run: Callable[..., list[jax.Array]]
) -> Callable[[TrainState, Batch], tuple[TrainState, ArrayTree]]:
    """A step on lists of arrays as a step on (state, batch)."""
    return lambda state, batch: jax.tree.unflatten(traced.out_tree, run(*jax.tree.leaves((state, batch))))


def _own(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
    """The device's own operand in place of the result of a collective."""
    if equation.primitive.name == "axis_index":
        return [equation.primitive.bind(**equation.params)]
    sizes = [math.prod(x.shape) for x in given]
    operands = jax.lax.optimization_barrier(tuple(given)) if max(sizes) > 1 else given
    made = [_fitted(x, aval_of(out).shape, equation.params) for x, out in zip(operands, equation.outvars, strict=True)]
    return jax.lax.optimization_barrier(tuple(made)) if max(sizes) > 1 else made


def _own_when_it_comes(equation: core.JaxprEqn, given: Sequence[jax.Array]) -> Sequence[jax.Array]:
    """The device's own operand in place of a message between stages, with one number of the message written into it.

    So whatever needs the message still waits for the sender.
    """
    own = _own(equation, given)
    if equation.primitive.name != "ppermute" or STAGE not in equation.params["axis_name"]:
        return own
    firsts = [x.ravel()[:1].reshape((1,) * x.ndim) for x in own]
    come = [equation.primitive.bind(first, **equation.params) for first in firsts]
    return [jax.lax.dynamic_update_slice(x, one, (0,) * x.ndim) for x, one in zip(own, come, strict=True)]


def _fitted(x: jax.Array, shape: tuple[int, ...], params: dict[str, Any]) -> jax.Array:
    """x, repeated or cut to the shape of a collective's result."""
    size, wanted = math.prod(x.shape), math.prod(shape)
    if wanted > size:
        dimension = params["all_gather_dimension"]
        whole = x if params["tiled"] else jnp.expand_dims(x, dimension)
        return jnp.tile(whole, [params["axis_size"] if i == dimension else 1 for i in range(whole.ndim)])
    if wanted < size:
        dimension = params["scatter_dimension"]
        part = jax.lax.slice_in_dim(x, 0, x.shape[dimension] // params["axis_size"], axis=dimension)
        return part.reshape(shape)
    return x.reshape(shape)


@dataclass(frozen=True)
class CollectiveCall:
    """One collective. rank: the number of collectives, one after the other, that must finish before it starts."""

    equation: core.JaxprEqn
    rank: int

    @property
    def operands(self) -> list[jax.ShapeDtypeStruct]:
        """The shapes and types of its operands on one device."""
        return [aval_of(var) for var in self.equation.invars]

    def run(self, payload: list[jax.Array]) -> list[jax.Array]:
        params, name = self.equation.params, self.equation.primitive.name
        if name in UNTYPED:
            return [UNTYPED[name](x, params) for x in payload]
        results = self.equation.primitive.bind(*payload, **params)
        return [*results] if self.equation.primitive.multiple_results else [results]


@dataclass(frozen=True)
class CompiledCall:
    """One collective that a compiler placed; the fields are as in `CollectiveCall`."""

    operands: list[jax.ShapeDtypeStruct]
    rank: int
    run: Callable[[list[jax.Array]], list[jax.Array]]


@dataclass(frozen=True)
class CollectiveLoop:
    """Collectives in a loop of `length` iterations, one after the other."""

    items: tuple[Item, ...]
    length: int
    rank: int

    @property
    def operands(self) -> list[jax.ShapeDtypeStruct]:
        return [aval for item in self.items for aval in item.operands]


Item = CollectiveCall | CompiledCall | CollectiveLoop


def communication(workload: TrainWorkload, program: Program, global_batch: int) -> Program:
    """The Program that sends what a step of `program` sends. Its state holds the payloads as parameters.

    Raises Unsupported for a step that is not a per-device program, or has collectives in a loop of unknown length.
    """
    traced = trace(workload, program, global_batch)
    items, _ = collected(traced.jaxpr, [Value() for _ in traced.jaxpr.invars])
    passes = tuple(dict.fromkeys((*program.disabled_passes, *keep_barriers(program.mesh))))
    return dataclasses.replace(
        program, **sending(items, program.mesh), put=lambda batch: {}, gradients=None, disabled_passes=passes
    )


def sending(items: Sequence[Item], mesh: Mesh) -> dict[str, Any]:
    """The fields of a Program that runs these collectives, and nothing else."""
    payloads = [aval for item in items for aval in item.operands]
    each, whole = NamedSharding(mesh, PartitionSpec(mesh.axis_names)), NamedSharding(mesh, PartitionSpec())
    state_sharding = TrainState(whole, [each] * len(payloads), (), (), whole)  # type: ignore[arg-type]

    def init(key: jax.Array) -> TrainState:
        # Ones: sums over devices stay finite, since every step sends the same payloads.
        arrays = [jnp.ones((mesh.size, *aval.shape), aval.dtype) for aval in payloads]
        return TrainState(jnp.zeros((), jnp.int32), arrays, (), (), key)

    def on_device(payloads: list[jax.Array]) -> tuple[list[jax.Array], jax.Array]:
        arrays = [x[0] for x in payloads]  # each device holds one row of each payload
        results = sent(items, arrays)
        # The next step's payloads depend on this step's results, so that steps cannot overlap.
        arrays, _ = jax.lax.optimization_barrier((arrays, results))
        return [x[None] for x in arrays], _one_of_each(results)[None]

    spread = PartitionSpec(mesh.axis_names)
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spread,), out_specs=(spread, spread), check_vma=False)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, ArrayTree]:
        arrays, used = run(state.params)
        return dataclasses.replace(state, params=arrays), {"used": used}

    return {
        "init": jit_once(init, out_shardings=state_sharding),
        "step": jax.jit(step, donate_argnums=0, out_shardings=(state_sharding, each)),
        "state_sharding": state_sharding,
        "batch_sharding": whole,
    }


@dataclass(frozen=True)
class Value:
    """The facts about a value that are collected while the jaxpr of the step is read.

    rank: the number of collectives, one after the other, that the value depends on. same: an identity that is equal for
    values that the compiler knows to be equal.
    """

    rank: int = 0
    same: object = dataclasses.field(default_factory=object)


def collected(jaxpr: core.Jaxpr, inputs: Sequence[Value]) -> tuple[list[CollectiveCall | CollectiveLoop], list[Value]]:
    """(the collectives of a jaxpr, the values of its results).

    A collective of a value that was already sent is left out, because the compiler merges equal collectives. Of several
    branches, the one with the most bytes counts.

    Raises Unsupported for collectives in a loop of unknown length.
    """
    items: list[CollectiveCall | CollectiveLoop] = []
    done: dict[tuple[object, ...], list[Value]] = {}

    def apply(equation: core.JaxprEqn, given: list[Value]) -> list[Value]:
        key = equation.primitive.name, str(equation.params), *(id(value.same) for value in given)
        if equation.primitive.name not in SENDS or key not in done:
            sends, done[key] = _of(equation, given)
            items.extend(sends)
        return done[key]

    constants = [Value() for _ in jaxpr.constvars]
    return items, interpret(jaxpr, constants, inputs, lambda literal: Value(), apply)


def _of(equation: core.JaxprEqn, given: list[Value]) -> tuple[list[CollectiveCall | CollectiveLoop], list[Value]]:
    """The collectives of an equation, and how deep its results lie in the chain of collectives."""
    name, first = equation.primitive.name, max((value.rank for value in given), default=0)

    def results(rank: int) -> list[Value]:
        return [Value(rank) for _ in equation.outvars]

    if name in SENDS:
        return [CollectiveCall(equation, first)], results(first + 1)
    if name in CASTS:  # a collective of the same value in another type is still the same collective
        return [], given
    bodies = [body for body, _ in inner(equation)]
    if not any(map(communicates, bodies)):
        return [], results(first)
    if name in CALLS:
        # The compiler may not merge a rematerialized block with the first one, so its collectives count again.
        again = equation.params.get("differentiated") and equation.params.get("prevent_cse")
        return collected(bodies[0], [Value(value.rank) for value in given] if again else given)
    if name == "cond":  # its first operand chooses the branch
        return max((collected(body, given[1:]) for body in bodies), key=lambda branch: sum(map(_bytes, branch[0])))
    if name != "scan":
        raise Unsupported("it sends in a loop of a length that is not known before it runs")
    items, _ = collected(bodies[0], [Value() for _ in bodies[0].invars])
    return [CollectiveLoop(tuple(items), equation.params["length"], first)], results(first + 1)


def _bytes(item: Item) -> int:
    """The bytes that a collective is given, in all iterations of its loop."""
    size = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in item.operands)
    return size * item.length if isinstance(item, CollectiveLoop) else size


def sent(items: Sequence[Item], arrays: list[jax.Array]) -> list[jax.Array]:
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


def _run(item: Item, payload: list[jax.Array]) -> list[jax.Array]:
    """Sends `payload` once, or once for each iteration of the loop."""
    if not isinstance(item, CollectiveLoop):
        return item.run(payload)

    def again(arrays: list[jax.Array], _: None) -> tuple[list[jax.Array], jax.Array]:
        results = sent(item.items, arrays)
        arrays, _ = jax.lax.optimization_barrier((arrays, results))
        return arrays, _one_of_each(results)

    arrays, used = jax.lax.scan(again, payload, None, length=item.length)
    return [*arrays, used]


def _one_of_each(arrays: list[jax.Array]) -> jax.Array:
    """The sum of one number of each array, so that the compiler keeps all of them."""
    return sum((x[(0,) * x.ndim].astype(jnp.float32) for x in arrays), jnp.zeros(()))


def product_size(platform: str) -> int:
    return SIZE.get(platform, LARGE)


def product_flops(platform: str, devices: int) -> float:
    """FLOPs of one step on all devices: 2 N^3 for each product."""
    return 2.0 * product_size(platform) ** 3 * devices


def large_product(devices: list[jax.Device], dtype: DTypeLike = jnp.float32, precision: str = "") -> Program:
    """The Program of a step that multiplies two matrices of `dtype` on each device, and keeps the product.

    Each step multiplies the same two matrices: a product of products would overflow in a long run. The state is
    donated, so each step waits for the previous one.

    precision: of products, as `jax.default_matmul_precision` names it; "": the platform's default.
    """
    mesh, rows = data_mesh(devices, AxisType.Auto), product_size(devices[0].platform)
    each, whole = NamedSharding(mesh, PartitionSpec(AXIS)), NamedSharding(mesh, PartitionSpec())
    lies = TrainState(whole, {"x": each, "w": each, "product": each}, (), (), whole)  # type: ignore[arg-type]

    def init(key: jax.Array) -> TrainState:
        # Random values: with zeros a GPU takes less power, and so runs faster.
        shape = len(devices), rows, rows
        drawn = {name: jax.random.normal(jax.random.fold_in(key, i), shape) for i, name in enumerate(("x", "w"))}
        params = {"x": drawn["x"].astype(dtype), "w": (drawn["w"] / rows**0.5).astype(dtype)}  # products like x
        params["product"] = jnp.zeros(shape, dtype)
        return TrainState(jnp.zeros((), jnp.int32), params, (), (), key)

    def on_device(x: jax.Array, w: jax.Array) -> jax.Array:
        with jax.default_matmul_precision(precision) if precision else contextlib.nullcontext():
            return (x[0] @ w[0])[None]

    spread = PartitionSpec(AXIS)
    product = jax.shard_map(on_device, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, ArrayTree]:
        made = product(state.params["x"], state.params["w"])
        return dataclasses.replace(state, params={**state.params, "product": made}), {}

    jitted = jax.jit(step, donate_argnums=0, out_shardings=(lies, whole))
    return Program(
        mesh=mesh,
        init=jit_once(init, out_shardings=lies),
        step=jitted,
        state_sharding=lies,
        batch_sharding=whole,
        put=lambda batch: {},
        expected=lambda _: {},
        sums=0,  # it has no input, and sends nothing
    )
