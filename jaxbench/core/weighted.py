# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Weighted means, such as over the real tokens of padded sequences.

The mean of the means of parts is not the mean of the whole if the parts have different weights. So a loss returns its
total and its weight separately, and both are summed over parts before the division.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WeightedMean:
    """total / weight over the given examples, both scalars. With a weight of 0 it is 0.

    The weight must not depend on parameters: its gradient is not taken.
    """

    total: jax.Array
    weight: jax.Array

    @property
    def mean(self) -> jax.Array:
        return divided(self.total, self.weight)


def mean(values: jax.Array, weights: jax.Array | None = None) -> jax.Array | WeightedMean:
    """The mean of `values`; with weights of the same shape, a WeightedMean.

    Raises UserError where the shapes differ.
    """
    if weights is None:
        return jnp.mean(values)
    if weights.shape != values.shape:
        raise UserError(
            f"the weights have the shape {weights.shape} and the values {values.shape}: give one weight per value (of "
            "a token mask (B, T + 1), the weights of the predicted tokens are mask[:, 1:])."
        )
    weights = weights.astype(jnp.float32)  # a mask may be boolean, and a long sum in 16 bits is inexact
    return WeightedMean(jnp.sum(values * weights), jnp.sum(weights))


def divided(total: jax.Array, weight: jax.Array) -> jax.Array:
    """total / weight, or `total` if the weight is 0."""
    # A division by 0 would give NaN, also in the gradient. With a weight of 0 the total is 0 too.
    return (total / jnp.where(weight == 0, 1, weight).astype(total.dtype)).astype(total.dtype)


def value(mean: jax.Array | WeightedMean) -> jax.Array:
    """A loss or a metric as one number: itself, or the mean of a WeightedMean."""
    return mean.mean if isinstance(mean, WeightedMean) else mean


def float_weights(tree: T) -> T:
    """`tree` with float32 weights: a count of tokens is often an integer, which cannot be averaged."""

    def cast(x: object) -> object:
        return WeightedMean(x.total, x.weight.astype(jnp.float32)) if isinstance(x, WeightedMean) else x

    return jax.tree.map(cast, tree, is_leaf=is_weighted)


def is_weighted(x: object) -> TypeGuard[WeightedMean]:
    return isinstance(x, WeightedMean)


def normalized(
    metrics: Mapping[str, jax.Array | WeightedMean], over: Callable[[jax.Array], jax.Array]
) -> dict[str, jax.Array]:
    """`metrics` with each WeightedMean as total / over(weight).

    over: weight -> the mean weight w of n devices. The mean of the results over devices is then the weighted mean of
    the whole batch: (1 / n) sum(total_i / w) = sum(total_i) / sum(weight_i).
    """
    weights: dict[int, jax.Array] = {}  # metrics often share a weight, which is then sent once

    def normalize(x: jax.Array | WeightedMean) -> jax.Array:
        if not isinstance(x, WeightedMean):
            return x
        if id(x.weight) not in weights:
            weights[id(x.weight)] = over(x.weight)
        return divided(x.total, weights[id(x.weight)])

    return {name: normalize(metric) for name, metric in metrics.items()}


class Means:
    """Accumulates metrics of chunks of examples into means over all examples, on the host."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._weights: dict[str, float] = {}

    def add(self, metrics: Mapping[str, jax.Array | np.ndarray | WeightedMean], examples: int) -> None:
        """Adds the metrics of `examples` examples. The total of a plain accuracy is a whole number of right answers."""
        for name, metric in metrics.items():
            if isinstance(metric, WeightedMean):
                total, weight = float(np.asarray(metric.total)), float(np.asarray(metric.weight))
            else:
                total, weight = float(np.asarray(metric)) * examples, float(examples)
                total = round(total) if name == "accuracy" else total  # undoes the rounding of the float32 mean
            self._totals[name] = self._totals.get(name, 0.0) + total
            self._weights[name] = self._weights.get(name, 0.0) + weight

    def means(self) -> dict[str, float]:
        return {name: total / (self._weights[name] or 1.0) for name, total in self._totals.items()}
