# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A training step on a named mesh whose axes split the batch, the state, the model's products or its positions.

The step is written with `shard_map`, because what is sent is what is measured: under `jit` the compiler chooses where
to communicate. Its type checking is on where products or positions are split. It knows which arrays are *invariant*,
that is, equal on all devices of an axis. The gradient of such an array is a sum over those devices, and JAX inserts it:
this is how the backward pass of a product that is split over `tensor` gets its all-reduces. Over the axes that split
examples or positions the sum is a mean, which is written out here; for these the parameters are cast to *varying*
first. Where only the batch is split, type checking is off (see strategies/shard_map.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax.core import ShapedArray
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.errors import Unsupported, UserError
from jaxbench.parallel import draws, optimizer_need, optimizer_view
from jaxbench.parallel.axes import AXES, Sizes, batch_parts, mesh_of, splits
from jaxbench.parallel.layout import Cut, Layout, cuts
from jaxbench.parallel.optimizer_view import View
from jaxbench.parallel.program import (
    Program,
    TrainState,
    create_state,
    gradients,
    jit_once,
    keep_barriers,
    mean_over,
    update,
    without,
)
from jaxbench.workloads import positions, sharding_context
from jaxbench.workloads.base import Batch, CollectiveBounds, DeviceShare, Metrics, PyTree, TrainWorkload

# The axes over which the backward pass sends something again instead of keeping it.
AGAIN = {"fsdp", "context"}


def build(workload: TrainWorkload, devices: list[jax.Device], sizes: Sizes, *, sequence: bool = False) -> Program:
    """Returns the Program on the mesh of `sizes`. sequence: between the products that are split over `tensor`,
    positions are split.

    Raises UserError for an axis that the workload cannot be split over, and for numbers that do not divide.
    """
    require(workload, sizes, sequence=sequence)
    layout, mesh, means = Layout(workload, cuts(workload, sizes)), mesh_of(devices, sizes), mean_axes(sizes)
    view = optimizer_view.of(workload, mesh, layout)

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        key = draws.local_key(state.key, means)
        params, model_state = varying((state.params, state.model_state), means)
        local = dataclasses.replace(state, params=params, model_state=model_state, key=key)
        on_device = dataclasses.replace(workload, loss=_of_shards(workload, layout, gather="fsdp" in sizes))
        with sharding_context.over(axis=means or None, **where(sizes, sequence=sequence)):
            grads, model_state, metrics = gradients(on_device, local, batch)
        grads = jax.tree.map(lambda g, cut: mean(g, cut, sizes), grads, layout.cuts)
        return grads, *(mean_over(means, (model_state, metrics)) if means else (model_state, metrics))

    form = partial(expected, workload, layout, sizes, sequence=sequence, platform=devices[0].platform)
    passes = keep_barriers(mesh) if AGAIN & {*sizes} else ()
    held = lambda *given: local_gradients(*given)[0], layout.specs().params  # noqa: E731
    sums = 1 if means else 0  # where all devices have the same examples, each has the whole loss
    step = Step(
        local_gradients, partial(update, workload) if view is None else view.update, layout.specs().params, view
    )
    typed = not {*sizes} <= {
        "data",
        "fsdp",
    }
    return program(workload, layout, mesh, sizes, step, form, held=held, disabled_passes=passes, sums=sums, typed=typed)


@dataclass(frozen=True)
class Step:
    """What a step does, apart from where its arrays lie.

    gradients: on one device, (state, batch) -> (gradients, model_state, metrics).
    update: (state, gradients, model_state) -> state: on one device without a view, on global arrays with one.
    specs: where the gradients lie, if there is a view.
    """

    gradients: Callable[[TrainState, Batch], tuple[PyTree, PyTree, Metrics]]
    update: Callable[[TrainState, PyTree, PyTree], TrainState]
    specs: PyTree
    view: View | None

    @property
    def sends(self) -> CollectiveBounds:
        """What the view adds to the closed form."""
        return {} if self.view is None else self.view.sends

    def mapped(self, run: Callable[..., Any], specs: TrainState) -> Callable[..., Any]:
        """(state, batch) -> (state, metrics), of global arrays. run: `shard_map`, which still needs `out_specs`."""
        whole = PartitionSpec()

        def on_device(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
            grads, model_state, metrics = self.gradients(state, batch)
            return self.update(state, grads, model_state), metrics

        def apart(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
            grads, model_state, metrics = run(self.gradients, out_specs=(self.specs, whole, whole))(state, batch)
            return self.update(state, grads, model_state), metrics

        return run(on_device, out_specs=(specs, whole)) if self.view is None else apart


def require(workload: TrainWorkload, sizes: Sizes, *, sequence: bool = False) -> None:
    """Raises UserError for an axis that the workload cannot be split over; the Layout looks at the parameters."""
    context, tensor = sizes.get("context", 1), sizes.get("tensor", 1)
    partition = workload.partition
    if context > 1 and not splits(partition, "context"):
        raise Unsupported(f"'{workload.name}' has no positions to split over the axis context; gpt has.")
    if sequence and tensor > 1 and partition is not None and not partition.positions:
        raise Unsupported(
            f"--config.lever.sequence_parallel=on splits positions and '{workload.name}' has none: use off, or gpt."
        )
    if sequence and tensor > 1 and context > 1:
        raise UserError(
            "--config.lever.sequence_parallel=on splits positions over the axis tensor, and the axis context splits "
            "them already: use off."
        )
    if partition is not None:
        positions.require_even(partition.positions, context=context, sequence=tensor if sequence else 1)


def mean_axes(sizes: Sizes) -> tuple[str, ...]:
    """The axes over which gradients are averaged: those along which devices see other examples or positions."""
    return tuple(axis for axis in sizes if AXES[axis] or axis == "context")


def where(sizes: Sizes, *, sequence: bool = False) -> dict[str, Any]:
    """The arguments of `sharding_context.over` for the axes that split a model; an axis of one device splits
    nothing."""
    names = {name: name for name in ("tensor", "context", "expert") if sizes.get(name, 1) > 1}
    return {**names, "sequence": sequence and "tensor" in names}


def varies(x: Any) -> frozenset[str]:
    """The axes over which an array, or an aval, differs."""
    return (x if isinstance(x, ShapedArray) else jax.typeof(x)).manual_axis_type.varying


def varying(tree: PyTree, axes: tuple[str, ...]) -> PyTree:
    """Casts arrays to *varying* over `axes`, where they are not yet."""

    def cast(x: jax.Array) -> jax.Array:
        missing = tuple(axis for axis in dict.fromkeys(axes) if axis not in varies(x))
        return jax.lax.pcast(x, missing, to="varying") if missing else x

    return jax.tree.map(cast, tree)


def _of_shards(workload: TrainWorkload, layout: Layout, *, gather: bool) -> Callable[..., Any]:
    """The workload's loss as a function of a device's shards. Its gradient is summed over `fsdp` and cut, because that
    is the transpose of a gather. What was gathered is not kept for the backward pass but gathered again.
    """
    if not gather:
        return workload.loss

    def kept(primitive: Any, *_: Any, **settings: Any) -> bool:
        """Everything but what turns shards into a parameter. The model's own slices and reshapes are recomputed too,
        which costs nothing."""
        gathers = primitive.name == "all_gather" and settings["axis_name"] in ("fsdp", ("fsdp",))
        return not gathers and primitive.name not in ("slice", "reshape")

    @partial(jax.checkpoint, policy=kept)
    def loss(shards: PyTree, model_state: PyTree, batch: Batch, key: jax.Array) -> Any:
        whole = jax.tree.map(lambda shard, cut: cut.whole(shard), shards, layout.cuts)
        return workload.loss(whole, model_state, batch, key)

    return loss


def mean(grad: jax.Array, cut: Cut, sizes: Sizes) -> jax.Array:
    """A parameter's gradient as the mean over all devices that see other examples or positions. Along an axis that
    splits the parameter itself, each part has met the examples of all devices, and its gradient is already their
    sum."""
    summed = [axis for axis in mean_axes(sizes) if axis in cut.axes]
    apart = tuple(axis for axis in mean_axes(sizes) if axis not in cut.axes)
    for axis in summed:
        grad = grad / sizes[axis]
    return jax.lax.pmean(grad, apart) if apart else grad


def program(
    workload: TrainWorkload,
    layout: Any,
    mesh: Any,
    sizes: Sizes,
    step: Step,
    form: Callable[[int], CollectiveBounds],
    *,
    held: tuple[Callable[..., PyTree], PyTree] | None = None,
    disabled_passes: tuple[str, ...] = (),
    typed: bool = True,
    sums: int = 1,
) -> Program:
    """The Program of a step. layout: a `Layout`, or what has its `cut`, `specs` and `export`. form: its closed form.

    held: (state, batch) -> the gradients that a device holds, and their specs. typed: whether `shard_map` checks what
    is equal on all devices. sums: as `Program.sums`.
    """
    specs, whole = layout.specs(), PartitionSpec()
    examples = tuple(axis for axis in sizes if AXES[axis])
    split = PartitionSpec(examples) if examples else whole
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    batch_sharding = NamedSharding(mesh, split)
    run = partial(jax.shard_map, mesh=mesh, in_specs=(specs, split), check_vma=typed)
    return Program(
        mesh=mesh,
        init=jit_once(lambda key: layout.cut(create_state(workload, key)), out_shardings=shardings),
        step=jax.jit(
            step.mapped(run, specs),
            donate_argnums=0,
            out_shardings=(shardings, NamedSharding(mesh, whole)),
            compiler_options=without(disabled_passes),
        ),
        state_sharding=shardings,
        batch_sharding=batch_sharding,
        put=lambda batch: jax.device_put(batch, batch_sharding),
        export=layout.export,
        load=lambda state: jax.device_put(jax.device_get(layout.cut(state)), shardings, may_alias=False),
        expected=(lambda batch: both(form(batch), step.sends)) if step.sends else form,
        gradients=None if held is None else jax.jit(run(held[0], out_specs=held[1])),
        batch_parts=batch_parts(sizes),
        disabled_passes=disabled_passes,
        sums=sums,
        keys=draws.keys_of_parts(*(sizes[axis] for axis in mean_axes(sizes))) if mean_axes(sizes) else None,
    )


def expected(
    workload: TrainWorkload,
    layout: Layout,
    sizes: Sizes,
    global_batch: int,
    *,
    sequence: bool = False,
    platform: str = "cpu",
) -> CollectiveBounds:
    """The closed form of what a step sends: gradients, parameters, and what the layers send themselves, with padding.

    Over `fsdp` the backward pass gathers again only what it needs: no biases, and nothing of a first layer, whose input
    needs no gradient. The forward passes of micro-batches may share what was gathered.
    """
    passes, state = workload.micro_batches, jax.tree.leaves(layout.canonical.model_state)
    form: CollectiveBounds = {}
    unused = optimizer_need.unused_gradients(workload, layout.canonical)
    for place, cut in enumerate(jax.tree.leaves(layout.cuts)):
        if cut.parts > 1:
            add(form, "all-gather", cut.numbers, 2 * passes * cut.numbers)
            # XLA for a GPU may scatter the sum of micro-batches once, instead of adding up what each scattered.
            least = 0 if place in unused else 1 if platform == "gpu" else passes
            add(form, "reduce-scatter", least * cut.numbers // cut.parts, passes * cut.numbers // cut.parts)
        if any(sizes[axis] > 1 for axis in mean_axes(sizes) if axis not in cut.axes):
            summed = cut.numbers // cut.parts
            add(form, "all-reduce", 0 if place in unused else summed, summed)
    if workload.partition is not None:
        examples = global_batch // batch_parts(sizes) // passes
        share = DeviceShare(examples=examples, sizes=sizes, sequence=sequence)
        for kind, (least, most) in workload.partition.collective_bounds(share).items():
            add(form, kind, passes * least, passes * most)
        if batch_parts(sizes) > 1:
            add(form, "all-reduce", sum(leaf.size for leaf in state))
    if "reduce-scatter" in form and state:
        # XLA merges reductions of equal gradients, such as of the biases of two batch normalisations that are added.
        least, most = form["reduce-scatter"]
        form["reduce-scatter"] = least - least // 20, most
    return form


def add(form: CollectiveBounds, kind: str, least: int, most: int | None = None) -> None:
    """Adds to a closed form; most: `least` unless it is given."""
    if most != 0 and (least or most):
        low, high = form.get(kind, (0, 0))
        form[kind] = low + least, high + (least if most is None else most)


def both(*forms: CollectiveBounds) -> CollectiveBounds:
    """The sum of closed forms."""
    total: CollectiveBounds = {}
    for form in forms:
        for kind, (least, most) in form.items():
            add(total, kind, least, most)
    return total
