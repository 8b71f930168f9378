# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One stage of a pipeline in a step: a compiled loop over the rows of a schedule's tables.

The forward and backward pass of a micro-batch run in different ticks; `SplitVjp` defines what is stored between them.
The prologue before the first block and the epilogue after the last run on the stages of those blocks, in the same
ticks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxbench.core import weighted
from jaxbench.core.program import TrainState
from jaxbench.core.workload import Batch, Metrics, PyTree, Stages, TrainWorkload
from jaxbench.errors import UserError, present
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
from jaxbench.parallel.schedule import BACKWARD, FORWARD, NOWHERE, Schedule
from jaxbench.parallel.step import jit_once, optimizer_update
from jaxbench.workloads import rng_keys, sharding_context
from jaxbench.workloads.jaxprs import reached
from jaxbench.workloads.models import attention

OUTER, BLOCKS = "outer", "blocks"
AXIS = "stage"
_COLUMNS = ("kind", "micro_batch", "chunk", "input", "gradient", "keep", "comes_input", "comes_gradient")


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
        self.chunk = self.count // self.stages // chunks  # blocks per chunk
        # No flat arrays, because blocks are stacked in their own shape. Those that do not divide stay whole.
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
        specs = self._of_cuts(lambda cut: cut.spec, lambda cut: PartitionSpec("stage", None, None, *cut.spec))

        def of(params: PyTree) -> PyTree:
            return layouts.map_arrays(lambda _, spec: spec, jax.eval_shape(self.stack, params), specs)

        return self.mirrored.map(self.canonical, of, lambda _: PartitionSpec())

    def _of_cuts(self, outer: Callable[[layouts.Cut], object], block: Callable[[layouts.Cut], object]) -> PyTree:
        """A tree of the global arrays' structure, from the Cut of each array outside the blocks and of one block."""
        first = next(iter(self._cuts[self._key].values()))  # blocks are identical, so one stands for all
        rest = {name: tree for name, tree in self._cuts.items() if name != self._key}
        return {OUTER: jax.tree.map(outer, rest), BLOCKS: jax.tree.map(block, first)}

    def fsdp_dims(self) -> PyTree:
        """The dimension of each global array that is split over `fsdp`; -1 if none is."""

        def dim(cut: layouts.Cut) -> int:
            return next((dim for dim, axis in cut.dims if axis == "fsdp"), -1)

        return self._of_cuts(dim, lambda cut: dim(cut) + 3 if dim(cut) >= 0 else -1)  # (stages, chunks, blocks, ...)

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
        """A params-shaped tree with one subtree for all blocks. merge: (a value for each block) -> the common value."""
        outer = {name: tree for name, tree in params.items() if name != self._key}
        return {OUTER: outer, BLOCKS: jax.tree.map(merge, *self._rows(params))}

    def stack(self, params: PyTree) -> PyTree:
        """Converts a params-shaped tree from the canonical form to that of the global arrays."""
        # Consecutive chunks are on consecutive stages, so the chunks of one stage are `stages` apart.
        shape = (self.chunks, self.stages, self.chunk)
        return self.merged(params, lambda *x: jnp.swapaxes(jnp.stack(x).reshape(*shape, *x[0].shape), 0, 1))

    def unstack(self, params: PyTree) -> PyTree:
        """Inverse of `stack`, of host or device arrays."""
        rows = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(self.count, *x.shape[3:]), params[BLOCKS])
        names = sorted(self.canonical.params[self._key], key=int)
        blocks = {name: jax.tree.map(lambda x, i=i: x[i], rows) for i, name in enumerate(names)}
        return {**params[OUTER], self._key: blocks}


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
        return jax.vjp(lambda params, x: self._function(params, x, *given), params, x)


class Stage:
    """The part of a step that one device runs, inside `shard_map`. All arrays are per device."""

    def __init__(self, workload: TrainWorkload, table: Schedule, sizes: Sizes, key: jax.Array, step: jax.Array):
        """key: for this device's part of the batch. step: the training step."""
        self._stages: Stages = present(present(workload.partition).stages)
        self._table, self._count, self._micro_batches = table, sizes.get(AXIS, 1), workload.micro_batches
        # Everything that a stage computes differs from stage to stage and from part to part of the batch.
        self._varies = (*sharded_step.mean_axes(sizes), AXIS)
        self._me = jax.lax.axis_index(AXIS)
        self._key, self._step = key, step

    def run(self, params: PyTree, batch: Batch) -> tuple[PyTree, Metrics]:
        """(gradients of the mean loss, 0 for parameters of other stages; metrics, 0 except on the last stage)."""
        params = {**params, BLOCKS: jax.tree.map(lambda x: x[0], params[BLOCKS])}  # (chunks, blocks of a chunk, ...)
        batches = jax.tree.map(lambda x: x.reshape(self._micro_batches, -1, *x.shape[1:]), batch)
        carry = self._empty_carry(params, batches)
        columns = jax.tree.map(jnp.asarray, [getattr(self._table, name) for name in _COLUMNS])
        # One loop for each segment: if no stage runs backward in it, the body has no backward branch and sends nothing
        # back.
        for first, end, kinds in self._table.segments():
            body = partial(self._tick, params, batches, kinds)
            carry, _ = jax.lax.scan(body, carry, [column[first:end] for column in columns])
        grads = {**carry["grads"], BLOCKS: jax.tree.map(lambda x: x[None], carry["grads"][BLOCKS])}
        # Counted where work runs, and not read from the table: the idle share is that of the executed schedule.
        busy = carry["busy"] / (self._table.ticks * self._count)
        return grads, {**carry["metrics"], "busy_share": busy}

    def _empty_carry(self, params: PyTree, batches: Batch) -> dict[str, PyTree]:
        """The initial carry of the loop: empty slots and zero gradients."""
        one, key = jax.tree.map(lambda x: x[0], batches), self._key
        stacked = jax.tree.leaves(params[BLOCKS])[0]  # (chunks, blocks of a chunk, ...)
        self._model_blocks = self._count * stacked.shape[0] * stacked.shape[1]
        x = self._zeros(jax.eval_shape(lambda: self._stages.first(params[OUTER], None, one, key)))
        metrics = jax.eval_shape(lambda: _metrics(*self._stages.last(params[OUTER], x, one, key)))
        self._blocks_vjp = SplitVjp(self._row, jax.tree.map(lambda p: p[0], params[BLOCKS]), x, one, key, jnp.int32(0))
        self._nothing_kept = [x, *map(self._zeros, self._blocks_vjp.kept)]
        return {  # the last slot of each is a dummy for NOWHERE
            "inputs": self._zeros(x, self._table.inputs + 1),
            "kept": [self._zeros(like, self._table.kept + 1) for like in self._nothing_kept],
            "due": self._zeros(x, self._table.gradients + 1),
            "forward": x,
            "backward": x,
            "grads": jax.tree.map(jnp.zeros_like, params),
            "metrics": jax.tree.map(self._zeros, metrics),
            "busy": self._zeros(jax.ShapeDtypeStruct((), jnp.float32)),
        }

    def _zeros(self, like: PyTree, places: int | None = None) -> jax.Array:
        """Zeros of the shape and type of `like`, *varying* over devices."""
        shape = like.shape if places is None else (places, *like.shape)
        more = () if isinstance(like, jax.ShapeDtypeStruct) else sharding_context.varies(like)
        return sharded_step.varying(jnp.zeros(shape, like.dtype), (*self._varies, *more))

    def _tick(
        self, params: PyTree, batches: Batch, kinds: tuple[int, ...], carry: dict[str, PyTree], row: list[jax.Array]
    ) -> tuple[dict[str, PyTree], None]:
        work = dict(zip(_COLUMNS, (column[self._me] for column in row), strict=True))
        carry = {**carry, "inputs": _placed(carry["inputs"], carry["forward"], work["comes_input"])}
        carry = {**carry, "due": _placed(carry["due"], carry["backward"], work["comes_gradient"])}
        slots = carry.pop("kept")  # `carry` is a copy since the lines above
        # Residuals are stored after the branches: XLA would copy all slots if they passed through a branch.
        no_residuals = self._nothing_kept if FORWARD in kinds else []
        branch_of = {
            FORWARD: partial(self._forward, params, batches, work),
            BACKWARD: partial(self._backward, params, batches, work, slots, no_residuals),
        }
        which = sum(jnp.where(work["kind"] == kind, i, 0) for i, kind in enumerate(kinds, 1))
        branches: list[Any] = [lambda carry: (carry, no_residuals), *(branch_of[kind] for kind in kinds)]
        carry, kept = jax.lax.switch(which, branches, carry)
        if kept:
            slot = jnp.where(work["kind"] == FORWARD, work["keep"], NOWHERE)
            slots = [_placed(slot_values, x, slot) for slot_values, x in zip(slots, kept, strict=True)]
        sent = {"forward": 1 if FORWARD in kinds else 0, "backward": -1 if BACKWARD in kinds else 0}
        moved = {name: self._sent(carry[name], step) for name, step in sent.items() if step}
        return {**carry, **moved, "kept": slots}, None

    def _sent(self, x: jax.Array, step: int) -> jax.Array:
        """Sends x to the neighbour `step` further; with several chunks the stages form a ring."""
        around = self._chunks > 1  # the last stage's chunk v is followed by the first stage's chunk v + 1
        pairs = [(s, (s + step) % self._count) for s in range(self._count) if around or 0 <= s + step < self._count]
        return jax.lax.ppermute(x, AXIS, pairs) if self._count > 1 else x

    def _row(self, params: PyTree, x: jax.Array, batch: Batch, key: jax.Array, chunk: jax.Array) -> jax.Array:
        """Runs the blocks of a chunk. params: of the blocks, stacked. key: of the micro-batch. chunk: its index."""
        length = len(jax.tree.leaves(params)[0])
        before = (chunk * self._count + self._me) * length
        rows = [(jax.tree.map(lambda p, i=i: p[i], params), jax.random.fold_in(key, before + i)) for i in range(length)]
        return attention.apply_blocks(
            lambda row, x: self._stages.block(row[0], x, batch, row[1]), rows, x, self._stages.remat
        )

    def _first(self, outer: PyTree, batch: Batch, key: jax.Array) -> jax.Array:
        key = jax.random.fold_in(key, self._model_blocks)  # the keys of `workload.Stages`
        return sharded_step.varying(self._stages.first(outer, None, batch, key), self._varies)

    def _micro_key(self, work: dict[str, jax.Array]) -> jax.Array:
        """The same key as in `program.gradients`."""
        key = self._key if self._micro_batches == 1 else jax.random.fold_in(self._key, work["micro_batch"])
        return jax.random.fold_in(key, self._step)

    def _is_first(self, work: dict[str, jax.Array]) -> jax.Array:
        return (self._me == 0) & (work["chunk"] == 0)

    def _forward(
        self, params: PyTree, batches: Batch, work: dict[str, PyTree], carry: dict[str, PyTree]
    ) -> tuple[dict[str, PyTree], list[jax.Array]]:
        batch, key = _of_batch(batches, work), self._micro_key(work)
        x = _at(carry["inputs"], work["input"])
        x = jax.lax.cond(self._is_first(work), lambda: self._first(params[OUTER], batch, key), lambda: x)
        y, kept = self._blocks_vjp.forward(_of_chunk(params[BLOCKS], work), x, batch, key, work["chunk"])
        return {**carry, "forward": y, "busy": carry["busy"] + 1}, [y, *kept]

    def _backward(
        self,
        params: PyTree,
        batches: Batch,
        work: dict[str, PyTree],
        slots: list[jax.Array],
        no_residuals: list[jax.Array],
        carry: dict[str, PyTree],
    ) -> tuple[dict[str, PyTree], list[jax.Array]]:
        """A backward pass: from the loss in the last chunk of the last stage, otherwise from the received gradient."""
        batch, key = _of_batch(batches, work), self._micro_key(work)
        y, *kept = (_at(place, work["keep"]) for place in slots)
        is_last = (self._me == self._count - 1) & (work["chunk"] == self._chunks - 1)
        no_outer = jax.tree.map(self._zeros, params[OUTER])

        def from_loss() -> tuple[PyTree, jax.Array, Metrics]:
            def last(outer: PyTree, y: jax.Array) -> tuple[jax.Array, Metrics]:
                loss, metrics = self._stages.last(outer, y, batch, jax.random.fold_in(key, self._model_blocks + 1))
                shares = jax.tree.map(lambda m: m / self._micro_batches, _metrics(loss, metrics))
                summed = shares["loss"].total if weighted.is_weighted(loss) else shares["loss"]
                return summed, sharded_step.varying(shares, self._varies)

            (outer, dy), metrics = jax.grad(last, argnums=(0, 1), has_aux=True)(params[OUTER], y)
            return outer, dy, metrics

        def from_received() -> tuple[PyTree, jax.Array, Metrics]:
            return no_outer, _at(carry["due"], work["gradient"]), jax.tree.map(self._zeros, carry["metrics"])

        def of_first(dx: jax.Array) -> PyTree:
            return jax.vjp(lambda outer: self._first(outer, batch, key), params[OUTER])[1](dx)[0]

        at_end, dy, metrics = jax.lax.cond(is_last, from_loss, from_received)
        grads, dx = self._blocks_vjp.backward(_of_chunk(params[BLOCKS], work), kept, dy, batch, key, work["chunk"])
        # The prologue's forward pass is recomputed from the batch, so nothing of it is stored between the ticks.
        at_start = jax.lax.cond(self._is_first(work), of_first, lambda dx: no_outer, dx)
        total = carry["grads"]
        changed = {
            "backward": dx,
            "grads": {
                OUTER: jax.tree.map(lambda t, a, b: t + a + b, total[OUTER], at_end, at_start),
                BLOCKS: jax.tree.map(
                    lambda t, g: t + g[None] if len(t) == 1 else t.at[work["chunk"]].add(g), total[BLOCKS], grads
                ),
            },
            "metrics": jax.tree.map(jnp.add, carry["metrics"], metrics),
            "busy": carry["busy"] + 1,
        }
        return {**carry, **changed}, no_residuals

    @property
    def _chunks(self) -> int:
        return int(self._table.chunk.max()) + 1


def _metrics(loss: PyTree, metrics: Metrics) -> Metrics:
    return weighted.float_weights({"loss": loss, **metrics})


def _at(slots: jax.Array, slot: jax.Array) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(slots, slot, keepdims=False)


def _placed(slots: jax.Array, value: jax.Array, slot: jax.Array) -> jax.Array:
    """The slots with `value` stored in one of them. NOWHERE, -1, is the last slot, the dummy."""
    return jax.lax.dynamic_update_index_in_dim(slots, value, slot % slots.shape[0], 0)


def _of_chunk(params: PyTree, work: dict[str, PyTree]) -> PyTree:
    """This chunk's part of the blocks' parameters, (chunks, blocks of a chunk, ...)."""
    return jax.tree.map(lambda x: x[0] if x.shape[0] == 1 else _at(x, work["chunk"]), params)


def _of_batch(batches: Batch, work: dict[str, PyTree]) -> Batch:
    return jax.tree.map(lambda x: _at(x, work["micro_batch"]), batches)
