# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pipeline parallelism: each device has some of the blocks, and micro-batches pass from one to the next.

The work of each tick comes from a table (`schedule`); a compiled loop over its rows does it and sends what was made to
the neighbours, by one permutation a tick in each direction, whether there was anything to send or not. A stage keeps
only the inputs of its chunks and recomputes the rest in the backward pass, as GPipe does (a single stage does not: the
compiler drops its first forward pass, which nobody reads). What comes before the first block and after the last is
computed by the stages that have these blocks; its parameters, an embedding that is used at both ends among them, are
whole on every stage, and their gradients are summed over stages.

In step, because the loop is one program: a tick takes as long as its longest work. Where some stages run forward and
others backward in one tick (1f1b), that costs up to the difference of the two; in gpipe it costs nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from jaxbench.errors import UserError
from jaxbench.parallel import schedule as schedules
from jaxbench.parallel import split
from jaxbench.parallel.axes import TOGETHER, Sizes, batch_parts, mesh_of
from jaxbench.parallel.program import Program, TrainState, mean_over, update
from jaxbench.parallel.schedule import BACKWARD, FORWARD, Schedule
from jaxbench.parallel.stacked import BLOCKS, OUTER, Stacked
from jaxbench.workloads import spread
from jaxbench.workloads.base import Batch, Metrics, PyTree, Share, Stages, TrainWorkload, Wire

AXIS = "stage"
WITH = TOGETHER[0]


def build(
    workload: TrainWorkload, devices: list[jax.Device], *, schedule: str = "gpipe", sizes: Sizes | None = None
) -> Program:
    """Returns the Program over `devices`, with as many micro-batches as the workload says.

    schedule: gpipe | 1f1b | interleaved. sizes: a mesh with the axes data, stage and tensor; None: all are stages.

    Raises UserError for a model without stages, blocks that do not divide over them, or an axis that it cannot have.
    """
    sizes = {AXIS: len(devices)} if sizes is None else sizes
    _require(workload, sizes)
    table = schedules.make(schedule, sizes.get(AXIS, 1), workload.micro_batches)
    layout, mesh = Stacked(workload, sizes, schedules.CHUNKS[schedule]), mesh_of(devices, sizes)
    means = split.mean_axes(sizes)

    def local_step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        params = split.varying(state.params, (*means, AXIS))
        with spread.over(axis=means or None, **split.where(sizes)):
            grads, metrics = _Stage(workload, table, sizes).run(params, batch)
        grads = {OUTER: jax.tree.map(lambda g: jax.lax.psum(g, AXIS), grads[OUTER]), BLOCKS: grads[BLOCKS]}
        metrics = jax.tree.map(lambda x: jax.lax.psum(x, AXIS), metrics)
        if means:
            grads, metrics = mean_over(means, (grads, metrics))
        return update(workload, state, grads, state.model_state), metrics

    form = partial(expected, workload, layout, sizes, table)
    return split.program(workload, layout, mesh, sizes, local_step, form)


def _require(workload: TrainWorkload, sizes: Sizes) -> None:
    split.require(workload, sizes)
    if workload.partition is None or workload.partition.stages is None:
        raise UserError(f"'{workload.name}' is no row of blocks that can be stages of a pipeline: gpt is.")
    for axis, size in sizes.items():
        if axis not in WITH and size > 1:
            raise UserError(f"a pipeline has the axes {', '.join(WITH)}, and the mesh has {axis}={size}: leave it out.")


class _Stage:
    """What one device does in a step, inside `shard_map`. All arrays are its own."""

    def __init__(self, workload: TrainWorkload, table: Schedule, sizes: Sizes):
        assert workload.partition is not None and workload.partition.stages is not None
        self._stages: Stages = workload.partition.stages
        self._table, self._count, self._micro_batches = table, sizes.get(AXIS, 1), workload.micro_batches
        self._varies = (*split.mean_axes(sizes), AXIS)
        self._me = jax.lax.axis_index(AXIS)

    def run(self, params: PyTree, batch: Batch) -> tuple[PyTree, Metrics]:
        """(the gradients of the mean loss, zero where this stage has no part in them; metrics of the last stage)."""
        params = {**params, BLOCKS: jax.tree.map(lambda x: x[0], params[BLOCKS])}  # (chunks, blocks of a chunk, ...)
        batches = jax.tree.map(lambda x: x.reshape(self._micro_batches, -1, *x.shape[1:]), batch)
        carry = self._nothing(params, batches)
        columns = jax.tree.map(jnp.asarray, [getattr(self._table, name) for name in _COLUMNS])
        for first, end, kinds in self._table.segments():
            body = partial(self._tick, params, batches, kinds)
            carry, _ = jax.lax.scan(body, carry, [column[first:end] for column in columns])
        grads = {**carry["grads"], BLOCKS: jax.tree.map(lambda x: x[None], carry["grads"][BLOCKS])}
        busy = carry["busy"] / (self._table.ticks * self._count)
        return grads, {**carry["metrics"], "busy_share": busy}

    def _nothing(self, params: PyTree, batches: Batch) -> dict[str, Any]:
        """What the loop starts from: empty places, no gradient yet."""
        one = jax.tree.map(lambda x: x[0], batches)
        x = jax.eval_shape(lambda: self._stages.first(params[OUTER], None, one))
        _, metrics = jax.eval_shape(lambda x: self._stages.last(params[OUTER], x, one), x)
        message = self._zeros(x)
        return {
            "inputs": self._zeros(x, self._table.inputs + 1),  # the last place is for what nobody sent
            "due": self._zeros(x, self._table.gradients + 1),
            "forward": message,
            "backward": message,
            "grads": jax.tree.map(jnp.zeros_like, params),
            "metrics": jax.tree.map(self._zeros, {"loss": jax.ShapeDtypeStruct((), jnp.float32), **metrics}),
            "busy": self._zeros(jax.ShapeDtypeStruct((), jnp.float32)),
        }

    def _zeros(self, like: Any, places: int | None = None) -> jax.Array:
        shape = like.shape if places is None else (places, *like.shape)
        return split.varying(jnp.zeros(shape, like.dtype), self._varies)

    def _tick(
        self, params: PyTree, batches: Batch, kinds: tuple[int, ...], carry: dict[str, Any], row: list[jax.Array]
    ) -> tuple[dict[str, Any], None]:
        work = dict(zip(_COLUMNS, (column[self._me] for column in row), strict=True))
        carry = {**carry, "inputs": _placed(carry["inputs"], carry["forward"], work["comes_input"])}
        carry = {**carry, "due": _placed(carry["due"], carry["backward"], work["comes_gradient"])}
        doing: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
            FORWARD: partial(self._forward, params, batches, work),
            BACKWARD: partial(self._backward, params, batches, work),
        }
        if len(kinds) == 1:
            carry = jax.lax.cond(work["kind"] == kinds[0], doing[kinds[0]], lambda carry: carry, carry)
        else:
            carry = jax.lax.switch(work["kind"], [lambda carry: carry, doing[FORWARD], doing[BACKWARD]], carry)
        sent = {"forward": 1 if FORWARD in kinds else 0, "backward": -1 if BACKWARD in kinds else 0}
        return {**carry, **{name: self._sent(carry[name], step) for name, step in sent.items() if step}}, None

    def _sent(self, x: jax.Array, step: int) -> jax.Array:
        """To the neighbour; with several chunks the last stage's is the first one's."""
        around = self._chunks > 1
        pairs = [(s, (s + step) % self._count) for s in range(self._count) if around or 0 <= s + step < self._count]
        return jax.lax.ppermute(x, AXIS, pairs) if self._count > 1 else x

    def _chunk(self, params: PyTree, x: Any, batch: Batch, work: dict[str, jax.Array]) -> jax.Array:
        """A chunk of blocks, with what comes before the first of all. params: {OUTER: ..., BLOCKS: one chunk's}."""
        is_first = (self._me == 0) & (work["chunk"] == 0)
        x = jax.lax.cond(is_first, lambda: self._varied(self._stages.first(params[OUTER], None, batch)), lambda: x)
        for i in range(jax.tree.leaves(params[BLOCKS])[0].shape[0]):
            x = self._stages.block(jax.tree.map(lambda p, i=i: p[i], params[BLOCKS]), x, batch)
        return x

    def _varied(self, tree: PyTree) -> PyTree:
        return split.varying(tree, self._varies)

    def _forward(self, params: PyTree, batches: Batch, work: dict[str, Any], carry: dict[str, Any]) -> dict[str, Any]:
        x = jax.lax.dynamic_index_in_dim(carry["inputs"], work["input"], keepdims=False)
        y = self._chunk(_of_chunk(params, work), x, _of_batch(batches, work), work)
        return {**carry, "forward": y, "busy": carry["busy"] + 1}

    def _backward(self, params: PyTree, batches: Batch, work: dict[str, Any], carry: dict[str, Any]) -> dict[str, Any]:
        """Recomputes the chunk and takes its gradient: of the loss if it is the last, else of <result, what came>."""
        batch = _of_batch(batches, work)
        x = jax.lax.dynamic_index_in_dim(carry["inputs"], work["input"], keepdims=False)
        due = jax.lax.dynamic_index_in_dim(carry["due"], work["gradient"], keepdims=False)
        is_last = (self._me == self._count - 1) & (work["chunk"] == self._chunks - 1)

        def inner(params: PyTree, x: jax.Array) -> tuple[jax.Array, Metrics]:
            y = self._chunk(params, x, batch, work)

            def loss() -> tuple[jax.Array, Metrics]:
                value, metrics = self._stages.last(params[OUTER], y, batch)
                share = {"loss": value, **metrics}
                share = jax.tree.map(lambda m: m / self._micro_batches, share)
                return self._varied((share["loss"], share))

            def product() -> tuple[jax.Array, Metrics]:
                nothing = jax.tree.map(self._zeros, carry["metrics"])
                return jnp.sum(y.astype(jnp.float32) * due.astype(jnp.float32)), nothing

            return jax.lax.cond(is_last, loss, product)

        gradient = jax.grad(inner, argnums=(0, 1), has_aux=True)
        (grads, dx), metrics = gradient(_of_chunk(params, work), x)
        total = carry["grads"]
        blocks = jax.tree.map(lambda t, g: _added(t, g, work["chunk"]), total[BLOCKS], grads[BLOCKS])
        return {
            **carry,
            "backward": dx,
            "grads": {OUTER: jax.tree.map(jnp.add, total[OUTER], grads[OUTER]), BLOCKS: blocks},
            "metrics": jax.tree.map(jnp.add, carry["metrics"], metrics),
            "busy": carry["busy"] + 1,
        }

    @property
    def _chunks(self) -> int:
        return int(self._table.chunk.max()) + 1


_COLUMNS = ("kind", "micro_batch", "chunk", "input", "gradient", "comes_input", "comes_gradient")


def _placed(places: jax.Array, came: jax.Array, where: jax.Array) -> jax.Array:
    """NOWHERE, -1, is the last place."""
    return jax.lax.dynamic_update_index_in_dim(places, came, where % places.shape[0], 0)


def _of_chunk(params: PyTree, work: dict[str, Any]) -> PyTree:
    def chosen(x: jax.Array) -> jax.Array:
        return x[0] if x.shape[0] == 1 else jax.lax.dynamic_index_in_dim(x, work["chunk"], keepdims=False)

    return {**params, BLOCKS: jax.tree.map(chosen, params[BLOCKS])}


def _of_batch(batches: Batch, work: dict[str, Any]) -> Batch:
    return jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, work["micro_batch"], keepdims=False), batches)


def _added(total: jax.Array, grad: jax.Array, chunk: jax.Array) -> jax.Array:
    if total.shape[0] == 1:
        return total + grad[None]
    return total.at[chunk].add(grad)


def expected(workload: TrainWorkload, layout: Stacked, sizes: Sizes, table: Schedule, global_batch: int) -> Wire:
    """The closed form: an activation a tick to each neighbour; the gradients of what all stages hold, and over `data`
    of everything. What the layers send over `tensor` is counted for every tick, as it stands in the loop's body."""
    form: Wire = {}
    specs = jax.tree.leaves(layout.specs().params, is_leaf=lambda x: isinstance(x, PartitionSpec))
    for (path, aval), spec in zip(jax.tree.leaves_with_path(layout.params), specs, strict=True):
        on_device = aval.size * aval.dtype.itemsize // math.prod(sizes.get(axis, 1) for axis in spec if axis)
        summed = (path[0].key == OUTER and sizes.get(AXIS, 1) > 1) + (sizes.get("data", 1) > 1)
        split.add(form, "all-reduce", summed * on_device)
    examples = global_batch // batch_parts(sizes) // workload.micro_batches
    ticks = {kind: sum(end - first for first, end, kinds in table.segments() if kind in kinds) for kind in _KINDS}
    if sizes.get(AXIS, 1) > 1:
        split.add(form, "collective-permute", sum(ticks.values()) * _activation_bytes(workload, examples))
    assert workload.partition is not None
    share = Share(examples=examples, sizes=sizes, itemsize=workload.dtype.itemsize, blocks=layout.chunk)
    for kind, forward in _KINDS.items():
        for what, (least, most) in workload.partition.wire(dataclasses.replace(share, forward=forward)).items():
            split.add(form, what, ticks[kind] * least, ticks[kind] * most)
    return form


_KINDS = {FORWARD: True, BACKWARD: False}  # whether it is the forward pass alone


def _activation_bytes(workload: TrainWorkload, examples: int) -> int:
    """Of what passes from stage to stage in one micro-batch."""
    assert workload.partition is not None and workload.partition.stages is not None
    first, key = workload.partition.stages.first, jax.ShapeDtypeStruct((2,), "uint32")
    x = jax.eval_shape(lambda k, batch: first(workload.init(k)[0], None, batch), key, workload.batch_avals(examples))
    return x.size * x.dtype.itemsize
