# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One stage of a pipeline in a step: compiled loops over the rows of a schedule's tables.

The forward and backward pass of a micro-batch run in different ticks; `SplitVjp` defines what is stored between them.
The prologue before the first block runs on the first stage and the epilogue after the last block on the last, in the
ticks of these blocks.

On a GPU or TPU a stage computes in every tick, because all stages wait for each other anyway. In an idle tick it
repeats its nearest work, and what is sent or added up from it is zero or thrown away. So neither parameters nor
gradients pass through a branch, where XLA would copy them. On a CPU, where devices share cores, an idle stage does
nothing. Each block has arrays of its own for the same reason: a slice of a stack would be copied in each tick.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.sharding import Mesh, PartitionSpec

from jaxbench.core import weighted
from jaxbench.core.program import TrainState
from jaxbench.core.workload import Batch, Metrics, PyTree, Stages, TrainWorkload
from jaxbench.errors import UserError, present
from jaxbench.hlo.module import ALIKE, INSTEAD, ONE_IN
from jaxbench.levers import LARGE, REMAT, STAGE_INPUTS
from jaxbench.machine import mesh as mesh_lib
from jaxbench.parallel import layout as layouts
from jaxbench.parallel import multihost, sharded_step
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.optimizer import (
    WHOLE,
    GatheredUpdate,
    OptimizerDependencies,
    dependencies,
    leaving,
    on_device,
    sends,
)
from jaxbench.parallel.schedule import BACKWARD, FORWARD, NOWHERE, Passes, Schedule
from jaxbench.parallel.step import jit_once, optimizer_update
from jaxbench.workloads import rng_keys, sharding_context
from jaxbench.workloads.jaxprs import aval_of, reached
from jaxbench.workloads.models.blocks import apply_blocks

T = TypeVar("T")
OUTER, BLOCKS = "outer", "blocks"
AXIS = "stage"
Carry = dict[str, PyTree]  # of the loops over ticks
Blocks = list[PyTree]  # the parameters of each block
_COLUMNS = ("busy", "micro_batch", "chunk", "keep")


class PipelineLayout:
    """As `layout.Layout`, for a workload with stages. Raises UserError if the blocks do not divide over the stages."""

    def __init__(self, workload: TrainWorkload, sizes: Sizes, chunks: int):
        self.stages, self.chunks = sizes.get("stage", 1), chunks
        self._key = present(present(workload.partition).stages).blocks
        self.canonical = layouts.canonical_avals(workload)
        self.count = len(self.canonical.params[self._key])
        if self.count % (self.stages * chunks):
            near = max(1, round(self.count / (self.stages * chunks))) * self.stages * chunks
            of = f"{self.stages} stages" + (f" of {chunks} chunks each" if chunks > 1 else "")
            raise UserError(
                f"the {self.count} blocks of '{workload.name}' do not divide over {of}: use "
                f"--config.model.layers={near}, for example."
            )
        self.blocks = self.count // self.stages  # of a stage
        self.chunk = self.blocks // chunks  # blocks per chunk
        # No flat arrays, because blocks keep their own shape. Those that do not divide stay whole.
        self._cuts = jax.tree.map(lambda cut: dataclasses.replace(cut, flat=1), layouts.cuts(workload, sizes))
        self.mirrored = layouts.Mirrored(self.canonical, also=self._alike)
        self.params = jax.eval_shape(self.stack, self.canonical.params)

    def cut(self, state: TrainState) -> TrainState:
        """Converts the canonical state to the global arrays."""
        return self.mirrored.map(state, self.stack, lambda x: x)

    def join(self, state: TrainState) -> TrainState:
        """Converts the global arrays to the canonical state. Inverse of `cut`."""
        return self.mirrored.map(state, self.unstack, lambda x: x)

    def export(self, state: TrainState) -> TrainState:
        """Converts the global arrays to the canonical state, as host arrays."""
        return self.join(multihost.on_host(state))

    def specs(self) -> TrainState:
        """A state-shaped tree of PartitionSpec."""
        specs = self._of_cuts(lambda cut: cut.spec, lambda cut: PartitionSpec(AXIS, *cut.spec))

        def of(params: PyTree) -> PyTree:
            return layouts.map_arrays(lambda _, spec: spec, jax.eval_shape(self.stack, params), specs)

        return self.mirrored.map(self.canonical, of, lambda _: PartitionSpec())

    def _of_cuts(self, outer: Callable[[layouts.Cut], object], block: Callable[[layouts.Cut], object]) -> PyTree:
        """A tree of the global arrays' structure, from the Cut of each array outside the blocks and of one block."""
        first = next(iter(self._cuts[self._key].values()))  # blocks are identical, so one stands for all
        rest = {name: tree for name, tree in self._cuts.items() if name != self._key}
        blocks = [jax.tree.map(block, first) for _ in range(self.blocks)]
        return {OUTER: jax.tree.map(outer, rest), BLOCKS: blocks}

    def fsdp_dims(self) -> PyTree:
        """The dimension of each global array that is split over `fsdp`; -1 if none is."""

        def dim(cut: layouts.Cut) -> int:
            return next((dim for dim, axis in cut.dims if axis == "fsdp"), -1)

        return self._of_cuts(dim, lambda cut: dim(cut) + 1 if dim(cut) >= 0 else -1)  # (stages, ...)

    def _rows(self, params: PyTree) -> list[PyTree]:
        """The parameters of the blocks, in order."""
        blocks = params[self._key]
        return [blocks[name] for name in sorted(blocks, key=int)]  # as words, "10" would come before "2"

    def _alike(self, params: PyTree) -> bool:
        """Whether the same arrays are masked in all blocks."""
        structure: Callable[..., PyTree] = jax.tree.structure
        if structure(params, is_leaf=layouts.masked) != structure(self.canonical.params):
            return False
        first, *others = map(structure, self._rows(params))
        return all(other == first for other in others)  # else one spec cannot describe the stack

    def merged(self, params: PyTree, merge: Callable[..., PyTree]) -> PyTree:
        """A params-shaped tree in the form of the global arrays. merge: (a value for each stage) -> the common value.

        Consecutive chunks are on consecutive stages, so the chunks of one stage are `stages` apart.
        """
        outer = {name: tree for name, tree in params.items() if name != self._key}
        rows = self._rows(params)
        stacks = [
            [rows[(chunk * self.stages + stage) * self.chunk + block] for stage in range(self.stages)]
            for chunk in range(self.chunks)
            for block in range(self.chunk)
        ]
        return {OUTER: outer, BLOCKS: [jax.tree.map(merge, *stack) for stack in stacks]}

    def stack(self, params: PyTree) -> PyTree:
        """Converts a params-shaped tree from the canonical form to that of the global arrays: for each block of a
        stage, arrays of (stages, ...)."""
        return self.merged(params, lambda *x: jnp.stack(x))

    def unstack(self, params: PyTree) -> PyTree:
        """Inverse of `stack`, of host or device arrays."""
        rows: dict[int, PyTree] = {}
        for place, stacked in enumerate(params[BLOCKS]):
            chunk, block = divmod(place, self.chunk)
            for stage in range(self.stages):
                at = (chunk * self.stages + stage) * self.chunk + block
                rows[at] = jax.tree.map(lambda x, stage=stage: x[stage], stacked)
        names = sorted(self.canonical.params[self._key], key=int)
        return {**params[OUTER], self._key: {name: rows[i] for i, name in enumerate(names)}}


def gathered_update(workload: TrainWorkload, mesh: Mesh, layout: PipelineLayout) -> GatheredUpdate | None:
    """The gathered update that the optimizer needs; None if it can update a stage's stacked blocks directly.

    If a stack would be updated differently, everything is gathered and unstacked, which is correct but sends more.
    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    avals, specs = jax.eval_shape(layout.cut, layout.canonical), layout.specs()
    join: Callable[[PyTree], PyTree] = layout.join
    join_gradients: Callable[[PyTree], PyTree] = layout.unstack
    cut: Callable[[PyTree], PyTree] = layout.cut
    seen: PyTree = WHOLE
    need = OptimizerDependencies(values=False, whole=frozenset(range(len(jax.tree.leaves(avals.params)))))
    if stacks_like_blocks(workload, layout):
        need = dependencies(workload, avals, on_device(avals, specs, mesh))
        if need.values or mesh.size == 1:
            return None
        join = join_gradients = cut = lambda tree: tree
        seen = leaving(specs, need.whole, layout.mirrored)
    return GatheredUpdate(
        workload=workload,
        mesh=mesh,
        seen=seen,
        outside=specs,
        join=join,
        join_gradients=join_gradients,
        cut=cut,
        gathered=need.whole,
        sends=sends(need, need.whole, avals, specs, layout.mirrored, mesh, params=True),
    )


def stacks_like_blocks(workload: TrainWorkload, layout: PipelineLayout) -> bool:
    """Whether the optimizer treats stacked blocks like the separate blocks."""
    # Small arrays are updated both ways. They have the tree, the numbers of dimensions and the dtypes of the model's,
    # and very different sizes, so that a norm over another set of arrays is another number.
    random = np.random.default_rng(0)  # a fixed seed: all processes must decide the same

    def small(aval: PyTree) -> np.ndarray:
        values = random.choice((0.01, 1.0, 100.0)) * random.standard_normal((2,) * len(aval.shape))
        return np.asarray(values).astype(aval.dtype)

    @jit_once
    def update(grads: PyTree, opt_state: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        updates, opt_state = optimizer_update(workload, grads, opt_state, params)
        return jax.tree.map(lambda p, u: (p + u).astype(p.dtype), params, updates), opt_state

    def updated(state: TrainState, gradients: list[PyTree]) -> TrainState:
        for grads in gradients:
            params, opt_state = update(grads, state.opt_state, state.params)
            state = dataclasses.replace(state, params=params, opt_state=opt_state)
        return state

    def same(x: PyTree, y: PyTree) -> bool:
        # Three updates with sums in another order. A different update is off by far more than 64 roundings.
        rounding = 64 * float(jnp.finfo(x.dtype).eps) if jnp.issubdtype(x.dtype, jnp.inexact) else 0.0
        return bool(np.allclose(np.float64(x), np.float64(y), rounding, rounding * 1e-3, equal_nan=True))

    # Three updates: the first one alone does not show what depends on the moments.
    params, *gradients = (jax.tree.map(small, layout.canonical.params) for _ in range(4))
    with jax.default_device(mesh_lib.host_device()):
        opt_state = rng_keys.stored(workload.optimizer.init(params))
        structure: Callable[[PyTree], PyTree] = jax.tree.structure
        if structure(opt_state) != structure(layout.canonical.opt_state):
            return False  # it depends on sizes
        state = dataclasses.replace(layout.canonical, params=params, opt_state=opt_state)
        expected = layout.cut(updated(state, gradients))
        try:
            found = updated(layout.cut(state), [layout.stack(grads) for grads in gradients])
        except (TypeError, ValueError, KeyError, AttributeError, UserError):  # it expects the parameters' names
            return False
    pairs = zip(*(jax.tree.leaves((each.params, each.opt_state)) for each in (found, expected)), strict=True)
    return all(same(x, y) for x, y in pairs)


def recomputing(workload: TrainWorkload, layout: PipelineLayout) -> TrainWorkload:
    """The workload as a pipeline runs it: a LARGE model for which no lever says what to recompute stores only the
    inputs of each stage's chunks."""
    partition = present(workload.partition)
    stages = present(partition.stages)
    if stages.remat != REMAT.default or sum(x.size for x in jax.tree.leaves(layout.canonical.params)) < LARGE:
        return workload
    stages = dataclasses.replace(stages, remat=STAGE_INPUTS)
    return dataclasses.replace(workload, partition=dataclasses.replace(partition, stages=stages))


class SplitVjp:
    """The two passes of ``function(params, x, *given) -> y``, for arrays x and y; `given` gets no gradient.

    `jax.vjp` returns the backward pass as a pytree of residuals. These can be stored and used much later, as a pipeline
    does between two ticks of one compiled loop.

    Attributes:
      kept: the avals of what `forward` returns for `backward`.
    """

    def __init__(self, function: Callable[..., jax.Array], params: PyTree, x: jax.Array, *given: PyTree):
        """params, x, given: arrays or tracers with the right shapes and dtypes; their values are not used."""
        self._function = function
        self._zero = partial(jnp.zeros_like, x)
        jaxpr = jax.make_jaxpr(lambda params, x: jax.tree.leaves(self._vjp(params, x, given)[1]))(params, x)
        # Residuals that depend only on the parameters (a transposed kernel, or one cast to 16 bits) are not stored but
        # recomputed: they are as large as the parameters, and the same for every micro-batch.
        self._keep = reached(jaxpr.jaxpr, jaxpr.jaxpr.invars[-1:])  # from x, the last argument
        self.kept = [aval for aval, keep in zip(jaxpr.out_avals, self._keep, strict=True) if keep]

    def forward(self, params: PyTree, x: jax.Array, *given: PyTree) -> tuple[jax.Array, list[jax.Array]]:
        """(y, the residuals for `backward`)."""
        y, pulled = self._vjp(params, x, given)
        return y, [leaf for leaf, keep in zip(jax.tree.leaves(pulled), self._keep, strict=True) if keep]

    def backward(
        self, params: PyTree, kept: Iterable[jax.Array], dy: jax.Array, *given: PyTree
    ) -> tuple[PyTree, jax.Array]:
        """The gradients of <y, dy> with respect to params and x. params, given: the same as in `forward`."""
        # This forward pass, of zeros, is dead code except for what depends only on the parameters.
        pulled = self._vjp(params, self._zero(), given)[1]
        leaves, structure = jax.tree.flatten(pulled)
        rest = iter(kept)
        leaves = [next(rest) if keep else leaf for leaf, keep in zip(leaves, self._keep, strict=True)]
        return jax.tree.unflatten(structure, leaves)(dy)

    def _vjp(self, params: PyTree, x: jax.Array, given: tuple[PyTree, ...]) -> tuple[jax.Array, PyTree]:
        """The output of a block, and the function of its gradients."""
        return jax.vjp(lambda params, x: self._function(params, x, *given), params, x)


@dataclass(frozen=True)
class _Model:
    """What all ticks use. outer: parameters outside the blocks. chunks: blocks of each chunk. batches: (micro-batches,
    examples, ...)."""

    outer: PyTree
    chunks: list[Blocks]
    batches: Batch


class Stage:
    """The part of a step that one device runs, inside `shard_map`. All arrays are per device."""

    def __init__(
        self,
        workload: TrainWorkload,
        table: Schedule,
        sizes: Sizes,
        key: jax.Array,
        step: jax.Array,
        *,
        skips_idle: bool,
        sequence: bool = False,
    ):
        """key: for this device's part of the batch. step: the training step. skips_idle: compute nothing in an idle
        tick, in a branch. sequence: positions are split over `tensor` between products."""
        self._skips_idle = skips_idle
        self._stages: Stages = present(present(workload.partition).stages)
        self._table, self._count, self._micro_batches = table, sizes.get(AXIS, 1), workload.micro_batches
        # Everything that a stage computes differs from stage to stage and from part to part of the batch.
        self._varies = (*sharded_step.mean_axes(sizes), AXIS)
        # So do activations along `tensor`, if its devices have different positions.
        self._activations_vary = (*self._varies, "tensor") if sequence else self._varies
        # The scope of what a stage does for one of its chunks alone, which `forecast` reads.
        self._sometimes = f"{ONE_IN}{table.chunks}"
        self._me = jax.lax.axis_index(AXIS)
        self._key, self._step = key, step

    def run(self, params: PyTree, batch: Batch) -> tuple[PyTree, Metrics]:
        """(gradients of the mean loss, 0 for parameters of other stages; metrics, 0 except on the last stage).

        params, and the gradients: arrays of blocks without the axis of stages."""
        batches = jax.tree.map(lambda x: x.reshape(self._micro_batches, -1, *x.shape[1:]), batch)
        length = len(params[BLOCKS]) // self._table.chunks
        self._model_blocks = self._count * len(params[BLOCKS])
        model = self._cast_once(params, batches, length)
        carry = self._empty_carry(params, model)
        for first, end, directions in self._table.segments():
            rows = {name: _columns(self._table, name, first, end) for name in directions}
            carry, _ = jax.lax.scan(partial(self._tick, model), carry, rows)
        grads = jax.tree.map(
            lambda total, x: total.astype(x.dtype).reshape(x.shape),
            {OUTER: carry["outer"], BLOCKS: [block for chunk in carry["blocks"] for block in chunk]},
            params,
        )
        # Counted where work runs, and not read from the table: the idle share is that of the executed schedule.
        slots = 2 * len(self._table.forward.busy) * self._count
        return grads, {**carry["metrics"], "busy_share": carry["busy"] / slots}

    def _cast_once(self, params: PyTree, batches: Batch, length: int) -> _Model:
        """The parameters in the format in which they are used. length: blocks of a chunk.

        A model in 16 bits casts its parameters where it uses them, which would be in each tick.
        """
        batch, key = jax.tree.map(lambda x: x[0], batches), self._key
        x = self._no_activation(params[OUTER], batch)
        cast = cast_dtypes(lambda block, x: self._stages.block(block, x, batch, key), params[BLOCKS][0], x)
        blocks = [jax.tree.map(lambda x, dtype: x.astype(dtype), block, cast) for block in params[BLOCKS]]

        def ends(outer: PyTree, x: jax.Array) -> PyTree:
            return self._stages.first(outer, None, batch, key), self._stages.last(outer, x, batch, key)

        cast = cast_dtypes(ends, params[OUTER], x)
        outer = jax.tree.map(lambda x, dtype: x.astype(dtype), params[OUTER], cast)
        return _Model(outer, [blocks[first : first + length] for first in range(0, len(blocks), length)], batches)

    def _empty_carry(self, params: PyTree, model: _Model) -> Carry:
        """The initial carry of the loops: empty slots and zero gradients."""
        one, key = jax.tree.map(lambda x: x[0], model.batches), self._key
        x = self._no_activation(model.outer, one)
        metrics = jax.eval_shape(lambda: _metrics_with_loss(*self._stages.last(model.outer, x, one, key)))
        self._vjp = SplitVjp(self._row, model.chunks[0], x, one, key, jnp.int32(0))
        slots = self._table.kept + 1  # the last slot is a dummy for NOWHERE
        wide = lambda p: self._zeros(p, dtype=jnp.promote_types(p.dtype, jnp.float32))  # noqa: E731
        return {
            "kept": [self._zeros(like, slots) for like in self._vjp.kept],
            # What the loss gives back for each micro-batch, if its backward pass is in another tick.
            "due": self._zeros(x, slots) if self._table.stores_gradients else None,
            "forward": x,
            "backward": x,
            # In float32, because 16 bits round a sum of many.
            "outer": jax.tree.map(wide, params[OUTER]),
            "blocks": [jax.tree.map(lambda p: _matrix(wide(p)), chunk) for chunk in model.chunks],
            "metrics": jax.tree.map(self._zeros, metrics),
            "busy": self._zeros(jax.ShapeDtypeStruct((), jnp.float32)),
        }

    def _no_activation(self, outer: PyTree, batch: Batch) -> jax.Array:
        """Zeros for what a stage sends to the next."""
        like = jax.eval_shape(lambda: self._first(outer, batch, self._key))
        return sharded_step.varying(self._zeros(like), self._activations_vary)

    def _zeros(self, like: PyTree, places: int | None = None, dtype: Any = None) -> jax.Array:
        """Zeros of the shape and type of `like`, *varying* over devices."""
        shape = like.shape if places is None else (places, *like.shape)
        more = () if isinstance(like, jax.ShapeDtypeStruct) else sharding_context.varies(like)
        return sharded_step.varying(jnp.zeros(shape, dtype or like.dtype), (*self._varies, *more))

    def _tick(self, model: _Model, carry: Carry, rows: dict[str, dict[str, jax.Array]]) -> tuple[Carry, None]:
        """One tick: the forward and the backward work that are due on this stage."""
        work = {name: {column: x[self._me] for column, x in row.items()} for name, row in rows.items()}
        due = None
        if FORWARD in rows:
            carry, due = self._forward(model, work[FORWARD], carry)
        if BACKWARD in rows:
            carry = self._backward(model, work[BACKWARD], carry, due)
        return carry, None

    def _sent(self, x: jax.Array, step: int) -> jax.Array:
        """Sends x to the neighbour `step` further; with several chunks the stages form a ring."""
        around = self._table.chunks > 1  # the last stage's chunk v is followed by the first stage's chunk v + 1
        pairs = [(s, (s + step) % self._count) for s in range(self._count) if around or 0 <= s + step < self._count]
        return jax.lax.ppermute(x, AXIS, pairs) if self._count > 1 else x

    def _row(self, blocks: Blocks, x: jax.Array, batch: Batch, key: jax.Array, chunk: jax.Array) -> jax.Array:
        """Runs the blocks of a chunk. key: of the micro-batch. chunk: its index."""
        before = (chunk * self._count + self._me) * len(blocks)
        rows = [(block, jax.random.fold_in(key, before + i)) for i, block in enumerate(blocks)]
        return apply_blocks(lambda row, x: self._stages.block(row[0], x, batch, row[1]), rows, x, self._stages.remat)

    def _of_chunk(self, chunk: jax.Array, run: Callable[[Blocks], PyTree], model: _Model) -> PyTree:
        """`run` on the parameters of one chunk. Each chunk has a branch, because to select them would copy them."""
        if len(model.chunks) == 1:
            return run(model.chunks[0])
        with jax.named_scope(ALIKE):
            return jax.lax.switch(chunk, [partial(run, blocks) for blocks in model.chunks])

    def _first(self, outer: PyTree, batch: Batch, key: jax.Array) -> jax.Array:
        """The input of the first block: embedded examples."""
        key = jax.random.fold_in(key, self._model_blocks)  # the keys of `workload.Stages`
        return sharded_step.varying(self._stages.first(outer, None, batch, key), self._activations_vary)

    def _micro_key(self, work: dict[str, jax.Array]) -> jax.Array:
        """The same key as in `program.gradients`."""
        key = self._key if self._micro_batches == 1 else jax.random.fold_in(self._key, work["micro_batch"])
        return jax.random.fold_in(key, self._step)

    def _at_end(self, stage: int, chunk: int, work: dict[str, jax.Array]) -> jax.Array:
        """Whether this tick's work is that of an end of the model: a stage and a chunk."""
        return work["busy"] & (self._me == stage) & (work["chunk"] == chunk)

    def _forward(self, model: _Model, work: dict[str, jax.Array], carry: Carry) -> tuple[Carry, jax.Array]:
        """(the carry, what the loss gives back for the result if this is the last chunk)."""
        batch, key, outer = _of_batch(model.batches, work), self._micro_key(work), model.outer
        with jax.named_scope(self._sometimes):
            x = jax.lax.cond(self._at_end(0, 0, work), lambda: self._first(outer, batch, key), lambda: carry["forward"])

        def run() -> tuple[jax.Array, list[jax.Array]]:
            return self._of_chunk(
                work["chunk"], lambda blocks: self._vjp.forward(blocks, x, batch, key, work["chunk"]), model
            )

        def rest() -> tuple[jax.Array, list[jax.Array]]:
            return self._zeros(x), [self._zeros(aval) for aval in self._vjp.kept]

        y, kept = jax.lax.cond(work["busy"], run, rest) if self._skips_idle else run()
        slot = jnp.where(work["busy"], work["keep"], NOWHERE)
        kept = [_placed(slots, x, slot) for slots, x in zip(carry["kept"], kept, strict=True)]

        # To add zeros instead would read and write the embedding in every tick.
        def with_loss(turn: jax.Array, so_far: tuple[PyTree, jax.Array, Metrics]) -> tuple[PyTree, jax.Array, Metrics]:
            def last(outer: PyTree, y: jax.Array) -> tuple[jax.Array, Metrics]:
                loss, metrics = self._stages.last(outer, y, batch, jax.random.fold_in(key, self._model_blocks + 1))
                shares = jax.tree.map(lambda m: m / self._micro_batches, _metrics_with_loss(loss, metrics))
                summed = shares["loss"].total if weighted.is_weighted(loss) else shares["loss"]
                return summed, sharded_step.varying(shares, self._varies)

            (grads, dy), metrics = jax.grad(last, argnums=(0, 1), has_aux=True)(outer, _of_turn(turn, y))
            return _added(so_far[0], grads), dy, jax.tree.map(jnp.add, so_far[2], metrics)

        is_last = self._at_end(self._count - 1, self._table.chunks - 1, work)
        so_far = carry["outer"], self._zeros(y), carry["metrics"]
        total, due, metrics = _added_if(self._sometimes, is_last, with_loss, so_far)
        changed = {
            "due": carry["due"] if carry["due"] is None else _placed(carry["due"], due, slot),
            "kept": kept,
            "outer": total,
            "metrics": metrics,
            "forward": self._sent(y, 1),
            "busy": carry["busy"] + work["busy"],
        }
        return {**carry, **changed}, due

    def _backward(self, model: _Model, work: dict[str, jax.Array], carry: Carry, due: jax.Array | None) -> Carry:
        """A backward pass: from the loss in the last chunk of the last stage, otherwise from the received gradient."""
        batch, key, outer = _of_batch(model.batches, work), self._micro_key(work), model.outer
        if carry["due"] is not None:
            due = _at(carry["due"], work["keep"])
        is_last = self._at_end(self._count - 1, self._table.chunks - 1, work)
        # Sent when it is needed, and not when it is made: it travels while a forward pass of this tick runs.
        arrived = self._sent(carry["backward"], -1)
        received = arrived if due is None else jnp.where(is_last, due, arrived)
        dy = jnp.where(work["busy"], received, 0)  # an idle stage adds zeros to its gradients

        def run(blocks: Blocks, turn: jax.Array | int, so_far: tuple[Blocks, jax.Array]) -> tuple[Blocks, jax.Array]:
            kept = [_at(slots, work["keep"] + turn) for slots in carry["kept"]]
            given = dy if isinstance(turn, int) else _of_turn(turn, dy)
            grads, dx = self._vjp.backward(blocks, kept, given, batch, key, work["chunk"])
            return _added(so_far[0], grads), dx

        totals, dx = [], self._zeros(dy)
        for chunk, (blocks, total) in enumerate(zip(model.chunks, carry["blocks"], strict=True)):
            if len(model.chunks) == 1 and not self._skips_idle:
                total, dx = run(blocks, 0, (total, dx))
            else:  # one of these loops has a turn
                when = (work["chunk"] == chunk) & (work["busy"] | (not self._skips_idle))
                total, dx = _added_if(INSTEAD if chunk else f"{ONE_IN}1", when, partial(run, blocks), (total, dx))
            totals.append(total)

        def with_first(turn: jax.Array, total: PyTree) -> PyTree:
            # The prologue's forward pass is recomputed from the batch, so nothing of it is stored between the ticks.
            pulled = jax.vjp(lambda outer: self._first(outer, batch, key), outer)[1]
            return _added(total, pulled(_of_turn(turn, dx))[0])

        changed = {
            "outer": _added_if(self._sometimes, self._at_end(0, 0, work), with_first, carry["outer"]),
            "blocks": totals,
            "backward": dx,
            "busy": carry["busy"] + work["busy"],
        }
        return {**carry, **changed}


def _columns(table: Schedule, direction: str, first: int, end: int) -> dict[str, jax.Array]:
    """The columns of a direction's table in these ticks, (ticks, stages) each."""
    passes: Passes = getattr(table, direction)
    start = 0 if direction == FORWARD else table.start
    return {name: jnp.asarray(getattr(passes, name)[first - start : end - start]) for name in _COLUMNS}


def cast_dtypes(function: Callable[..., PyTree], params: PyTree, *given: PyTree) -> PyTree:
    """The format of each array of `params` after the first thing that ``function(params, *given)`` does to it.

    It is that of a cast to fewer bits if the function uses the array in no other way. Otherwise it is its own.
    """
    jaxpr = jax.make_jaxpr(function)(params, *given).jaxpr
    leaves, structure = jax.tree.flatten(params)
    found = [_cast_of(jaxpr, var) or x.dtype for var, x in zip(jaxpr.invars[: len(leaves)], leaves, strict=True)]
    return jax.tree.unflatten(structure, found)


def _cast_of(jaxpr: core.Jaxpr, var: core.Var) -> Any:
    """The format that all uses of a variable cast it to, if that has fewer bits; None without one."""
    users = [equation for equation in jaxpr.eqns if any(operand is var for operand in equation.invars)]
    to = {user.params["new_dtype"] if user.primitive.name == "convert_element_type" else None for user in users}
    if len(to) != 1 or None in to or any(out is var for out in jaxpr.outvars):
        return None
    (dtype,) = to
    return dtype if jnp.dtype(dtype).itemsize < aval_of(var).dtype.itemsize else None


def _matrix(x: jax.Array) -> jax.Array:
    """An array of more than two dimensions as a matrix, with the sides as equal as possible.

    It is the form in which a product of matrices makes the gradient, so that XLA adds to it in the product itself.
    """
    if x.ndim <= 2:
        return x
    split = min(range(1, x.ndim), key=lambda dim: abs(math.log(math.prod(x.shape[:dim]) ** 2 / x.size)))
    return x.reshape(math.prod(x.shape[:split]), -1)


def _added_if(scope: str, when: jax.Array, add: Callable[[jax.Array, T], T], total: T) -> T:
    """``add(turn, total)`` or `total`, in place. XLA copies what passes through a branch, but not through this loop of
    no turn or of one. scope: its name, which says how often it runs. add: its inputs must depend on `turn`, which is 0,
    because XLA moves what does not out of the loop."""
    with jax.named_scope(scope):
        return jax.lax.fori_loop(0, when.astype(jnp.int32), add, total)


def _of_turn(turn: jax.Array, x: jax.Array) -> jax.Array:
    """`x`, in a way that depends on the turn of the loop, 0."""
    return jnp.where(turn == 0, x, 0)


def _added(total: PyTree, grads: PyTree) -> PyTree:
    """The sum of gradients so far, in the type and shape of the sum."""
    return jax.tree.map(lambda t, g: t + g.astype(t.dtype).reshape(t.shape), total, grads)


def _metrics_with_loss(loss: PyTree, metrics: Metrics) -> Metrics:
    return weighted.float_weights({"loss": loss, **metrics})


def _at(slots: jax.Array, slot: jax.Array) -> jax.Array:
    """The array in one slot of a buffer."""
    return jax.lax.dynamic_index_in_dim(slots, slot, keepdims=False)


def _placed(slots: jax.Array, value: jax.Array, slot: jax.Array) -> jax.Array:
    """The slots with `value` stored in one of them. NOWHERE, -1, is the last slot, the dummy."""
    return jax.lax.dynamic_update_index_in_dim(slots, value, slot % slots.shape[0], 0)


def _of_batch(batches: Batch, work: Carry) -> Batch:
    return jax.tree.map(lambda x: _at(x, work["micro_batch"]), batches)
