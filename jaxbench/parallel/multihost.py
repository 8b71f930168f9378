# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Makes arrays with shards in several processes from host arrays, and reads them back.

In one process this is `jax.device_put` and `numpy.asarray`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from jaxbench.core.program import Shardings
from jaxbench.errors import of_kind, present
from jaxbench.parallel.step import jit_once


@dataclass(frozen=True)
class Rows:
    """Some rows of a host array. A process reads only the rows that its devices need.

    numbers: the indices of the rows, in any shape, which replaces the leading axis of `array`.
    """

    array: np.ndarray
    numbers: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.numbers.shape, *self.array.shape[1:])

    def reshape(self, *shape: int) -> Rows:
        """Reshapes the row indices; the other axes do not change."""
        leading = len(shape) - self.array.ndim + 1
        return Rows(self.array, self.numbers.reshape(shape[:leading]))

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        """index: a slice for each axis."""
        numbers = self.numbers[index[: self.numbers.ndim]]
        others = index[self.numbers.ndim :]
        return self.array[numbers][(*(slice(None),) * numbers.ndim, *others)]

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.asarray(self.array[self.numbers], *args, **kwargs)


def put(tree: object, sharding: Shardings, *, may_alias: bool | None = None) -> Any:
    """Lays out arrays over the devices of `sharding`, a sharding or a tree of them.

    Every process has the whole arrays, or `Rows`, and reads the part for its own devices.
    """

    def each(x: jax.Array | np.ndarray | Rows, on: Sharding) -> jax.Array:
        if isinstance(x, jax.core.Tracer):
            return x  # only its shape is asked for
        host = x if isinstance(x, Rows) else np.asarray(x)  # `Rows` reads only what a device needs
        return jax.make_array_from_callback(host.shape, on, lambda index: np.array(host[present(index)]))

    shardings = jax.tree.broadcast(sharding, tree)
    if all(on.is_fully_addressable for on in jax.tree.leaves(shardings)):
        whole = jax.tree.map(lambda x: np.asarray(x) if isinstance(x, Rows) else x, tree)
        return jax.device_put(whole, sharding, may_alias=may_alias)
    # `jax.device_put` would compare the values of all processes. That is a collective, and a feed's thread would run it
    # at any moment, between the collectives of a step.
    return jax.tree.map(each, tree, shardings)


def on_host(tree: object) -> Any:
    """The tree as host arrays. All processes that own a shard must call this together."""

    def whole(x: jax.Array | np.ndarray) -> np.ndarray:
        if isinstance(x, jax.Array) and not (x.is_fully_addressable or x.is_fully_replicated):
            # One by one, so that no device holds more than one whole array at a time.
            mesh = of_kind(NamedSharding, x.sharding).mesh
            x = jit_once(_same, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)
        return np.asarray(x)

    return jax.tree.map(whole, tree)


def _same(x: jax.Array) -> jax.Array:
    """The identity, as one function for all calls, so that equal arrays share a program."""
    return x


def with_shards(x: jax.Array) -> jax.Array:
    """`x`, or a copy if its shards cannot be listed.

    `jax.device_put` of a `jax.Array` onto devices of several processes makes such arrays (JAX 0.10.2 to 0.12.0.1):
    steps take them, but `addressable_shards` raises.
    """
    if x.is_fully_addressable or not x.is_fully_replicated:
        return x
    return put(np.asarray(x), x.sharding)


def here(x: jax.Array | np.ndarray) -> np.ndarray:
    """The shard of an array on the first device of this process, as a host array."""
    return np.asarray(x.addressable_shards[0].data if isinstance(x, jax.Array) else x)


def first_here(devices: Iterable[jax.Device]) -> jax.Device:
    """The first of the devices that this process owns; the first of all if it owns none (absent hardware)."""
    first, *_ = devices = list(devices)
    return next((device for device in devices if device.process_index == jax.process_index()), first)
