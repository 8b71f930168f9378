# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The layout of a pipeline's state: the blocks' parameters stacked, (stages, chunks, blocks of a chunk, ...).

Chunk v of stage s holds the blocks from (v K + s) times the length of a chunk on. What is not a block's, and what the
model's table splits of a block's own arrays, lies as in any other strategy (see `layout`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from jaxbench.errors import UserError
from jaxbench.parallel import layout as layouts
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.program import TrainState
from jaxbench.workloads.base import PyTree, TrainWorkload

OUTER, BLOCKS = "outer", "blocks"


class Stacked:
    """As `layout.Layout`, for a workload with stages. Raises UserError for blocks that do not divide."""

    def __init__(self, workload: TrainWorkload, sizes: Sizes, chunks: int):
        assert workload.partition is not None and workload.partition.stages is not None
        self.stages, self.chunks = sizes.get("stage", 1), chunks
        self._key = workload.partition.stages.blocks
        self.canonical = layouts.canonical_avals(workload)
        self._count = len(self.canonical.params[self._key])
        _require_even(workload, self._count, self.stages, chunks)
        self.chunk = self._count // self.stages // chunks  # blocks of one
        self._cuts, self._mirrored = layouts.cuts(workload, sizes), layouts.Mirrored(self.canonical)
        self.params = jax.eval_shape(self._stack, self.canonical.params)

    def cut(self, state: TrainState) -> TrainState:
        """From the canonical state to the global arrays."""
        return self._mirrored.map(state, self._stack, lambda x: x)

    def export(self, state: TrainState) -> TrainState:
        """From global arrays to the canonical state, as host arrays."""
        return self._mirrored.map(state, self._unstack, np.asarray)

    def specs(self) -> TrainState:
        """A state-shaped tree of PartitionSpec."""
        return self._mirrored.map(self.canonical, lambda _: self._param_specs(), lambda _: PartitionSpec())

    def _param_specs(self) -> PyTree:
        block = next(iter(self._cuts[self._key].values()))
        outer = {name: tree for name, tree in self._cuts.items() if name != self._key}
        return {
            OUTER: jax.tree.map(lambda cut: cut.spec, outer),
            BLOCKS: jax.tree.map(lambda cut: PartitionSpec("stage", None, None, *cut.spec), block),
        }

    def _stack(self, params: PyTree) -> PyTree:
        blocks = params[self._key]
        rows = [blocks[name] for name in sorted(blocks, key=int)]
        shape = (self.chunks, self.stages, self.chunk)
        return {
            OUTER: {name: tree for name, tree in params.items() if name != self._key},
            BLOCKS: jax.tree.map(lambda *x: jnp.swapaxes(jnp.stack(x).reshape(*shape, *x[0].shape), 0, 1), *rows),
        }

    def _unstack(self, params: PyTree) -> PyTree:
        names = sorted(self.canonical.params[self._key], key=int)

        def flat(x: Any) -> np.ndarray:
            return np.swapaxes(np.asarray(x), 0, 1).reshape(self._count, *x.shape[3:])

        rows = jax.tree.map(flat, params[BLOCKS])
        blocks = {name: jax.tree.map(lambda x, i=i: x[i], rows) for i, name in enumerate(names)}
        return {**jax.tree.map(np.asarray, params[OUTER]), self._key: blocks}


def _require_even(workload: TrainWorkload, blocks: int, stages: int, chunks: int) -> None:
    if blocks % (stages * chunks):
        near = max(1, round(blocks / (stages * chunks))) * stages * chunks
        of = f"{stages} stages" + (f" of {chunks} chunks each" if chunks > 1 else "")
        raise UserError(
            f"the {blocks} blocks of '{workload.name}' do not divide over {of}: use --config.model.layers={near}, for "
            "example."
        )
