# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Arrays as flat shards of equal size, one for each device of an axis: what ZeRO leaves of an array on a device.

Flat, so that every array can be cut whatever its shape; the last shard is filled up with zeros. What is done to a shard
must then be element by element, as all optimizers of the suite are.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads.base import PyTree

# The least bytes of a number on the wire: XLA's CPU compiler sends some of what has 16 bits as 32.
WIDENED = {"cpu": 4}
_NO_PARAMETER_HAS = (3, 1, 4, 1, 5, 9)


def padded(size: int, parts: int) -> int:
    """The elements of an array of `size` elements that is cut into `parts`."""
    return -(-size // parts) * parts


def cut(x: jax.Array, parts: int) -> jax.Array:
    """The elements row by row, filled up with zeros to a multiple of `parts`: (padded,)."""
    return jnp.pad(x.reshape(-1), (0, padded(x.size, parts) - x.size))


def joined(flat: Any, shape: tuple[int, ...]) -> Any:
    """Inverse of `cut`, of a NumPy or JAX array: (padded,) to `shape`."""
    return flat[: math.prod(shape)].reshape(shape)


def own_shard(x: jax.Array, axis: str) -> jax.Array:
    """Inside a mapped function: this device's shard of an array that each device has, (padded / parts,)."""
    parts = jax.lax.axis_size(axis)
    flat = cut(x, parts)
    size = flat.size // parts
    return jax.lax.dynamic_slice_in_dim(flat, jax.lax.axis_index(axis) * size, size)


def gathered(shard: jax.Array, shape: tuple[int, ...], axis: str) -> jax.Array:
    """Inside a mapped function: the whole array, by an all-gather of its shards."""
    return joined(jax.lax.all_gather(shard, axis, tiled=True), shape)


def mean_shard(x: jax.Array, axis: str) -> jax.Array:
    """Inside a mapped function: this device's shard of the mean over devices, by a reduce-scatter."""
    parts = jax.lax.axis_size(axis)
    return jax.lax.psum_scatter(cut(x, parts), axis, tiled=True) / parts


def like_parameters(optimizer: optax.GradientTransformation, params: PyTree) -> PyTree:
    """For each leaf of the optimizer's state, whether there is one of it for each parameter (moments) or not (counts).

    `params`: avals. Found by asking for the state of parameters of a shape that nothing else has.
    """
    probe = jax.tree.map(lambda p: jax.ShapeDtypeStruct(_NO_PARAMETER_HAS, p.dtype), params)
    return jax.tree.map(lambda leaf: leaf.shape == _NO_PARAMETER_HAS, jax.eval_shape(optimizer.init, probe))


def restore(tree: PyTree, avals: PyTree, are_cut: PyTree) -> PyTree:
    """Host arrays of canonical shape; `are_cut` says which leaves of `tree` are flat."""
    return jax.tree.map(
        lambda x, aval, is_cut: joined(np.asarray(x), aval.shape) if is_cut else np.asarray(x), tree, avals, are_cut
    )
