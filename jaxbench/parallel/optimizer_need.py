# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Optimizer dependencies: how much of the gradients, parameters and moments an update needs, read from its jaxpr.

Each value in the jaxpr of `update` on the canonical arrays is *like* one parameter (computed element by element from
arrays of that parameter's shape, and scalars), or *alike* everywhere (a scalar from counts and schedules, possibly
broadcast), or a *table* (any other array without gradients in it), or *gathered* (computed from whole arrays, such as
a norm). A primitive that is not known to be elementwise counts as needing whole arrays, which is correct but may send
more. Reading the jaxpr is cheaper than comparing two updates, and stricter: it depends neither on the values compared
nor on the padding of flat shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from jaxbench.parallel.layout import Mirrored, map_arrays
from jaxbench.parallel.program import TrainState, optimizer_update
from jaxbench.workloads.base import PyTree, TrainWorkload
from jaxbench.workloads.jaxprs import CALLS, inner

ALIKE, TABLE, GATHERED = "alike", "table", "gathered"
Label = int | str  # an int: like the parameter of this place among the leaves

ELEMENTWISE = frozenset(
    """abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp clz complex conj
    convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag
    integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or pcast population_count pow
    pvary real reduce_precision rem round rsqrt select_n sharding_constraint shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor""".split()
)
REDUCTIONS = frozenset(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"))


@dataclass(frozen=True)
class Need:
    """The data that an optimizer needs in addition to a device's own shards.

    values: none; every result is elementwise, so shards are enough. reductions: the number of reductions of whole
    arrays to scalars, such as norms. whole: the leaf indices of the parameters for which it needs whole arrays, for
    reductions along an axis, products or sorting.
    """

    values: bool
    reductions: int = 0
    whole: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """values | reductions | whole."""
        return "values" if self.values else "whole" if self.whole else "reductions"


def of(workload: TrainWorkload, canonical: TrainState, shards: TrainState | None = None) -> Need:
    """The dependencies of the workload's optimizer. canonical: avals of the state; gradients have those of its params.

    shards: the avals of one device's part. The update traced on these must be the same except for shapes. An optimizer
    that reads shapes in Python, such as weight decay of matrices only, is not "values" if that changes its update.

    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    closed = traced(workload, canonical)
    leaves, structure = jax.tree.flatten(canonical.params)
    places = jax.tree.unflatten(structure, range(len(leaves)))
    reader = _JaxprReader(len(leaves))

    def label(tree: PyTree) -> PyTree:
        return map_arrays(lambda _, place: place, tree, places)

    labels = Mirrored(canonical).map(canonical, label, lambda aval: TABLE if aval.shape else ALIKE)
    given = jax.tree.leaves((labels.params, labels.opt_state, labels.params))
    found = reader.read(closed.jaxpr, closed.consts, given)
    for got, want in zip(found, jax.tree.leaves((labels.params, labels.opt_state)), strict=True):
        if isinstance(got, int) and got != want:  # it ends in an array that is laid out as another parameter
            reader.gather(got)
        elif got in (TABLE, GATHERED) and isinstance(want, int):
            reader.values = False
    values = reader.values and not reader.reductions and not reader.whole
    return Need(values and (shards is None or same(workload, canonical, shards)), reader.reductions, reader.whole)


def same(workload: TrainWorkload, a: TrainState, b: TrainState) -> bool:
    """Whether the updates of two states, which differ only in shapes, differ only in shapes too."""
    try:
        each = [traced(workload, state) for state in (a, b)]
        first, second = (list(_steps(closed.jaxpr, closed.consts)) for closed in each)
        return first == second
    except (TypeError, ValueError):  # one cannot be traced, as with a hard-coded shape
        return False


def traced(workload: TrainWorkload, avals: TrainState) -> Any:
    """The closed jaxpr of (gradients, optimizer's state, params) -> (updates, optimizer's state)."""
    update = lambda grads, opt_state, params: optimizer_update(workload, grads, opt_state, params)  # noqa: E731
    return jax.make_jaxpr(update)(avals.params, avals.opt_state, avals.params)


def unused_gradients(workload: TrainWorkload, canonical: TrainState) -> frozenset[int]:
    """The leaf indices of parameters for which the optimizer does not use the gradient, for example sets it to zero.

    XLA need not average these gradients.
    """
    closed = traced(workload, canonical)
    _, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return frozenset(place for place, _ in enumerate(jax.tree.leaves(canonical.params)) if not used[place])


class _JaxprReader:
    """Reads a jaxpr once, from the labels of its inputs to the labels of its outputs."""

    def __init__(self, parameters: int):
        self._parameters = parameters
        self.values, self.reductions = True, 0
        self.whole: frozenset[int] = frozenset()

    def gather(self, *labels: Label) -> Label:
        """Records that the whole arrays of these parameters are needed."""
        self.whole |= {label for label in labels if isinstance(label, int)}
        return GATHERED

    def read(self, jaxpr: Any, constants: Sequence[Any], given: Sequence[Label]) -> list[Label]:
        labels = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*map(_of_constant, constants), *given), strict=True))

        def of(atom: Any) -> Label:
            return labels[atom] if not hasattr(atom, "val") else _of_constant(atom.val)

        for equation in jaxpr.eqns:
            found = self._equation(equation, [of(operand) for operand in equation.invars])
            labels.update(zip(equation.outvars, found, strict=True))
        return [of(out) for out in jaxpr.outvars]

    def _equation(self, equation: Any, given: list[Label]) -> list[Label]:
        name, outs = equation.primitive.name, [out.aval.shape for out in equation.outvars]
        shapes = [operand.aval.shape for operand in equation.invars]
        if name == "cond":
            return self._cond(equation, given)
        if name in CALLS:
            ((jaxpr, constants),) = inner(equation)
            return self.read(jaxpr, constants, given)
        if name == "optimization_barrier":
            return given
        if name in ELEMENTWISE or (name == "broadcast_in_dim" and (given[0] == ALIKE or shapes[0] == outs[0])):
            return [self._joined(given, shapes, out) for out in outs]
        if name == "random_bits" and not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
            self.gather(*range(self._parameters))  # XLA sends such draws between shards
        arrays = [label for label in given if isinstance(label, int)]
        if name in REDUCTIONS and arrays and not outs[0]:
            self.reductions += 1
            return [GATHERED]
        if arrays:
            return [self.gather(*arrays) for _ in outs]
        return [GATHERED if GATHERED in given else TABLE if out else ALIKE for out in outs]

    def _joined(self, given: Sequence[Label], shapes: Sequence[tuple[int, ...]], out: tuple[int, ...]) -> Label:
        """The label of an elementwise result."""
        arrays = {label for label in given if isinstance(label, int)}
        broadcast = any(isinstance(label, int) and shape != out for label, shape in zip(given, shapes, strict=True))
        # A shard need not have the elements that it would meet in another parameter, or in a broadcast array.
        if len(arrays) > 1 or broadcast:
            return self.gather(*arrays)
        # On shards alone, a table would have the wrong shape, and a gathered number would be one shard's.
        self.values &= not (arrays and {TABLE, GATHERED} & {*given})
        order: tuple[Label, ...] = (*arrays, GATHERED, TABLE)
        kinds = [kind for kind in order if kind in given]
        return kinds[0] if kinds and (out or kinds[0] != TABLE) else ALIKE

    def _cond(self, equation: Any, given: list[Label]) -> list[Label]:
        predicate, *operands = given
        branches = [self.read(jaxpr, constants, operands) for jaxpr, constants in inner(equation)]
        shapes = [out.aval.shape for out in equation.outvars]
        return [
            self._joined((*labels, predicate), (*(shape for _ in labels), ()), shape)
            for shape, *labels in zip(shapes, *branches, strict=True)
        ]


def _of_constant(value: Any) -> Label:
    return TABLE if np.shape(value) else ALIKE


def _steps(jaxpr: Any, constants: Sequence[Any]) -> Iterator[Any]:
    """A shape-independent signature of a jaxpr: its primitives, in order.

    Literal numbers are part of the signature; a broadcast number counts as the number. For primitives that are not
    elementwise the shapes are part of it too.
    """
    numbers: dict[Any, str | None]
    numbers = {var: str(value) for var, value in zip(jaxpr.constvars, constants, strict=True) if np.shape(value) == ()}

    def written(atoms: Sequence[Any]) -> list[str | None]:
        return [str(atom.val) if hasattr(atom, "val") else numbers.get(atom) for atom in atoms]

    for equation in jaxpr.eqns:
        name, runs, given = equation.primitive.name, inner(equation), written(equation.invars)
        if name == "broadcast_in_dim" and equation.invars[0].aval.shape == ():
            numbers[equation.outvars[0]] = given[0]
            continue
        yield name, given, None if runs else equation.params
        for each in runs:
            yield from _steps(*each)
        if name not in ELEMENTWISE and not runs:
            yield [atom.aval.shape for atom in (*equation.invars, *equation.outvars)]
    yield written(jaxpr.outvars)
