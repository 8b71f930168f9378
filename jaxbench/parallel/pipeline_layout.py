# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The layout of a pipeline's state: the parameters of all blocks stacked, (stages, chunks, blocks of a chunk, ...).

Chunk v of stage s (of K) begins with block (v K + s) times the length of a chunk. Parameters outside the blocks, and
dimensions of a block's arrays that the model's table splits, are laid out as in any other strategy (see `layout`). The
axis `fsdp` also splits the first remaining dimension that divides; arrays without one stay whole. A step gathers the
parameters of its stage once, and scatters their gradients once.

An optimizer that is elementwise, or that reduces over all parameters together, treats a stack of blocks like the
separate blocks. An optimizer that reduces over each parameter, or that depends on its path or dimensions, does not. A
few updates of small arrays decide. If they differ, the optimizer gets a gathered update (see `optimizer`) of the
separate blocks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxbench.core.program import TrainState, jit_once, optimizer_update
from jaxbench.core.workload import PyTree, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.machine import mesh as mesh_lib
from jaxbench.parallel import layout as layouts
from jaxbench.parallel import multihost
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
from jaxbench.workloads import rng_keys

OUTER, BLOCKS = "outer", "blocks"


class PipelineLayout:
    """As `layout.Layout`, for a workload with stages. Raises UserError if the blocks do not divide over the stages."""

    def __init__(self, workload: TrainWorkload, sizes: Sizes, chunks: int):
        assert workload.partition is not None and workload.partition.stages is not None
        self.stages, self.chunks = sizes.get("stage", 1), chunks
        self._key = workload.partition.stages.blocks
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
        first = next(iter(self._cuts[self._key].values()))
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
        return [blocks[name] for name in sorted(blocks, key=int)]

    def _alike(self, params: PyTree) -> bool:
        """Whether the same arrays are masked in all blocks."""
        structure: Callable[..., PyTree] = jax.tree.structure
        if structure(params, is_leaf=layouts.masked) != structure(self.canonical.params):
            return False
        first, *others = map(structure, self._rows(params))
        return all(other == first for other in others)

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
    random = np.random.default_rng(0)

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
        rounding = 64 * float(jnp.finfo(x.dtype).eps) if jnp.issubdtype(x.dtype, jnp.inexact) else 0.0
        return bool(np.allclose(np.float64(x), np.float64(y), rounding, rounding * 1e-3, equal_nan=True))

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
