# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training step on a named mesh. Its axes split the batch, the state, the model's products or its positions.

The step is written with `shard_map`, so the communication is explicit; under `jit` the compiler would place it. If
products or positions are split, type checking is on. It tracks which arrays are *invariant*, that is, equal on all
devices of an axis. JAX sums the gradient of such an array over those devices: this is how the backward pass of a
product that is split over `tensor` gets its all-reduces. Over axes that split examples or positions the gradient must
be a mean, which is written here. For these axes the parameters are cast to *varying* first. If only the batch is split,
type checking is off (see strategies/shard_map.py).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, CollectiveBounds, DeviceShare, Metrics, PyTree, TrainWorkload
from jaxbench.errors import Unsupported, UserError
from jaxbench.levers import GATHER
from jaxbench.parallel import multihost
from jaxbench.parallel.axes import AXES, Sizes, batch_parts, mesh_of, splits
from jaxbench.parallel.layout import Cut, Layout, cuts
from jaxbench.parallel.optimizer import GatheredUpdate, gathered_update, unused_gradients
from jaxbench.parallel.step import create_state, gradients, jit_initial, keep_barriers, mean_over, update, without
from jaxbench.workloads import rng_keys, sharding_context
from jaxbench.workloads.jaxprs import interpret
from jaxbench.workloads.levers import not_frozen

# The axes over which the backward pass repeats communication instead of storing its result.
AGAIN = {"fsdp", "context"}
_REMAT = ("checkpoint", "remat2", "remat")  # the primitive's names in several versions of JAX


def build(
    workload: TrainWorkload,
    devices: list[jax.Device],
    sizes: Sizes,
    *,
    sequence: bool = False,
    ulysses: bool = False,
    gather: str = GATHER.default,
) -> Program:
    """Returns the Program on the mesh of `sizes`. sequence: split positions between products split by `tensor`.
    ulysses: attention exchanges positions for heads. gather: a value of the lever.

    Raises UserError for an axis that the workload cannot be split over, and for sizes that do not divide.
    """
    require(workload, sizes, sequence=sequence)
    layout, mesh, means = Layout(workload, cuts(workload, sizes)), mesh_of(devices, sizes), mean_axes(sizes)
    gathered = gathered_update(workload, mesh, layout)

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        key = rng_keys.local_key(state.key, means)
        # JAX sums the gradient of an array that all devices share. Over these axes it must be a mean, so the arrays are
        # declared to differ, and `mean` below writes the reduction.
        params, model_state = varying((state.params, state.model_state), means)
        params = jax.tree.map(lambda x, cut: varying(x, cut.summed), params, layout.cuts)
        local = dataclasses.replace(state, params=params, model_state=model_state, key=key)
        on_device, held, summed = workload, _unchanged, _unchanged
        if gather == GATHER.default:
            on_device = dataclasses.replace(workload, loss=_of_shards(workload, layout, gather="fsdp" in sizes))
        else:  # a gather of all, before the micro-batches
            local = dataclasses.replace(local, params=jax.tree.map(lambda x, cut: cut.whole(x), params, layout.cuts))
            scattered = lambda grads: jax.tree.map(lambda g, cut: cut.sum(g), grads, layout.cuts)  # noqa: E731
            held, summed = (scattered, _unchanged) if gather == "once" else (_unchanged, scattered)
        with sharding_context.over(axis=means or None, **where(sizes, sequence=sequence, ulysses=ulysses)):
            grads, model_state, metrics = gradients(on_device, local, batch, held=held)
        grads = summed(grads)
        grads = jax.tree.map(lambda g, cut: mean(g, cut, sizes), grads, layout.cuts)
        return grads, *(mean_over(means, (model_state, metrics)) if means else (model_state, metrics))

    ways: dict[str, Any] = {"sequence": sequence, "ulysses": ulysses, "gather": gather}
    bounds = partial(expected, workload, layout, sizes, platform=devices[0].platform, **ways)
    # Without its barriers, XLA's CPU compiler merges the repeated gather with the first one and stores its result.
    passes = keep_barriers(mesh) if AGAIN & {*sizes} else ()
    held = lambda *args: local_gradients(*args)[0], layout.specs().params  # noqa: E731
    sums = 1 if means else 0  # without an axis that splits examples, each device has the whole loss
    step = Step(
        local_gradients,
        partial(update, workload) if gathered is None else gathered.update,
        layout.specs().params,
        gathered,
    )
    typed = not {*sizes} <= {"data", "fsdp"}  # see the module's docstring
    return program(
        workload, layout, mesh, sizes, step, bounds, held=held, disabled_passes=passes, sums=sums, typed=typed
    )


def _unchanged(tree: PyTree) -> PyTree:
    return tree


@dataclass(frozen=True)
class Step:
    """The computation of a step, independent of the layout of its arrays.

    gradients: on one device, (state, batch) -> (gradients, model_state, metrics).
    update: (state, gradients, model_state) -> state: on one device, or on global arrays if there is a gathered
    update.
    specs: the layout of the gradients, if there is a gathered update.
    """

    gradients: Callable[[TrainState, Batch], tuple[PyTree, PyTree, Metrics]]
    update: Callable[[TrainState, PyTree, PyTree], TrainState]
    specs: PyTree
    gathered: GatheredUpdate | None

    @property
    def sends(self) -> CollectiveBounds:
        """The communication that the gathered update adds to that of the step."""
        return {} if self.gathered is None else self.gathered.sends

    def mapped(self, run: Callable[..., PyTree], specs: TrainState) -> Callable[..., PyTree]:
        """(state, batch) -> (state, metrics), on global arrays. run: `shard_map`, except for `out_specs`."""
        whole = PartitionSpec()

        def on_device(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
            grads, model_state, metrics = self.gradients(state, batch)
            return self.update(state, grads, model_state), metrics

        def on_global(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
            grads, model_state, metrics = run(self.gradients, out_specs=(self.specs, whole, whole))(state, batch)
            return self.update(state, grads, model_state), metrics

        return run(on_device, out_specs=(specs, whole)) if self.gathered is None else on_global


def require(workload: TrainWorkload, sizes: Sizes, *, sequence: bool = False) -> None:
    """Raises UserError for an axis that the workload cannot be split over; the Layout checks the parameters."""
    context, tensor = sizes.get("context", 1), sizes.get("tensor", 1)
    partition = workload.partition
    if splits(partition, "expert") and (context > 1 or (sequence and tensor > 1)):
        raise Unsupported(
            f"the experts of '{workload.name}' take positions by whole sequences, so these cannot be split: use the "
            "axes data, fsdp, expert and tensor, and --config.lever.sequence_parallel=off."
        )
    # An axis of one device splits nothing, so any model may have it.
    if context > 1 and not splits(partition, "context"):
        raise Unsupported(f"'{workload.name}' has no positions to split over the axis context; gpt has.")
    if sequence and tensor > 1 and partition is not None and not partition.positions:
        raise Unsupported(
            f"--config.lever.sequence_parallel=on splits positions, but '{workload.name}' has none: use off, or gpt."
        )
    if sequence and tensor > 1 and context > 1:
        raise UserError(
            "--config.lever.sequence_parallel=on splits positions over the axis tensor, but the axis context already "
            "splits them: use off."
        )
    if partition is not None:
        sharding_context.require_even_positions(
            partition.positions, context=context, sequence=tensor if sequence else 1
        )


def mean_axes(sizes: Sizes) -> tuple[str, ...]:
    """The axes over which gradients are averaged: along them, devices have different examples or positions."""
    return tuple(axis for axis in sizes if AXES[axis] or axis == "context")


def where(sizes: Sizes, *, sequence: bool = False, ulysses: bool = False) -> dict[str, Any]:
    """The arguments of `sharding_context.over` for the axes that split a model."""
    names = {name: name for name in ("tensor", "context", "expert") if sizes.get(name, 1) > 1}
    return {**names, "sequence": sequence and "tensor" in names, "ulysses": ulysses}


def varying(tree: PyTree, axes: tuple[str, ...]) -> PyTree:
    """Casts arrays to *varying* over `axes`, unless they are already."""

    def cast(x: jax.Array) -> jax.Array:
        missing = tuple(axis for axis in dict.fromkeys(axes) if axis not in sharding_context.varies(x))
        return jax.lax.pcast(x, missing, to="varying") if missing else x

    return jax.tree.map(cast, tree)


def _of_shards(workload: TrainWorkload, layout: Layout, *, gather: bool) -> Callable[..., PyTree]:
    """The workload's loss as a function of a device's shards."""
    if not gather:
        return workload.loss

    def saveable(primitive: Any, *operands: PyTree, **settings: Any) -> bool:
        """Whether a result is stored: all are, except those that turn shards into a parameter."""
        # Complex numbers are recomputed too: JAX cannot store them here, because it rounds what it stores.
        if primitive.name in ("fft", "complex") or jnp.issubdtype(settings.get("new_dtype", bool), jnp.complexfloating):
            return False
        if any(jnp.issubdtype(operand.dtype, jnp.complexfloating) for operand in operands):
            return False
        # The model's own slices and reshapes are recomputed along with those of the gather, which costs nothing.
        gathers = primitive.name == "all_gather" and settings["axis_name"] in ("fsdp", ("fsdp",))
        return not gathers and primitive.name not in ("slice", "reshape")

    # The transpose of the gather sums the gradient over `fsdp` and cuts it. The backward pass gathers the parameters
    # again instead of storing them.
    @partial(jax.checkpoint, policy=saveable)
    def loss(shards: PyTree, model_state: PyTree, batch: Batch, key: jax.Array) -> PyTree:
        whole = jax.tree.map(lambda shard, cut: cut.whole(shard), shards, layout.cuts)
        return keeping_recomputation(workload.loss)(whole, model_state, batch, key)

    return loss


def mean(grad: jax.Array, cut: Cut, sizes: Sizes) -> jax.Array:
    """A parameter's gradient as the mean over all devices that have different examples or positions."""
    for axis in mean_axes(sizes):
        # Along an axis that splits the parameter itself, each part was used for the examples of all devices, so its
        # gradient is already a sum.
        grad = grad / sizes[axis] if axis in cut.axes else grad
    replicated = tuple(axis for axis in mean_axes(sizes) if axis not in cut.axes)
    if cut.summed:  # each device has a part of the examples of one loss, so its gradient is a part of a sum
        return jax.lax.psum(grad, (*replicated, *cut.summed)) / math.prod(sizes[axis] for axis in replicated)
    return jax.lax.pmean(grad, replicated) if replicated else grad


def program(
    workload: TrainWorkload,
    layout: Any,
    mesh: Any,
    sizes: Sizes,
    step: Step,
    bounds: Callable[[int], CollectiveBounds],
    *,
    held: tuple[Callable[..., PyTree], PyTree] | None = None,
    disabled_passes: tuple[str, ...] = (),
    typed: bool = True,
    sums: int = 1,
) -> Program:
    """The Program of a step.

    layout: anything with the `cut`, `specs` and `export` of a `Layout`. bounds: global batch -> the expected
    communication. held: ((state, batch) -> the gradients that a device holds, their specs). typed: whether `shard_map`
    checks which arrays are equal on all devices. sums: as `Program.sums`.
    """
    specs, whole = layout.specs(), PartitionSpec()
    examples = tuple(axis for axis in sizes if AXES[axis])
    split = PartitionSpec(examples) if examples else whole
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    batch_sharding = NamedSharding(mesh, split)
    run = partial(jax.shard_map, mesh=mesh, in_specs=(specs, split), check_vma=typed)
    return Program(
        mesh=mesh,
        init=jit_initial(
            lambda key: layout.cut(create_state(workload, key)), whole=mesh.size == 1, out_shardings=shardings
        ),
        step=jax.jit(
            step.mapped(run, specs),
            donate_argnums=0,
            out_shardings=(shardings, NamedSharding(mesh, whole)),
            compiler_options=without(disabled_passes),
        ),
        state_sharding=shardings,
        batch_sharding=batch_sharding,
        put=lambda batch: multihost.put(batch, batch_sharding),
        export=layout.export,
        # Not an alias: the step donates its state, and would overwrite the caller's arrays.
        load=lambda state: multihost.put(jax.device_get(layout.cut(state)), shardings, may_alias=False),
        expected=(lambda batch: both(bounds(batch), step.sends)) if step.sends else bounds,
        gradients=None if held is None else jax.jit(run(held[0], out_specs=held[1])),
        batch_parts=batch_parts(sizes),
        disabled_passes=disabled_passes,
        sums=sums,
        keys=rng_keys.keys_of_parts(*(sizes[axis] for axis in mean_axes(sizes))) if mean_axes(sizes) else None,
    )


def expected(
    workload: TrainWorkload,
    layout: Layout,
    sizes: Sizes,
    global_batch: int,
    *,
    sequence: bool = False,
    ulysses: bool = False,
    gather: str = GATHER.default,
    platform: str = "cpu",
) -> CollectiveBounds:
    """The expected communication of a step: gradients, parameters and the layers' own collectives, with padding."""
    passes, state = workload.micro_batches, jax.tree.leaves(not_frozen(layout.canonical.model_state))
    bounds: CollectiveBounds = {}
    unused = unused_gradients(workload, layout.canonical)
    for index, cut in enumerate(jax.tree.leaves(layout.cuts)):
        if cut.parts > 1:
            # The backward pass gathers again only what it needs: no biases, and nothing of a first layer, because its
            # input needs no gradient. The forward passes of micro-batches may share a gather.
            add(bounds, "all-gather", cut.numbers, (2 * passes if gather == GATHER.default else 1) * cut.numbers)
            sums = 1 if gather == "once_summed" else passes
            # XLA for a GPU may scatter the sum over micro-batches once, instead of scattering each.
            least = 0 if index in unused else 1 if platform == "gpu" else sums
            add(bounds, "reduce-scatter", least * cut.numbers // cut.parts, sums * cut.numbers // cut.parts)
        replicated = [axis for axis in mean_axes(sizes) if axis not in cut.axes]
        if any(sizes[axis] > 1 for axis in (*replicated, *cut.summed)):
            summed = cut.numbers // cut.parts
            add(bounds, "all-reduce", 0 if index in unused else summed, summed)
    if workload.partition is not None:
        examples = global_batch // batch_parts(sizes) // passes
        share = DeviceShare(examples=examples, sizes=sizes, sequence=sequence, ulysses=ulysses)
        for kind, (least, most) in workload.partition.collective_bounds(share).items():
            add(bounds, kind, passes * least, passes * most)
        if batch_parts(sizes) > 1:  # the model's state, such as batch statistics
            add(bounds, "all-reduce", sum(leaf.size for leaf in state))
    if "reduce-scatter" in bounds and state:
        # XLA merges reductions of equal gradients, such as of the biases of two batch normalizations that are added.
        least, most = bounds["reduce-scatter"]
        bounds["reduce-scatter"] = least - least // 20, most  # 5 %: such biases are few numbers
    return bounds


def add(bounds: CollectiveBounds, kind: str, least: int, most: int | None = None) -> None:
    """Adds a collective to the bounds, in place. most: None for `least`."""
    if most != 0 and (least or most):
        low, high = bounds.get(kind, (0, 0))
        bounds[kind] = low + least, high + (least if most is None else most)


def both(*all_bounds: CollectiveBounds) -> CollectiveBounds:
    """The sum of several bounds."""
    total: CollectiveBounds = {}
    for bounds in all_bounds:
        for kind, (least, most) in bounds.items():
            add(total, kind, least, most)
    return total


def keeping_recomputation(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The same function of arrays, with checkpoints that keep their own policy inside another checkpoint.

    This holds for checkpoints at the top level of `function`; checkpoints inside a loop do not change.
    """
    # `jax.checkpoint` applies its policy to the checkpoints inside it too. A strategy that stores everything except
    # gathered parameters would therefore also store what the model wants to recompute. Here each inner checkpoint
    # becomes a function with its own backward pass. The outer checkpoint then sees only its arguments and what its own
    # policy stores.

    def run(*args: PyTree) -> PyTree:
        closed, out = jax.make_jaxpr(function, return_shape=True)(*args)
        if not any(equation.primitive.name in _REMAT for equation in closed.jaxpr.eqns):
            return function(*args)
        results = interpret(closed.jaxpr, closed.consts, jax.tree.leaves(args), lambda atom: atom.val, _apply)
        return jax.tree.unflatten(jax.tree.structure(out), results)

    return run


def _apply(equation: core.JaxprEqn, values: list[jax.Array]) -> list[jax.Array]:
    """The results of one equation. Recomputation keeps its policy."""
    if equation.primitive.name in _REMAT:
        return _recomputed(equation.params)(*values)
    with equation.ctx.manager:  # such as the precision of products
        results = equation.primitive.bind(*values, **equation.primitive.get_bind_params(equation.params))
    return results if equation.primitive.multiple_results else [results]


def _recomputed(params: dict[str, Any]) -> Callable[..., PyTree]:
    """The body of a checkpoint, with a backward pass of its own that gets what the checkpoint's policy stores."""
    body = core.jaxpr_as_fun(core.ClosedJaxpr(params["jaxpr"], ()))
    inner = jax.checkpoint(body, policy=params["policy"], prevent_cse=params["prevent_cse"])

    @jax.custom_vjp
    def run(*args: PyTree) -> PyTree:
        return inner(*args)

    def forward(*args: PyTree) -> tuple[PyTree, PyTree]:
        return jax.vjp(inner, *args)

    def backward(stored: PyTree, gradient: PyTree) -> PyTree:
        found = stored(gradient)
        # Of a long sequence, activations are what fills the memory.
        return found if sharding_context.current().context is None else largest_last(found)

    run.defvjp(forward, backward)
    return run


def largest_last(gradients: ArrayTree) -> ArrayTree:
    """`gradients`, with the largest of them, that of a block's activations, available only when the others are."""
    # A GPU's compiler drops barriers before it schedules. It may then compute the gradients of all parameters after
    # those of all activations, for which it keeps the activations of all blocks. A comparison is no barrier, so it
    # stays. Where the sum is no number, a gradient is none either.
    leaves, structure = jax.tree.flatten(gradients)
    last = max(range(len(leaves)), key=lambda i: leaves[i].size)
    axes = sharding_context.varies(leaves[last])  # a gradient that the devices share must not vary afterwards
    others = [x for i, x in enumerate(leaves) if i != last and jnp.issubdtype(x.dtype, jnp.floating) and x.size]
    firsts = [x.ravel()[0].astype(jnp.float32) for x in others if sharding_context.varies(x) <= axes]
    if firsts:
        leaves[last] = jnp.where(jnp.isnan(sum(firsts)), jnp.nan, leaves[last])
    return jax.tree.unflatten(structure, leaves)
