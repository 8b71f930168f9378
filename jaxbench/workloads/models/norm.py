# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Batch normalisation that says whose examples its statistics are of.

Ioffe and Szegedy, arXiv:1502.03167. On several devices "the batch" has two meanings, two different functions that
strategies would otherwise choose by accident (the whole batch under `jit`, a device's part under `shard_map`): so it is
a choice.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads import sharding_context

STATISTICS = ("device", "global")


class BatchNorm(nnx.Module):
    """Normalises the last axis by the mean and variance over all others: (batch, ..., features), at least two axes.

    Statistics and arithmetic are float32 whatever the input is; the result has the input's dtype. The running
    statistics move by 1 - `momentum` a step. Their variance is the one that normalises (divided by n, not n - 1).
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
        """statistics: "device", of each device's own examples, which needs no communication; "global", of all examples
        of the step, which costs two small all-reduces. Raises UserError for another word.
        scale: what the learned scale starts with.
        rngs: taken as by other layers, and not used.
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
            return self._normalised(x, self.mean[...], self.variance[...])
        lies = sharding_context.current()
        if self.statistics == "device" and lies.parts > 1:
            # Contiguous groups of a batch that is split over devices lie whole on one each: nothing is communicated.
            groups = x.reshape(lies.parts, x.shape[0] // lies.parts, *x.shape[1:])
            return self._by_its_own(groups, leading=1, axis=None).reshape(x.shape)
        return self._by_its_own(x, leading=0, axis=lies.axis if self.statistics == "global" else None)

    def _by_its_own(self, x: jax.Array, *, leading: int, axis: str | tuple[str, ...] | None) -> jax.Array:
        """Normalises each of the groups along the `leading` axes by itself, and moves the running statistics."""
        mean, variance = moments(x, over=tuple(range(leading, x.ndim - 1)), axis=axis)
        self._move(self.mean, mean)
        self._move(self.variance, variance)
        return self._normalised(x, mean, variance)

    def _move(self, running: nnx.BatchStat, value: jax.Array) -> None:
        """By the mean over groups, which is what averaging the devices' own running statistics gives."""
        value = jnp.mean(value, axis=tuple(range(value.ndim - 1)))
        running.set_value(self.momentum * running[...] + (1 - self.momentum) * jax.lax.stop_gradient(value))

    def _normalised(self, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
        slope = jax.lax.rsqrt(variance + self.epsilon) * self.scale[...].astype(jnp.float32)
        y = (x.astype(jnp.float32) - mean) * slope + self.bias[...].astype(jnp.float32)
        return y.astype(x.dtype)


def moments(x: jax.Array, *, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> tuple[jax.Array, jax.Array]:
    """Mean and variance in float32 over the axes `over` (kept, of length 1) and over the devices of a mapped `axis`.

    In two passes: the mean of squares less the square of the mean would lose all digits of a small variance about a
    large mean.
    """
    x = x.astype(jnp.float32)
    mean = _mean(x, over, axis)
    return mean, _mean(jnp.square(x - mean), over, axis)


def _mean(x: jax.Array, over: tuple[int, ...], axis: str | tuple[str, ...] | None) -> jax.Array:
    mean = jnp.mean(x, axis=over, keepdims=True)
    return mean if axis is None else jax.lax.pmean(mean, axis)
