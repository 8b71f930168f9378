# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The layout of a pipeline's state: the parameters of all blocks stacked, (stages, chunks, blocks of a chunk, ...).

Chunk v of stage s (of K) begins with block (v K + s) times the length of a chunk. Parameters outside the blocks, and
dimensions of a block's arrays that the model's table splits, are laid out as in any other strategy (see `layout`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from jaxbench.errors import UserError
from jaxbench.parallel import layout as layouts
from jaxbench.parallel import multihost
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.program import TrainState
from jaxbench.workloads.base import PyTree, TrainWorkload

OUTER, BLOCKS = "outer", "blocks"


def _the_same(*each: Any) -> Any:
    """The common value of all blocks; None if they differ."""
    return each[0] if all(other == each[0] for other in each) else None


class PipelineLayout:
    """As `layout.Layout`, for a workload with stages. Raises UserError if the blocks do not divide over the stages."""

    def __init__(self, workload: TrainWorkload, sizes: Sizes, chunks: int):
        assert workload.partition is not None and workload.partition.stages is not None
        self.stages, self.chunks = sizes.get("stage", 1), chunks
        self._key = workload.partition.stages.blocks
        self.canonical = layouts.canonical_avals(workload)
        self.count = len(self.canonical.params[self._key])
        _require_even(workload, self.count, self.stages, chunks)
        self.chunk = self.count // self.stages // chunks  # blocks per chunk
        self._cuts, self.mirrored = layouts.cuts(workload, sizes), layouts.Mirrored(self.canonical, also=self._alike)
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

        def of(params: PyTree) -> PyTree:
            return layouts.map_arrays(lambda _, spec: spec, jax.eval_shape(self.stack, params), self._param_specs())

        return self.mirrored.map(self.canonical, of, lambda _: PartitionSpec())

    def _param_specs(self) -> PyTree:
        block = next(iter(self._cuts[self._key].values()))
        outer = {name: tree for name, tree in self._cuts.items() if name != self._key}
        return {
            OUTER: jax.tree.map(lambda cut: cut.spec, outer),
            BLOCKS: jax.tree.map(lambda cut: PartitionSpec("stage", None, None, *cut.spec), block),
        }

    def _rows(self, params: PyTree) -> list[PyTree]:
        """The parameters of the blocks, in order."""
        blocks = params[self._key]
        return [blocks[name] for name in sorted(blocks, key=int)]

    def _alike(self, params: PyTree) -> bool:
        """Whether the same arrays are masked in all blocks."""
        structure: Callable[..., Any] = jax.tree.structure
        if structure(params, is_leaf=layouts.masked) != structure(self.canonical.params):
            return False
        first, *others = map(structure, self._rows(params))
        return all(other == first for other in others)

    def merged(self, params: PyTree, merge: Callable[..., Any] = _the_same) -> PyTree:
        """A params-shaped tree with one subtree for all blocks. merge: (a value for each block) -> the common value."""
        outer = {name: tree for name, tree in params.items() if name != self._key}
        return {OUTER: outer, BLOCKS: jax.tree.map(merge, *self._rows(params))}

    def repeated(self, params: PyTree, of_block: Callable[[PyTree, int], PyTree] = lambda tree, _: tree) -> PyTree:
        """Inverse of `merged`. of_block: (the subtree for all blocks, index of a block) -> its subtree."""
        names = sorted(self.canonical.params[self._key], key=int)
        return {**params[OUTER], self._key: {name: of_block(params[BLOCKS], i) for i, name in enumerate(names)}}

    def stack(self, params: PyTree) -> PyTree:
        """Converts a params-shaped tree from the canonical form to that of the global arrays."""
        # Consecutive chunks are on consecutive stages, so the chunks of one stage are `stages` apart.
        shape = (self.chunks, self.stages, self.chunk)
        return self.merged(params, lambda *x: jnp.swapaxes(jnp.stack(x).reshape(*shape, *x[0].shape), 0, 1))

    def unstack(self, params: PyTree) -> PyTree:
        """Inverse of `stack`, of host or device arrays."""
        rows = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(self.count, *x.shape[3:]), params[BLOCKS])
        return self.repeated({**params, BLOCKS: rows}, lambda tree, i: jax.tree.map(lambda x: x[i], tree))


def _require_even(workload: TrainWorkload, blocks: int, stages: int, chunks: int) -> None:
    if blocks % (stages * chunks):
        near = max(1, round(blocks / (stages * chunks))) * stages * chunks
        of = f"{stages} stages" + (f" of {chunks} chunks each" if chunks > 1 else "")
        raise UserError(
            f"the {blocks} blocks of '{workload.name}' do not divide over {of}: use --config.model.layers={near}, for "
            "example."
        )
