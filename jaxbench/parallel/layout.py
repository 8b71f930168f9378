# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The layout of a training state on a named mesh, and the conversion to and from the canonical state.

The model's table says which dimensions of a parameter are split. The axis `fsdp` also splits the first remaining
dimension that divides; an array without one is flattened, padded with zeros and cut. The optimizer's state is laid out
as the parameters that it belongs to.

A flat shard allows only elementwise work. An optimizer that does more gets the whole array (see `optimizer`).
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec

from jaxbench.core.program import TrainState
from jaxbench.core.trees import ArrayTree, Tree
from jaxbench.core.workload import KEY, TrainWorkload
from jaxbench.errors import Unsupported, UserError
from jaxbench.parallel import multihost
from jaxbench.parallel.axes import LIES_ON, Sizes, splits
from jaxbench.parallel.step import create_state
from jaxbench.workloads.levers import is_frozen, paths

T = TypeVar("T")


def padded(size: int, parts: int) -> int:
    """`size` elements, rounded up to a multiple of `parts`."""
    return -(-size // parts) * parts


def flattened(x: jax.Array, parts: int) -> jax.Array:
    """The elements row by row, padded with zeros to a multiple of `parts`: (padded,)."""
    return jnp.pad(x.reshape(-1), (0, padded(x.size, parts) - x.size))


@dataclass(frozen=True)
class Cut:
    """How one parameter is split.

    shape: canonical. dims: (dimension, mesh axis) of each split dimension, in order. sizes: the number of devices of
    each. over: the axis over which a device's part is gathered before use. flat: the number of devices of `over` that
    share the flattened array if no dimension divides, otherwise 1. summed: the further axes, in addition to those that
    split the batch, over which the parameter is replicated and used for different examples. Its gradient is a sum over
    them.
    """

    shape: tuple[int, ...]
    dims: tuple[tuple[int, str], ...] = ()
    sizes: tuple[int, ...] = ()
    flat: int = 1
    over: str = "fsdp"
    summed: tuple[str, ...] = ()

    @property
    def local(self) -> tuple[int, ...]:
        """The shape of a device's part, before it is flattened."""
        shape = list(self.shape)
        for (dim, _), size in zip(self.dims, self.sizes, strict=True):
            shape[dim] //= size
        return tuple(shape)

    @property
    def spec(self) -> PartitionSpec:
        if self.flat > 1:  # (devices of each split dimension, elements): see `cut`
            return PartitionSpec(*(axis for _, axis in self.dims), self.over)
        axis_of = dict(self.dims)
        return PartitionSpec(*(axis_of.get(dim) for dim in range(len(self.shape)))) if axis_of else PartitionSpec()

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes over which devices hold different parts."""
        return (*(axis for _, axis in self.dims), *((self.over,) if self.flat > 1 else ()))

    def _grouped(self) -> tuple[list[int], list[int]]:
        """(the canonical shape with each split dimension as (devices, rest), the indices of these `devices`)."""
        split = {dim: size for (dim, _), size in zip(self.dims, self.sizes, strict=True)}
        shape: list[int] = []
        indices = []
        for dim, length in enumerate(self.shape):
            indices += [len(shape)] if dim in split else []
            shape += [split[dim], length // split[dim]] if dim in split else [length]
        return shape, indices

    def cut(self, x: jax.Array) -> jax.Array:
        """Converts an array from canonical shape to the shape of the global array."""
        if self.flat == 1:
            return x  # its sharding alone cuts it
        shape, indices = self._grouped()
        # The axes of devices come first, so that each row is the flattened part of one device.
        rows = jnp.moveaxis(x.reshape(shape), indices, range(len(indices))).reshape(*self.sizes, -1)
        padding = padded(rows.shape[-1], self.flat) - rows.shape[-1]
        # Zeros, because an elementwise optimizer leaves a zero with a zero gradient alone, and norms do not see it.
        return jnp.pad(rows, [(0, 0)] * len(indices) + [(0, padding)])

    def join(self, x: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
        """Inverse of `cut`, of a host or a device array."""
        if self.flat == 1:
            return x
        shape, indices = self._grouped()
        rows = x[..., : math.prod(self.local)].reshape((*self.sizes, *self.local))  # without the padding
        order = [*indices, *(dim for dim in range(len(shape)) if dim not in indices)]
        return rows.transpose(sorted(range(len(shape)), key=order.__getitem__)).reshape(self.shape)

    @property
    def _dim(self) -> int | None:
        """The dimension that is split over the axis `over`."""
        return next((dim for dim, axis in self.dims if axis == self.over), None)

    @property
    def parts(self) -> int:
        """The number of devices of the axis `over` that the parameter is split over."""
        return self.flat * next(
            (size for (_, axis), size in zip(self.dims, self.sizes, strict=True) if axis == self.over), 1
        )

    def whole(self, shard: jax.Array) -> jax.Array:
        """Undoes the split over `over` by an all-gather. For use inside `shard_map`."""
        if self._dim is not None:
            return jax.lax.all_gather(shard, self.over, axis=self._dim, tiled=True)
        if self.flat == 1:
            return shard
        # Slice and reshape of `lax`, because the checkpoint in `sharded_step` recognizes these primitives by name.
        everything = jax.lax.all_gather(shard.reshape(-1), self.over, tiled=True)
        return jax.lax.reshape(jax.lax.slice(everything, (0,), (math.prod(self.local),)), self.local)

    def own(self, x: jax.Array) -> jax.Array:
        """This device's shard of an array that every device of `over` has. For use inside `shard_map`."""
        if self._dim is None:
            x = flattened(x, self.flat) if self.flat > 1 else x
        dim = self._dim or 0
        size = x.shape[dim] // self.parts if self.parts > 1 else 0
        return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(self.over) * size, size, dim) if size else x

    def sum(self, x: jax.Array) -> jax.Array:
        """This device's shard of the sum over `over`, by a reduce-scatter. For use inside `shard_map`."""
        if self._dim is None:
            x = flattened(x, self.flat) if self.flat > 1 else x
        if self.parts == 1:
            return x
        return jax.lax.psum_scatter(x, self.over, scatter_dimension=self._dim or 0, tiled=True)

    def mean(self, x: jax.Array) -> jax.Array:
        """This device's shard of the mean over `over`, by a reduce-scatter. For use inside `shard_map`."""
        return self.sum(x) / self.parts if self.parts > 1 else self.sum(x)

    @property
    def numbers(self) -> int:
        """The number of elements that `whole` gathers, including padding."""
        split = self.parts if self._dim is not None else 1
        return padded(math.prod(self.local) * split, self.flat)


def masked(tree: object) -> bool:
    """Whether a tree is the placeholder of `optax.masked` for parameters that the optimizer does not see."""
    return isinstance(tree, optax.MaskedNode)


def map_arrays(function: Callable[..., T], tree: object, *others: object) -> Tree[T]:
    """`jax.tree.map` over a tree with the structure of the parameters; masked parts stay as they are."""
    return jax.tree.map(lambda x, *o: x if masked(x) else function(x, *o), tree, *others, is_leaf=masked)


class Mirrored:
    """Divides a state into its parameters, the parts of the optimizer's state that mirror them (moments), and the rest.

    A part mirrors the parameters if it has their structure and shapes, except for masked arrays. also: a further
    condition on such a part.
    """

    def __init__(self, canonical: TrainState, also: Callable[[object], bool] | None = None):
        params = canonical.params

        def mirrors(tree: object) -> bool:
            structure: Any  # JAX's stubs do not have its methods
            arrays, structure = jax.tree.flatten(tree, is_leaf=masked)
            try:
                places = structure.flatten_up_to(params)
            except ValueError:  # another structure than the parameters
                return False
            like = (masked(x) or x.shape == getattr(at, "shape", None) for x, at in zip(arrays, places, strict=True))
            # Of masks alone there is nothing to lay out.
            return not all(map(masked, arrays)) and all(like) and (also is None or also(tree))

        parts: list[Any]
        self._outside: Any
        parts, self._outside = jax.tree.flatten(canonical.opt_state, is_leaf=mirrors)
        self._mirrors = [mirrors(part) for part in parts]

    def map(
        self,
        state: TrainState,
        params: Callable[[Any], Any],
        other: Callable[[Any], Any],
        moments: Callable[[Any], Any] | None = None,
    ) -> TrainState:
        """Applies a function to each group. moments: for the parts that mirror the parameters; None: as `params`."""
        moments, others = moments or params, partial(jax.tree.map, other)
        parts = zip(self._outside.flatten_up_to(state.opt_state), self._mirrors, strict=True)
        return TrainState(
            step=other(state.step),
            params=params(state.params),
            model_state=others(state.model_state),
            opt_state=self._outside.unflatten([moments(p) if mirrors else others(p) for p, mirrors in parts]),
            key=other(state.key),
        )

    def moments(self, state: TrainState) -> list[ArrayTree]:
        """The parts of the optimizer's state that mirror the parameters."""
        parts = zip(self._outside.flatten_up_to(state.opt_state), self._mirrors, strict=True)
        return [part for part, mirrors in parts if mirrors]


class Layout:
    """The layout of a workload's state.

    cuts: a tree of Cut with the structure of the parameters. moments: the same for the optimizer's moments; None: as
    the parameters.
    """

    def __init__(self, workload: TrainWorkload, cuts: Tree[Cut], moments: Tree[Cut] = None):
        self.canonical = canonical_avals(workload)
        self.params, self.cuts, self._moments = self.canonical.params, cuts, cuts if moments is None else moments
        self.mirrored = Mirrored(self.canonical)

    def cut(self, state: TrainState) -> TrainState:
        """Converts the canonical state to the global arrays."""
        return self._map(state, lambda x, cut: cut.cut(x), lambda x: x)

    def join_params(self, params: T) -> T:
        """`join` for parameters, or for their gradients."""
        return jax.tree.map(lambda x, cut: cut.join(x), params, self.cuts)

    def specs(self) -> TrainState:
        """A state-shaped tree of PartitionSpec."""
        return self._map(self.canonical, lambda _, cut: cut.spec, lambda _: PartitionSpec())

    def join(self, state: TrainState) -> TrainState:
        """From the global arrays to the canonical state. Inverse of `cut`."""
        return self._map(state, lambda x, cut: cut.join(x), lambda x: x)

    def export(self, state: TrainState) -> TrainState:
        """From global arrays to the canonical state, as host arrays."""
        return self.join(multihost.on_host(state))

    def _map(self, state: TrainState, of_array: Callable[[Any, Cut], Any], other: Callable[[Any], Any]) -> TrainState:
        """Applies `of_array` to each array with its cut, and `other` to leaves without one."""

        def by(cuts: Tree[Cut]) -> Callable[[Any], Any]:
            return lambda tree: map_arrays(of_array, tree, cuts)

        return self.mirrored.map(state, by(self.cuts), other, by(self._moments))


def canonical_avals(workload: TrainWorkload) -> TrainState:
    # Shapes only: the layout of a model that does not fit on one device must be known before any array of it exists.
    return jax.eval_shape(partial(create_state, workload), KEY)


def cuts(workload: TrainWorkload, sizes: Sizes) -> Tree[Cut]:
    """A tree of Cut with the structure of the parameters, for a mesh of `sizes`.

    Raises UserError for a dimension that does not divide, and for an axis that splits nothing of the model.
    """
    table = workload.partition.axes if workload.partition is not None else {}
    own_examples = workload.partition.own_examples if workload.partition is not None else ()
    summed = ("tensor",) if sizes.get("tensor", 1) > 1 else ()
    for axis in set(LIES_ON.values()) & {name for name, size in sizes.items() if size > 1}:
        if splits(workload.partition, axis):
            continue
        if workload.partition is None:
            raise Unsupported(f"'{workload.name}' does not declare what can be split over the axis {axis}; gpt does.")
        if axis == "expert":
            raise Unsupported(f"'{workload.name}' has no experts: use --config.model.experts=8, for example.")
        raise Unsupported(f"'{workload.name}' has nothing that can be split over the axis {axis}: use the axis data.")

    def split(name: str) -> list[tuple[int, str, str]]:
        """(dimension, logical axis, mesh axis) of each dimension of a parameter that this mesh splits."""
        # The table names parameters by patterns of their paths ("layers/*/up"), because a model may have any number of
        # layers.
        axes = next((axes for pattern, axes in table.items() if fnmatch.fnmatch(name, pattern)), ())
        return [(i, axis, LIES_ON[axis]) for i, axis in enumerate(axes) if axis and sizes.get(LIES_ON[axis], 1) > 1]

    canonical = canonical_avals(workload)
    # Frozen parameters are a part of the model's state, which is whole on every device. The layers around them expect a
    # device's part, and would add up the whole as often as there are devices.
    for name in paths(canonical.model_state["frozen"]) if is_frozen(canonical.model_state) else []:
        for _, _, axis in split(name):
            raise Unsupported(
                f"--config.lever.freeze keeps '{name}' whole on every device, but the axis {axis} splits it: use the "
                "axis data or fsdp, or freeze other parameters."
            )

    def cut(path: jax.tree_util.KeyPath, aval: jax.ShapeDtypeStruct) -> Cut:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        dims = split(name)
        for dim, logical, axis in dims:
            length, devices = aval.shape[dim], sizes[axis]
            if length % devices:
                # The message names a legal mesh and a legal size, so that the reader need not compute either.
                near = max(n for n in range(1, devices) if length % n == 0)
                raise UserError(
                    f"'{logical}' is {length}, which does not divide over {devices} devices of the mesh axis {axis}: "
                    f"use {axis}={near}, or a '{logical}' of {math.ceil(length / devices) * devices}, for example."
                )
        whole = Cut(
            aval.shape,
            tuple((dim, axis) for dim, _, axis in dims),
            tuple(sizes[axis] for _, _, axis in dims),
            summed=summed if any(fnmatch.fnmatch(name, pattern) for pattern in own_examples) else (),
        )
        return shared_out(whole, sizes.get("fsdp", 1))

    return jax.tree.map_with_path(cut, canonical.params)


def shared_out(cut: Cut, devices: int, over: str = "fsdp") -> Cut:
    """The parameter's Cut with a further split over `devices` devices of the axis `over`.

    The split is along the first unsplit dimension that divides. If there is none, the array is flattened.
    """
    taken, local = {dim for dim, _ in cut.dims}, cut.local
    dims = (dim for dim, length in enumerate(local) if dim not in taken and length and length % devices == 0)
    if devices == 1 or not math.prod(local):  # collectives refuse an array of no numbers
        return dataclasses.replace(cut, over=over)
    # Not flattened if a dimension divides: a TPU tiles the last two dimensions, so a flattened matrix is a second copy
    # in memory, and what is gathered from it was sent twice.
    if (dim := next(dims, None)) is None:
        return dataclasses.replace(cut, flat=devices, over=over)
    split = sorted([*zip(cut.dims, cut.sizes, strict=True), ((dim, over), devices)])  # `dims` is in order of dimensions
    names, sizes = zip(*split, strict=True)
    return dataclasses.replace(cut, dims=names, sizes=sizes, over=over)
