# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The positions of a sequence that each device has if positions are split over devices.

Over the axis `context` of n devices a sequence is cut into 2 n equal chunks, and device i has chunks i and 2 n - 1 - i.
In causal attention a late chunk attends to many positions and an early chunk to few. Each device has one of each kind,
so all have equal work. Brandon et al., "Striped Attention", arXiv:2311.09431, describe the imbalance; the pairing is
that of Llama 3, arXiv:2407.21783, section 3.3.2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context


def require_even(positions: int, *, context: int = 1, sequence: int = 1) -> None:
    """Raises UserError unless `positions` can be split over `context` and over `sequence` devices."""
    for axis, devices, chunks in (("context", context, 2 * context), ("tensor", sequence, sequence)):
        if devices > 1 and positions % chunks:
            near = max(chunks, round(positions / chunks) * chunks)
            raise UserError(
                f"{positions} positions cannot be split over {devices} devices of the axis {axis}, which need "
                f"{chunks} equal chunks: use --config.model.context={near}, for example."
            )


def local(x: jax.Array, axis: int = 1) -> jax.Array:
    """This device's chunks of an array with whole sequences along `axis`; `x` itself if positions are not split."""
    name = sharding_context.current().context
    if name is None:
        return x
    devices, index = jax.lax.axis_size(name), jax.lax.axis_index(name)
    size = x.shape[axis] // (2 * devices)
    early = jax.lax.dynamic_slice_in_dim(x, index * size, size, axis)
    late = jax.lax.dynamic_slice_in_dim(x, (2 * devices - 1 - index) * size, size, axis)
    return jnp.concatenate([early, late], axis)


def global_count(local_positions: int) -> int:
    """The length of the whole sequence if a device has `local_positions` of its positions."""
    name = sharding_context.current().context
    return local_positions * (1 if name is None else jax.lax.axis_size(name))


def sequence_shard(x: jax.Array, axis: int = 1) -> jax.Array:
    """This device's part of `x` under sequence parallelism (between tensor-parallel products), otherwise `x`."""
    context = sharding_context.current()
    if not context.sequence or context.tensor is None:
        return x
    size = x.shape[axis] // jax.lax.axis_size(context.tensor)
    return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(context.tensor) * size, size, axis)
