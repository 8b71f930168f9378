# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Optimizer dependencies: how much of the gradients, parameters and moments an update needs, read from its jaxpr.

An elementwise primitive keeps the shape of its arrays. So an array that leads to an update can only be needed as a
whole by a primitive that has an operand of the same shape. A primitive that is not known to be elementwise counts as
needing whole arrays of these shapes, which is correct but may send more. Whether the update is right is measured later,
against one device.

The gathered update is for an optimizer that needs more than a device's shards. The gradient is computed in `shard_map`,
which returns one global array for each parameter. The update of these arrays is written as for one device, under `jit`,
which turns the sum of a split array into sums of its parts and an all-reduce of one number. Arrays that are needed
whole, or are flattened, are gathered before the update and cut again after it. Nothing else is sent, because the
sharding of every input and output is fixed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import numpy as np
from jax.extend import core
from jax.interpreters import partial_eval
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.core.program import TrainState
from jaxbench.core.trees import ArrayTree, Tree
from jaxbench.core.workload import CollectiveBounds, TrainWorkload
from jaxbench.parallel.layout import Layout, Mirrored, map_arrays
from jaxbench.parallel.step import optimizer_update, update
from jaxbench.workloads.jaxprs import CALLS, aval_of, equations

T = TypeVar("T")
ELEMENTWISE = frozenset(
    """abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp clz complex conj
    convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag
    integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not optimization_barrier or pcast
    population_count pow pvary real reduce_precision rem round rsqrt select_n sharding_constraint shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor""".split()
)
# To one number they become a sum over devices, which costs almost nothing; along an axis they need whole arrays.
REDUCTIONS = frozenset(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"))
WHOLE = PartitionSpec()


@dataclass(frozen=True)
class OptimizerDependencies:
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


def dependencies(
    workload: TrainWorkload, canonical: TrainState, shards: TrainState | None = None
) -> OptimizerDependencies:
    """The dependencies of the workload's optimizer. canonical: avals of the state; gradients have those of its params.

    shards: the avals of one device's part. The update traced on these must be the same except for shapes. An optimizer
    that reads shapes in Python, such as weight decay of matrices only, is not "values" if that changes its update.

    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    closed = traced(workload, canonical)
    reductions, shapes = 0, {np.shape(constant) for constant in closed.consts}  # a table would not fit a shard
    for equation in equations(closed.jaxpr):
        name = equation.primitive.name
        given, out = ([aval_of(x).shape for x in each] for each in (equation.invars, equation.outvars))
        if name in ELEMENTWISE or name in CALLS or name == "cond":  # the equations inside a call are listed, too
            continue
        if name == "broadcast_in_dim" and (math.prod(given[0]) == 1 or given[0] == out[0]):
            continue  # of a number, or of nothing
        if name in REDUCTIONS and math.prod(out[0]) == 1:  # a sum over a split array is a sum over devices
            reductions += math.prod(given[0]) > 1
            continue
        shapes.update(given, out)
    params = enumerate(jax.tree.leaves(canonical.params))
    # Any array of such a shape: which of them it was is not followed through the jaxpr.
    whole = frozenset(index for index, aval in params if aval.shape and aval.shape in shapes)
    # The comparison with shards finds optimizers that read shapes in Python, such as weight decay of matrices only.
    values = not whole and not reductions and (shards is None or same(workload, canonical, shards))
    return OptimizerDependencies(values, reductions, whole)


def same(workload: TrainWorkload, a: TrainState, b: TrainState) -> bool:
    """Whether the updates of two states, which differ only in shapes, have the same primitives and numbers."""

    def signature(state: TrainState) -> list[object]:
        closed = traced(workload, state)
        numbers = [str(constant) for constant in closed.consts if np.shape(constant) == ()]
        every = equations(closed.jaxpr)
        return [
            numbers,
            *((e.primitive.name, [str(x.val) for x in e.invars if isinstance(x, core.Literal)]) for e in every),
        ]

    try:
        return signature(a) == signature(b)
    except (TypeError, ValueError):  # one cannot be traced, as with a hard-coded shape
        return False


def traced(workload: TrainWorkload, avals: TrainState) -> core.ClosedJaxpr:
    """The closed jaxpr of (gradients, optimizer's state, params) -> (updates, optimizer's state)."""
    update = lambda grads, opt_state, params: optimizer_update(workload, grads, opt_state, params)  # noqa: E731
    return jax.make_jaxpr(update)(avals.params, avals.opt_state, avals.params)


def unused_gradients(workload: TrainWorkload, canonical: TrainState) -> frozenset[int]:
    """The leaf indices of parameters for which the optimizer does not use the gradient, for example sets it to zero.

    XLA need not average these gradients.
    """
    closed = traced(workload, canonical)
    # JAX's own removal of dead code, as XLA will do it. The gradients are the first arguments.
    _, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return frozenset(index for index, _ in enumerate(jax.tree.leaves(canonical.params)) if not used[index])


@dataclass(frozen=True, kw_only=True)
class GatheredUpdate:
    """The layout in which an optimizer updates the global arrays of a state.

    seen: specs during the update, state-shaped or one for all; gathered arrays are whole. Gradients have the specs of
    the parameters. join, join_gradients: convert global arrays to the arguments of the update. cut: converts back.
    outside: state-shaped specs of the results of `cut`. gathered: the leaf indices of the gathered parameters. sends:
    the communication that it adds to that of the step.
    """

    workload: TrainWorkload
    mesh: Mesh
    seen: TrainState | PartitionSpec
    outside: TrainState
    join: Callable[[TrainState], TrainState]
    join_gradients: Callable[[ArrayTree], ArrayTree]
    cut: Callable[[TrainState], TrainState]
    gathered: frozenset[int]
    sends: CollectiveBounds

    def update(self, state: TrainState, grads: ArrayTree, model_state: ArrayTree) -> TrainState:
        """As `program.update`, on global arrays under `jit`."""
        # The layout is fixed before and after each conversion. In between, the partitioner could otherwise send more
        # than the expected communication allows.
        of_params = self.seen.params if isinstance(self.seen, TrainState) else self.seen
        whole = self._placed(self.join(self._placed(state, self.seen)), self.seen)
        grads = self._placed(self.join_gradients(self._placed(grads, of_params)), of_params)
        new = self._placed(update(self.workload, whole, grads, model_state), self.seen)
        return self._placed(self._placed(self.cut(new), self.seen), self.outside)

    def _placed(self, tree: T, specs: object) -> T:
        """The tree with the shardings of `specs`."""
        return jax.lax.with_sharding_constraint(tree, jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), specs))


def gathered_update(
    workload: TrainWorkload, mesh: Mesh, layout: Layout, split: Layout | None = None
) -> GatheredUpdate | None:
    """The gathered update that the optimizer needs; None if it can update a device's shards directly.

    layout: of the state. split: of gradients, and of parameters during the update; None: the same.
    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    split = split or layout
    cuts = jax.tree.leaves(split.cuts)
    # Without split arrays every device has all that an update can need.
    if not any(cut.axes for cut in cuts):
        return None
    avals, specs = jax.eval_shape(split.cut, split.canonical), split.specs()
    need = dependencies(workload, split.canonical, on_device(avals, specs, mesh))
    if need.values:
        return None
    # Flat arrays always, because a flat shard allows only elementwise work.
    gathered = frozenset(index for index, cut in enumerate(cuts) if cut.flat > 1 or (cut.axes and index in need.whole))
    seen = leaving(specs, gathered, split.mirrored)
    return GatheredUpdate(
        workload=workload,
        mesh=mesh,
        seen=seen,
        outside=layout.specs() if split is layout else dataclasses.replace(layout.specs(), params=seen.params),
        join=layout.join,
        join_gradients=split.join_params,
        cut=layout.cut,
        gathered=gathered,
        sends=sends(need, gathered, avals, specs, split.mirrored, mesh, params=split is layout),
    )


def on_device(avals: TrainState, specs: TrainState, mesh: Mesh) -> TrainState:
    """The avals of one device's part of global arrays."""

    def part(aval: jax.ShapeDtypeStruct, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(NamedSharding(mesh, spec).shard_shape(aval.shape), aval.dtype)

    return jax.tree.map(part, avals, specs)


def leaving(specs: TrainState, gathered: frozenset[int], mirrored: Mirrored) -> TrainState:
    """The specs, except that the gathered parameters and their moments are whole on every device."""
    indices = indices_of(specs.params)

    def of(tree: Tree[PartitionSpec]) -> Tree[PartitionSpec]:
        return map_arrays(lambda spec, index: WHOLE if index in gathered else spec, tree, indices)

    return mirrored.map(specs, of, lambda spec: spec)


def indices_of(params: object) -> Tree[int]:
    """The index of each leaf, in a tree of the same structure."""
    leaves, structure = jax.tree.flatten(params)
    return jax.tree.unflatten(structure, range(len(leaves)))


def platform(mesh: Mesh) -> str:
    return mesh.devices.flat[0].platform


def sends(
    need: OptimizerDependencies,
    gathered: frozenset[int],
    avals: TrainState,
    specs: TrainState,
    mirrored: Mirrored,
    mesh: Mesh,
    *,
    params: bool,
) -> CollectiveBounds:
    """The communication that a gathered update adds.

    It has all-gathers of gradients, moments and, if they are split too (params), parameters, over one axis after the
    other; and one number for each reduction over each axis. All are upper bounds: XLA drops what the update does not
    use, and merges reductions. On a CPU, reductions to one number do not count (see measure/expected_communication.py).
    """
    indices, axes = indices_of(avals.params), {name: size for name, size in mesh.shape.items() if size > 1}

    def numbers(aval: jax.ShapeDtypeStruct, index: int, spec: PartitionSpec) -> int:
        total, left = 0, math.prod(aval.shape) if index in gathered else 0
        # The smallest axis first: this order has the largest sum, and the result is an upper bound.
        for size in sorted(axes[name] for name in spec if name in axes):
            total, left = total + left, left // size
        return total

    trees = [avals.params] * (1 + params) + mirrored.moments(avals)
    most = sum(jax.tree.leaves([map_arrays(numbers, tree, indices, specs.params) for tree in trees]))
    counted = 0 if platform(mesh) == "cpu" else need.reductions * len(axes)
    bounds = {"all-gather": (0, most), "all-reduce": (0, counted)}
    return {kind: allowed for kind, allowed in bounds.items() if allowed[1]}
