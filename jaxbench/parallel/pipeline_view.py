# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The gathered update for the stacked blocks of a pipeline (see `optimizer_view`).

An optimizer that is elementwise, or that reduces over all parameters together, treats a stack of blocks like the
separate blocks. An optimizer that reduces over each parameter, or that depends on its path or dimensions, does not. The
jaxprs of the two updates decide: each result must be computed in the same way.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh

from jaxbench.parallel import optimizer_need
from jaxbench.parallel.layout import map_arrays
from jaxbench.parallel.optimizer_need import ELEMENTWISE, REDUCTIONS, Need
from jaxbench.parallel.optimizer_view import WHOLE, View, leaving, on_device, sends
from jaxbench.parallel.pipeline_layout import BLOCKS, OUTER, PipelineLayout
from jaxbench.parallel.program import TrainState
from jaxbench.workloads.base import PyTree, TrainWorkload
from jaxbench.workloads.jaxprs import CALLS, inner

OF_ALL, OF_NONE = -2, -1  # instead of a block's number: for a stack, and for values outside the blocks
REDUCES = {"add": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "and": "reduce_and", "or": "reduce_or"}
ZEROS = {hash("0"), hash("0.0")}  # the ways of a literal zero, with which Python's `sum` starts


def of(workload: TrainWorkload, mesh: Mesh, layout: PipelineLayout) -> View | None:
    """The view that the optimizer needs; None if it can update a stage's stacked blocks directly.

    If a stack would be updated differently, everything is gathered and unstacked, which is correct but sends more.
    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    avals, specs = jax.eval_shape(layout.cut, layout.canonical), layout.specs()
    join: Any = layout.join
    join_gradients: Any = layout.unstack
    cut: Any = layout.cut
    seen: Any = WHOLE
    need = Need(values=False, whole=frozenset(range(len(jax.tree.leaves(avals.params)))))
    if as_good(workload, layout):
        need = optimizer_need.of(workload, avals, on_device(avals, specs, mesh))
        if need.values or mesh.size == 1:
            return None
        join = join_gradients = cut = _as_it_is
        seen = leaving(specs, need.whole, layout.mirrored)
    return View(
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
    return bool(layout.mirrored.map(separate, layout.merged, _as_it_is) == stack)


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
    number = itertools.count()  # numbers the parts of the optimizer's state

    def called(tree: PyTree) -> PyTree:
        part = next(number)
        return map_arrays(lambda _, made: Made(hash((part, made.way)), made.block), tree, names)

    given = layout.mirrored.map(state, called, lambda _: Made(next(number)))
    closed = optimizer_need.traced(workload, state)
    arguments = jax.tree.leaves((called(state.params), given.opt_state, given.params))
    found = [hash(made.way) for made in _made(closed.jaxpr, closed.consts, arguments, layout.count)]
    params, opt_state = jax.tree.unflatten(jax.tree.structure((state.params, state.opt_state)), found)
    return TrainState(0, params, {}, opt_state, 0)  # type: ignore[arg-type]


def _made(jaxpr: Any, constants: Sequence[Any], given: Sequence[Made], count: int) -> list[Made]:
    """How each result of a jaxpr is computed. count: the number of blocks."""
    made = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*map(_written, constants), *given), strict=True))

    def of(atom: Any) -> Made:
        return _written(atom.val) if hasattr(atom, "val") else made[atom]

    for equation in jaxpr.eqns:
        name, operands, runs = equation.primitive.name, [of(atom) for atom in equation.invars], inner(equation)
        if name in CALLS:
            found = _made(*runs[0], operands, count)
        elif name == "cond":
            branches = [_made(*each, operands[1:], count) for each in runs]
            found = [_together(name, (operands[0], *results)) for results in zip(*branches, strict=True)]
        elif name == "broadcast_in_dim" and equation.invars[0].aval.shape == ():
            found = operands[:1]  # a number is the same in a stack as in a block, whatever shape it fills
        else:
            whole = _reduction(equation, operands, count) if equation.outvars[0].aval.shape == () else None
            found = [whole] if whole is not None else _results(equation, operands)
        made.update(zip(equation.outvars, found, strict=True))
    return [of(atom) for atom in jaxpr.outvars]


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
    # The shapes of a stack and of a block differ, which does not matter to an elementwise operation.
    atoms = () if name in ELEMENTWISE else (*equation.invars, *equation.outvars)
    how = name, str(equation.params), tuple(atom.aval.shape for atom in atoms)
    return [_together((*how, i), operands) for i, _ in enumerate(equation.outvars)]


def _together(how: Hashable, operands: Sequence[Made]) -> Made:
    """One result that is computed from all operands."""
    blocks = {made.block for made in operands} - {OF_NONE}
    mixed = tuple(made.block for made in operands) if len(blocks) > 1 else ()
    return Made(hash((how, mixed, *(made.way for made in operands))), blocks.pop() if len(blocks) == 1 else OF_NONE)


def _as_it_is(tree: PyTree) -> PyTree:
    return tree
