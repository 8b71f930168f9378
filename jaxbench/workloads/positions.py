# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which positions of a sequence a device holds, where these are split over devices.

Over the axis `context` of n devices a sequence is cut into 2 n equal chunks, and device i holds chunk i and chunk
2 n - 1 - i. In causal attention a late chunk attends to many and an early one to few; so each device has one of each,
and all have the same work (Brandon et al., "Striped Attention", arXiv:2311.09431, name the imbalance; the order by
pairs is Llama 3's, arXiv:2407.21783, section 3.3.2).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context


def require_even(positions: int, *, context: int = 1, sequence: int = 1) -> None:
    """Raises UserError unless `positions` can be split over so many devices."""
    for axis, devices, chunks in (("context", context, 2 * context), ("tensor", sequence, sequence)):
        if devices > 1 and positions % chunks:
            near = max(chunks, round(positions / chunks) * chunks)
            raise UserError(
                f"{positions} positions cannot be split over {devices} devices of the axis {axis}, which need "
                f"{chunks} equal chunks: use --config.model.context={near}, for example."
            )


def held(x: jax.Array, axis: int = 1) -> jax.Array:
    """This device's part of an array with whole sequences along `axis`: the chunks that lie on it; all if none are
    split."""
    name = sharding_context.current().context
    if name is None:
        return x
    devices, me = jax.lax.axis_size(name), jax.lax.axis_index(name)
    size = x.shape[axis] // (2 * devices)
    early = jax.lax.dynamic_slice_in_dim(x, me * size, size, axis)
    late = jax.lax.dynamic_slice_in_dim(x, (2 * devices - 1 - me) * size, size, axis)
    return jnp.concatenate([early, late], axis)


def count(held_positions: int) -> int:
    """The positions of the whole sequence of which a device holds so many."""
    name = sharding_context.current().context
    return held_positions * (1 if name is None else jax.lax.axis_size(name))


def between_products(x: jax.Array, axis: int = 1) -> jax.Array:
    """This device's part of `x` where positions are split between the split products, else `x`."""
    where = sharding_context.current()
    if not where.sequence or where.tensor is None:
        return x
    size = x.shape[axis] // jax.lax.axis_size(where.tensor)
    return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(where.tensor) * size, size, axis)
