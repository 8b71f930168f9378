# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: each device has some of the blocks, and micro-batches pass from one device to the next.

A table (`schedule`) gives the work of each tick. Compiled loops over its rows do the work and send the results to the
neighbours: one permutation per tick in each direction, even with nothing to send. Between the forward and the backward
pass of a micro-batch, the lever `remat` decides what a stage stores: all activations, or what is needed to recompute
the rest, as in GPipe. A large model stores only the inputs of a stage by default. The prologue before the first block
and the epilogue after the last run on the stages of those blocks. Their parameters, such as an embedding that is used
at both ends, are whole on every stage, and their gradients are summed over stages.

The stages run in lockstep, because the loop is one program: a tick takes as long as its longest work. So every stage
does the same kind of work in a tick: forward, backward, or one of each (see `schedule`).
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import jax
from jax.sharding import PartitionSpec

from jaxbench import levers
from jaxbench.core import weighted
from jaxbench.core.program import Program, TrainState
from jaxbench.core.workload import KEY, Batch, CollectiveBounds, DeviceShare, Metrics, PyTree, TrainWorkload
from jaxbench.errors import Unsupported, present
from jaxbench.levers import REMAT, SCHEDULE
from jaxbench.parallel import schedule as schedules
from jaxbench.parallel import sharded_step, stage
from jaxbench.parallel.axes import Sizes, batch_parts, mesh_of, splits
from jaxbench.parallel.optimizer import unused_gradients
from jaxbench.parallel.schedule import BACKWARD, FORWARD, Schedule
from jaxbench.parallel.stage import AXIS, BLOCKS, OUTER, PipelineLayout, Stage
from jaxbench.parallel.step import mean_over, update
from jaxbench.workloads import rng_keys, sharding_context
from jaxbench.workloads.levers import is_frozen


def build(
    workload: TrainWorkload,
    devices: list[jax.Device],
    sizes: Sizes,
    *,
    schedule: str = SCHEDULE.default,
    sequence: bool = False,
) -> Program:
    """Returns the Program over `devices`, with as many micro-batches as the workload has.

    sizes: of a mesh with the axes of `axes.PIPELINED`. schedule: a value of the lever. sequence: split positions
    between products split by `tensor`, so that stages also send and keep a part of the positions.

    Raises UserError for a model without stages, for blocks that do not divide over them, and for activations offloaded
    to the host.
    """
    sequence = sequence and sizes.get("tensor", 1) > 1
    _require(workload, sizes, sequence=sequence)
    table = schedules.make(schedule, sizes.get(AXIS, 1), workload.micro_batches)
    layout, mesh = PipelineLayout(workload, sizes, table.chunks), mesh_of(devices, sizes)
    workload = stage.recomputing(workload, layout)
    means, gathered = sharded_step.mean_axes(sizes), stage.gathered_update(workload, mesh, layout)
    dims, partly = layout.fsdp_dims(), _of_some_positions(layout, sequence=sequence)

    def reduced(part: str, grad: jax.Array, dim: int, partial_sum: bool) -> jax.Array:
        """The mean gradient of one array, or of a device's part of it."""
        if dim >= 0:
            grad = jax.lax.psum_scatter(grad, "fsdp", scatter_dimension=dim, tiled=True) / sizes["fsdp"]
        if summed := _summed(part, partial_sum=partial_sum):
            grad = jax.lax.psum(grad, summed)
        rest = _rest(means, dim)
        return mean_over(rest, grad) if rest else grad

    def local_gradients(state: TrainState, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        # Gathered once a step and not in each tick, as `fsdp` alone would: every tick uses the same parameters.
        params = jax.tree.map(
            lambda x, dim: x if dim < 0 else jax.lax.all_gather(x, "fsdp", axis=dim, tiled=True), state.params, dims
        )
        params = sharded_step.varying(params, (*means, AXIS))
        # Else JAX would sum their gradients over `tensor` in every tick.
        params = jax.tree.map(lambda x, some: sharded_step.varying(x, ("tensor",)) if some else x, params, partly)
        params = {**params, BLOCKS: jax.tree.map(lambda x: x[0], params[BLOCKS])}
        with sharding_context.over(axis=means or None, **sharded_step.where(sizes, sequence=sequence)):
            key, skips_idle = rng_keys.local_key(state.key, means), devices[0].platform == "cpu"
            on_stage = Stage(workload, table, sizes, key, state.step, skips_idle=skips_idle, sequence=sequence)
            grads, metrics = on_stage.run(params, batch)
        grads = {**grads, BLOCKS: jax.tree.map(lambda x: x[None], grads[BLOCKS])}
        grads = {
            part: jax.tree.map(partial(reduced, part), grads[part], dims[part], partly[part])
            for part in (OUTER, BLOCKS)
        }
        # Only the last stage has metrics; the others have zeros.
        metrics = jax.tree.map(lambda x: jax.lax.psum(x, AXIS), metrics)
        if means:
            metrics = mean_over(means, metrics)
        if weighted.is_weighted(loss := metrics["loss"]):  # the gradient is that of the total
            grads = jax.tree.map(lambda g: weighted.divided(g, loss.weight), grads)
        return grads, state.model_state, weighted.normalized(metrics, lambda weight: weight)

    updating = partial(update, workload) if gathered is None else gathered.update
    step = sharded_step.Step(local_gradients, updating, layout.specs().params, gathered)
    bounds = partial(expected, workload, layout, sizes, table, platform=devices[0].platform, sequence=sequence)
    program = sharded_step.program(workload, layout, mesh, sizes, step, bounds, sums=1 + bool(means))
    passes = workload.micro_batches * table.chunks  # each micro-batch passes each chunk of a stage
    order = partial(_as_micro_batches, batch_parts(sizes), workload.micro_batches)
    return dataclasses.replace(program, order=order, passes=passes)


def _rest(means: tuple[str, ...], dim: int) -> tuple[str, ...]:
    """The axes over which the gradient of an array is still averaged after it was scattered along `dim`."""
    return tuple(axis for axis in means if dim < 0 or axis != "fsdp")


def _of_some_positions(layout: PipelineLayout, *, sequence: bool) -> PyTree:
    """Whether a device's gradient of an array is a part of a sum over `tensor`, because it has only some positions."""
    is_spec = lambda x: isinstance(x, PartitionSpec)  # noqa: E731 - its entries are no arrays
    return jax.tree.map(lambda spec: sequence and "tensor" not in spec, layout.specs().params, is_leaf=is_spec)


def _summed(part: str, *, partial_sum: bool) -> tuple[str, ...]:
    """The axes over which the gradient of an array is a sum. partial_sum: as `_of_some_positions`."""
    # Every stage holds the parameters outside the blocks, but only the first or the last one uses them.
    return (*((AXIS,) if part == OUTER else ()), *(("tensor",) if partial_sum else ()))


def _as_micro_batches(parts: int, count: int, batch: Batch) -> Batch:
    """The batch, (examples, ...), with its examples in the order in which other strategies' micro-batches take them.

    A pipeline's micro-batches are contiguous in the batch. In other strategies micro-batch i has examples i, i + count,
    and so on.
    """

    return jax.tree.map(lambda x: x.reshape(parts, count, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape), batch)


def _require(workload: TrainWorkload, sizes: Sizes, *, sequence: bool) -> None:
    """Raises Unsupported for a model that cannot be divided into stages."""
    sharded_step.require(workload, sizes, sequence=sequence)
    if not splits(workload.partition, AXIS):
        raise Unsupported(
            f"'{workload.name}' is not a stack of blocks that a pipeline divides into stages; gpt without experts is."
        )
    if workload.loss_scale is not None:
        raise Unsupported(
            "--config.lever.precision=float16 scales the loss before it is differentiated, but a pipeline "
            "differentiates each stage on its own: use bfloat16."
        )
    if is_frozen(jax.eval_shape(workload.init, KEY)[1]):
        raise Unsupported(
            "--config.lever.freeze takes parameters out of the blocks, but a pipeline's stages have only trained "
            "parameters: use --config.strategy=fsdp, for example."
        )
    remat = present(present(workload.partition).stages).remat
    if levers.offloads(remat):
        raise Unsupported(
            f"a pipeline cannot offload activations to the host: use --config.lever.remat=dots_saveable, not {remat}."
        )


def expected(
    workload: TrainWorkload,
    layout: PipelineLayout,
    sizes: Sizes,
    table: Schedule,
    global_batch: int,
    *,
    platform: str = "cpu",
    sequence: bool = False,
) -> CollectiveBounds:
    """The expected communication of a pipeline's step."""
    bounds: CollectiveBounds = {}
    specs = jax.tree.leaves(layout.specs().params, is_leaf=lambda x: isinstance(x, PartitionSpec))
    unused = unused_gradients(workload, layout.canonical)
    leaves, structure = jax.tree.flatten(layout.canonical.params)
    used = layout.merged(
        jax.tree.unflatten(structure, [index not in unused for index, _ in enumerate(leaves)]), lambda *used: any(used)
    )
    dims, means = jax.tree.leaves(layout.fsdp_dims()), sharded_step.mean_axes(sizes)
    partly = jax.tree.leaves(_of_some_positions(layout, sequence=sequence))
    every = zip(jax.tree.leaves_with_path(layout.params), specs, jax.tree.leaves(used), dims, partly, strict=True)
    for (path, aval), spec, is_used, dim, partial_sum in every:
        on_device = aval.size // math.prod(sizes.get(axis, 1) for axis in spec if axis)
        if dim >= 0 and sizes["fsdp"] > 1:
            sharded_step.add(bounds, "all-gather", on_device * sizes["fsdp"])
            sharded_step.add(bounds, "reduce-scatter", is_used * on_device, on_device)
        averaged = any(sizes[axis] > 1 for axis in _rest(means, dim))  # one sum over all of them
        over = _summed(path[0].key, partial_sum=partial_sum)
        summed = any(sizes.get(axis, 1) > 1 for axis in over) + averaged
        # XLA for a GPU merges the sums over the two axes into one.
        least = is_used * (min(1, summed) if platform == "gpu" else summed)
        sharded_step.add(bounds, "all-reduce", least * on_device, summed * on_device)
    examples = global_batch // batch_parts(sizes) // workload.micro_batches
    ticks = {name: len(passes.busy) for name, passes in ((FORWARD, table.forward), (BACKWARD, table.backward))}
    if sizes.get(AXIS, 1) > 1:  # each tick sends one activation to each neighbour, with work or without
        # Nobody needs what the last tick of each direction sends: XLA removes it if that tick is a loop of its own.
        parts = sizes["tensor"] if sequence else 1
        count, numbers = sum(ticks.values()), _activation_numbers(workload, examples) // parts
        sharded_step.add(bounds, "collective-permute", (count - 2) * numbers, count * numbers)
    partition = present(workload.partition)
    recomputed = present(partition.stages).remat != REMAT.default
    share = DeviceShare(examples=examples, sizes=sizes, blocks=layout.chunk, recomputed=recomputed, sequence=sequence)
    for name, count in ticks.items():  # the layers' collectives are in the loop, so they count in every tick
        passes = dataclasses.replace(share, passes=frozenset({name}))
        for what, (least, most) in partition.collective_bounds(passes).items():
            sharded_step.add(bounds, what, count * least, count * most)
    return bounds


def _activation_numbers(workload: TrainWorkload, examples: int) -> int:
    """The number of elements that one micro-batch passes from stage to stage."""
    first = present(present(workload.partition).stages).first
    batch = workload.batch_avals(examples)
    x = jax.eval_shape(lambda key, batch: first(workload.init(key)[0], None, batch, key), KEY, batch)
    return x.size
