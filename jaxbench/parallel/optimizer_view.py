# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The gathered update: global arrays for an optimizer that needs more than a device's shards (see `optimizer_need`).

The gradient is computed in `shard_map`, which returns one global array for each parameter. The update of these arrays
is written as for one device, under `jit`, which turns the sum of a split array into sums of its parts and an all-reduce
of one number. Arrays that are needed whole, or are flattened, are gathered before the update and cut again after it.
Nothing else is sent, because the sharding of every input and output is fixed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.parallel import optimizer_need
from jaxbench.parallel.layout import Layout, Mirrored, map_arrays
from jaxbench.parallel.optimizer_need import Need
from jaxbench.parallel.program import TrainState, update
from jaxbench.workloads.base import CollectiveBounds, PyTree, TrainWorkload

WHOLE = PartitionSpec()


@dataclass(frozen=True, kw_only=True)
class View:
    """The layout in which an optimizer updates the global arrays of a state.

    seen: specs during the update, state-shaped or one for all; gathered arrays are whole. Gradients have the specs of
    the parameters. join, join_gradients: convert global arrays to the arguments of the update. cut: converts back.
    outside: state-shaped specs of the results of `cut`. gathered: the leaf indices of the gathered parameters. sends:
    the communication that the view adds to that of the step.
    """

    workload: TrainWorkload
    mesh: Mesh
    seen: TrainState | PartitionSpec
    outside: TrainState
    join: Callable[[TrainState], TrainState]
    join_gradients: Callable[[PyTree], PyTree]
    cut: Callable[[TrainState], TrainState]
    gathered: frozenset[int]
    sends: CollectiveBounds

    def update(self, state: TrainState, grads: PyTree, model_state: PyTree) -> TrainState:
        """As `program.update`, on global arrays under `jit`."""
        of_params = self.seen.params if isinstance(self.seen, TrainState) else self.seen
        whole = self._placed(self.join(self._placed(state, self.seen)), self.seen)
        grads = self._placed(self.join_gradients(self._placed(grads, of_params)), of_params)
        new = self._placed(update(self.workload, whole, grads, model_state), self.seen)
        return self._placed(self._placed(self.cut(new), self.seen), self.outside)

    def _placed(self, tree: PyTree, specs: PyTree) -> PyTree:
        return jax.lax.with_sharding_constraint(tree, jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), specs))


def of(workload: TrainWorkload, mesh: Mesh, layout: Layout, split: Layout | None = None) -> View | None:
    """The view that the optimizer needs; None if it can update a device's shards directly.

    layout: of the state. split: of gradients, and of parameters during the update; None: the same.
    Raises UserError for an optimizer that needs more arguments than a step passes.
    """
    split = split or layout
    cuts = jax.tree.leaves(split.cuts)
    if not any(cut.axes for cut in cuts):
        return None
    avals, specs = jax.eval_shape(split.cut, split.canonical), split.specs()
    need = optimizer_need.of(workload, split.canonical, on_device(avals, specs, mesh))
    if need.values:
        return None
    gathered = frozenset(place for place, cut in enumerate(cuts) if cut.flat > 1 or (cut.axes and place in need.whole))
    seen = leaving(specs, gathered, split.mirrored)
    return View(
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


def on_device(avals: PyTree, specs: PyTree, mesh: Mesh) -> PyTree:
    """The avals of one device's part of global arrays."""

    def part(aval: Any, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(NamedSharding(mesh, spec).shard_shape(aval.shape), aval.dtype)

    return jax.tree.map(part, avals, specs)


def leaving(specs: TrainState, gathered: frozenset[int], mirrored: Mirrored) -> TrainState:
    """The specs, except that the gathered parameters and their moments are whole on every device."""
    places = places_of(specs.params)

    def of(tree: PyTree) -> PyTree:
        return map_arrays(lambda spec, place: WHOLE if place in gathered else spec, tree, places)

    return mirrored.map(specs, of, lambda spec: spec)


def platform(mesh: Mesh) -> str:
    return mesh.devices.flat[0].platform


def places_of(params: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(params)
    return jax.tree.unflatten(structure, range(len(leaves)))


def sends(
    need: Need,
    gathered: frozenset[int],
    avals: TrainState,
    specs: TrainState,
    mirrored: Mirrored,
    mesh: Mesh,
    *,
    params: bool,
) -> CollectiveBounds:
    """The communication that a view adds.

    It has all-gathers of gradients, moments and, if they are split too (params), parameters, over one axis after the
    other; and one number for each reduction over each axis. All are upper bounds: XLA drops what the update does not
    use, and merges reductions. On a CPU, reductions to one number do not count (see measure/closed_form.py).
    """
    places, axes = places_of(avals.params), {name: size for name, size in mesh.shape.items() if size > 1}

    def numbers(aval: Any, place: int, spec: PartitionSpec) -> int:
        total, left = 0, math.prod(aval.shape) if place in gathered else 0
        for size in sorted(axes[name] for name in spec if name in axes):
            total, left = total + left, left // size
        return total

    trees = [avals.params] * (1 + params) + mirrored.moments(avals)
    most = sum(jax.tree.leaves([map_arrays(numbers, tree, places, specs.params) for tree in trees]))
    counted = 0 if platform(mesh) == "cpu" else need.reductions * len(axes)
    bounds = {"all-gather": (0, most), "all-reduce": (0, counted)}
    return {kind: allowed for kind, allowed in bounds.items() if allowed[1]}
