# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Batch normalization with per-device or global statistics.

Ioffe and Szegedy, arXiv:1502.03167. On several devices, "the batch" can be the whole batch or the part of one device.
Without an explicit choice the strategy would decide: the whole batch under `jit`, the part of a device under
`shard_map`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads import sharding_context

STATISTICS = ("device", "global")


class BatchNorm(nnx.Module):
    """Normalizes the last axis by the mean and variance over all others: (batch, ..., features), at least two axes.

    Statistics and arithmetic are float32; the result has the input's dtype. The running statistics move by
    1 - `momentum` in each step. Their variance is the biased variance (divided by n, not n - 1).
    """

    def __init__(
        self,
        features: int,
        *,
        statistics: str,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        scale: float = 1.0,
        rngs: nnx.Rngs | None = None,
    ):
        """statistics: "device", over each device's own examples, without communication; "global", over all examples of
        the step, with two small all-reduces. Raises UserError for any other value.
        scale: initial value of the learned scale.
        rngs: unused, accepted like by other layers.
        """
        if statistics not in STATISTICS:
            raise UserError(f"there are no statistics '{statistics}': {did_you_mean(statistics, STATISTICS)}")
        self.scale = nnx.Param(jnp.full(features, scale))
        self.bias = nnx.Param(jnp.zeros(features))
        self.mean = nnx.BatchStat(jnp.zeros(features))
        self.variance = nnx.BatchStat(jnp.ones(features))
        self.statistics, self.momentum, self.epsilon = statistics, momentum, epsilon
        self.use_running_average = False  # nnx's eval() sets it

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.use_running_average:
            return self._normalized(x, self.mean[...], self.variance[...])
        context = sharding_context.current()
        if self.statistics == "device" and context.parts > 1:
            # Each contiguous group of a sharded batch is on one device, so this needs no communication.
            groups = x.reshape(context.parts, x.shape[0] // context.parts, *x.shape[1:])
            return self._by_group(groups, leading=1, axis=None).reshape(x.shape)
        return self._by_group(x, leading=0, axis=context.axis if self.statistics == "global" else None)

    def _by_group(self, x: jax.Array, *, leading: int, axis: str | tuple[str, ...] | None) -> jax.Array:
        """Normalizes each group along the `leading` axes separately, and updates the running statistics."""
        mean, variance = moments(x, over=tuple(range(leading, x.ndim - 1)), axis=axis)
        self._update(self.mean, mean)
        self._update(self.variance, variance)
        return self._normalized(x, mean, variance)

    def _update(self, running: nnx.BatchStat, value: jax.Array) -> None:
        """Updates with the mean over groups, which equals the average of per-device running statistics."""
        value = jnp.mean(value, axis=tuple(range(value.ndim - 1)))
        running.set_value(self.momentum * running[...] + (1 - self.momentum) * jax.lax.stop_gradient(value))

    def _normalized(self, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        slope = jax.lax.rsqrt(variance + self.epsilon) * self.scale[...].astype(jnp.float32)
        y = (x.astype(jnp.float32) - mean) * slope + self.bias[...].astype(jnp.float32)
        return y.astype(x.dtype)


def moments(x: jax.Array, *, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> tuple[jax.Array, jax.Array]:
    """Mean and variance in float32 over the axes `over` (kept, of length 1) and over the devices of a mapped `axis`.

    In two passes: the mean of squares minus the square of the mean would lose all digits of a small variance around a
    large mean.
    """
    x = x.astype(jnp.float32)
    mean = _mean(x, over, axis)
    return mean, _mean(jnp.square(x - mean), over, axis)


def _mean(x: jax.Array, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> jax.Array:
    mean = jnp.mean(x, axis=over, keepdims=True)
    return mean if axis is None else jax.lax.pmean(mean, axis)
