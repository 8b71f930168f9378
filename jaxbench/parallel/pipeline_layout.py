# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The layout of a pipeline's state: the parameters of all blocks stacked, (stages, chunks, blocks of a chunk, ...).

Chunk v of stage s (of K) begins with block (v K + s) times the length of a chunk. Parameters outside the blocks, and
dimensions of a block's arrays that the model's table splits, are laid out as in any other strategy (see `layout`).

An optimizer that is elementwise, or that reduces over all parameters together, treats a stack of blocks like the
separate blocks. An optimizer that reduces over each parameter, or that depends on its path or dimensions, does not. The
jaxprs of the two updates decide: each result must be computed in the same way. If not, the optimizer gets a gathered
update (see `optimizer`) of the separate blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from jaxbench.errors import UserError
from jaxbench.parallel import layout as layouts
from jaxbench.parallel import multihost
from jaxbench.parallel.axes import Sizes
from jaxbench.parallel.optimizer import (
    ELEMENTWISE,
    REDUCTIONS,
    WHOLE,
    GatheredUpdate,
    OptimizerDependencies,
    dependencies,
    leaving,
    on_device,
    sends,
    traced,
)
from jaxbench.parallel.program import TrainState
from jaxbench.workloads.base import PyTree, TrainWorkload
from jaxbench.workloads.jaxprs import CALLS, inner, interpret

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

        block = next(iter(self._cuts[self._key].values()))
        outer = {name: tree for name, tree in self._cuts.items() if name != self._key}
        specs = {
            OUTER: jax.tree.map(lambda cut: cut.spec, outer),
            BLOCKS: jax.tree.map(lambda cut: PartitionSpec("stage", None, None, *cut.spec), block),
        }

        def of(params: PyTree) -> PyTree:
            return layouts.map_arrays(lambda _, spec: spec, jax.eval_shape(self.stack, params), specs)

        return self.mirrored.map(self.canonical, of, lambda _: PartitionSpec())

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

    def merged(
        self, params: PyTree, merge: Callable[..., Any] = lambda *each: each[0] if len({*each}) == 1 else None
    ) -> PyTree:
        """A params-shaped tree with one subtree for all blocks. merge: (a value for each block) -> the common value;
        by default the value if all blocks have the same, otherwise None."""
        outer = {name: tree for name, tree in params.items() if name != self._key}
        return {OUTER: outer, BLOCKS: jax.tree.map(merge, *self._rows(params))}

    def repeated(self, params: PyTree, of_block: Callable[[PyTree, int], PyTree] = lambda tree, _: tree) -> PyTree:
        """Inverse of `merged`. of_block: (the subtree for all blocks, index of a block) -> its subtree."""
        names = sorted(self.canonical.params[self._key], key=int)
        return {**params[OUTER], self._key: {name: of_block(params[BLOCKS], i) for i, name in enumerate(names)}}

    def stack(self, params: PyTree) -> PyTree:
        """Converts a params-shaped tree from the canonical form to that of the global arrays."""
        shape = (self.chunks, self.stages, self.chunk)
        return self.merged(params, lambda *x: jnp.swapaxes(jnp.stack(x).reshape(*shape, *x[0].shape), 0, 1))

    def unstack(self, params: PyTree) -> PyTree:
        """Inverse of `stack`, of host or device arrays."""
        rows = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(self.count, *x.shape[3:]), params[BLOCKS])
        return self.repeated({**params, BLOCKS: rows}, lambda tree, i: jax.tree.map(lambda x: x[i], tree))


OF_ALL, OF_NONE = -2, -1  # instead of a block's number: for a stack, and for values outside the blocks
REDUCES = {"add": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "and": "reduce_and", "or": "reduce_or"}
ZEROS = {hash("0"), hash("0.0")}


def gathered_update(workload: TrainWorkload, mesh: Mesh, layout: PipelineLayout) -> GatheredUpdate | None:
    """The view that the optimizer needs; None if it can update a stage's stacked blocks directly.

    If a stack would be updated differently, everything is gathered and unstacked, which is correct but sends more.
    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    avals, specs = jax.eval_shape(layout.cut, layout.canonical), layout.specs()
    join: Any = layout.join
    join_gradients: Any = layout.unstack
    cut: Any = layout.cut
    seen: Any = WHOLE
    need = OptimizerDependencies(values=False, whole=frozenset(range(len(jax.tree.leaves(avals.params)))))
    if as_good(workload, layout):
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


def as_good(workload: TrainWorkload, layout: PipelineLayout) -> bool:
    """Whether the optimizer treats stacked blocks like the separate blocks."""
    stacked = jax.eval_shape(layout.cut, layout.canonical)
    names = jax.tree.map_with_path(lambda path, _: jax.tree_util.keystr(path), stacked.params)

    def numbered(block: int, tree: PyTree) -> PyTree:
        return jax.tree.map(lambda name: Made(name, block), tree)

    names = {OUTER: numbered(OF_NONE, names[OUTER]), BLOCKS: names[BLOCKS]}
    of_blocks = layout.repeated(names, lambda tree, block: numbered(block, tree))
    of_stacks = {**names, BLOCKS: numbered(OF_ALL, names[BLOCKS])}
    separate = _ways(workload, layout, layout.canonical, of_blocks)
    try:
        stack = _ways(workload, layout, stacked, of_stacks)
    except (TypeError, ValueError, KeyError, AttributeError):  # the optimizer expects the parameters' names
        return False
    return bool(layout.mirrored.map(separate, layout.merged, lambda leaf: leaf) == stack)


@dataclass(frozen=True)
class Made:
    """How a value is computed. way: equal for values that differ only in their block. block: the block that they use.

    The way of a reduction of whole arrays to a number is its name and the sorted (way, block) of its operands. So a sum
    over a stack equals the sum over its blocks.
    """

    way: Hashable
    block: int = OF_NONE

    def reduced(self, name: str) -> tuple[Any, ...] | None:
        """The operands if this is a reduction called `name`."""
        return self.way[1] if isinstance(self.way, tuple) and self.way[0] == name else None


def _ways(workload: TrainWorkload, layout: PipelineLayout, state: TrainState, names: PyTree) -> TrainState:
    """How each array of the new state is computed. names: the Made of the old parameters, params-shaped."""
    number = itertools.count()  # of the parts of the optimizer's state

    def called(tree: PyTree) -> PyTree:
        part = next(number)
        return layouts.map_arrays(lambda _, made: Made(hash((part, made.way)), made.block), tree, names)

    given = layout.mirrored.map(state, called, lambda _: Made(next(number)))
    closed = traced(workload, state)
    arguments = jax.tree.leaves((called(state.params), given.opt_state, given.params))
    found = [hash(made.way) for made in _made(closed.jaxpr, closed.consts, arguments, layout.count)]
    params, opt_state = jax.tree.unflatten(jax.tree.structure((state.params, state.opt_state)), found)
    return TrainState(0, params, {}, opt_state, 0)  # type: ignore[arg-type]


def _made(jaxpr: Any, constants: Sequence[Any], given: Sequence[Made], count: int) -> list[Made]:
    """How each result of a jaxpr is computed. count: the number of blocks."""

    def apply(equation: Any, operands: list[Made]) -> list[Made]:
        name, runs = equation.primitive.name, inner(equation)
        if name in CALLS:
            return _made(*runs[0], operands, count)
        if name == "cond":
            branches = [_made(*each, operands[1:], count) for each in runs]
            return [_together(name, (operands[0], *results)) for results in zip(*branches, strict=True)]
        if name == "broadcast_in_dim" and equation.invars[0].aval.shape == ():
            return operands[:1]
        whole = _reduction(equation, operands, count) if equation.outvars[0].aval.shape == () else None
        return [whole] if whole is not None else _results(equation, operands)

    return interpret(jaxpr, map(_written, constants), given, lambda atom: _written(atom.val), apply)


def _written(value: Any) -> Made:
    return Made(hash(str(value)))


def _reduction(equation: Any, operands: list[Made], count: int) -> Made | None:
    """The Made of an equation that reduces whole arrays to a number, or several such numbers to one; otherwise None."""
    name = equation.primitive.name
    if name in REDUCTIONS and (parts := operands[0].reduced("concatenate")) is None:
        way, block = hash(operands[0].way), operands[0].block
        return Made((name, tuple((way, each) for each in (range(count) if block == OF_ALL else [block]))))
    if name in REDUCES:
        name, parts = REDUCES[name], tuple(made for made in operands if name != "add" or made.way not in ZEROS)
    elif name not in REDUCTIONS:
        return None
    reduced = [made.reduced(name) for made in parts or ()]
    return None if None in reduced or not reduced else Made((name, tuple(sorted(sum(reduced, ())))))


def _results(equation: Any, operands: list[Made]) -> list[Made]:
    name = equation.primitive.name
    if name == "concatenate" and all(made.block == OF_NONE for made in operands):
        return [Made((name, tuple(operands)))]
    atoms = () if name in ELEMENTWISE else (*equation.invars, *equation.outvars)
    how = name, str(equation.params), tuple(atom.aval.shape for atom in atoms)
    return [_together((*how, i), operands) for i, _ in enumerate(equation.outvars)]


def _together(how: Hashable, operands: Sequence[Made]) -> Made:
    """One result that is computed from all operands."""
    blocks = {made.block for made in operands} - {OF_NONE}
    mixed = tuple(made.block for made in operands) if len(blocks) > 1 else ()
    return Made(hash((how, mixed, *(made.way for made in operands))), blocks.pop() if len(blocks) == 1 else OF_NONE)
