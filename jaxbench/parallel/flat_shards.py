# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Flat shards of equal size, one for each device of an axis, for arrays without a dimension that divides over devices.

ZeRO shards such arrays this way. The last shard is padded with zeros. A shard allows only elementwise work. An
optimizer that does more gets the whole array (see `optimizer_view`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def padded(size: int, parts: int) -> int:
    """`size` elements, rounded up to a multiple of `parts`."""
    return -(-size // parts) * parts


def cut(x: jax.Array, parts: int) -> jax.Array:
    """The elements row by row, padded with zeros to a multiple of `parts`: (padded,)."""
    return jnp.pad(x.reshape(-1), (0, padded(x.size, parts) - x.size))


def own_shard(x: jax.Array, axis: str) -> jax.Array:
    """This device's shard, (padded / parts,), of an array that every device has. For use inside a mapped function."""
    parts = jax.lax.axis_size(axis)
    flat = cut(x, parts)
    size = flat.size // parts
    return jax.lax.dynamic_slice_in_dim(flat, jax.lax.axis_index(axis) * size, size)


def mean_shard(x: jax.Array, axis: str) -> jax.Array:
    """This device's shard of the mean over devices, by a reduce-scatter. For use inside a mapped function."""
    parts = jax.lax.axis_size(axis)
    return jax.lax.psum_scatter(cut(x, parts), axis, tiled=True) / parts
