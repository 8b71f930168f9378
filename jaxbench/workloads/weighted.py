# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Means over unequal numbers of things, such as over the real tokens of padded sequences.

The mean of parts' means is not the mean of the whole where the parts weigh differently. So a loss returns its total and
its weight apart, and whoever holds parts adds up both before dividing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WeightedMean:
    """total / weight over the examples given, both scalars. A weight of 0 makes it 0: nothing was there to be judged.

    The weight must not depend on parameters: its gradient is not taken.
    """

    total: jax.Array
    weight: jax.Array

    @property
    def mean(self) -> jax.Array:
        return divided(self.total, self.weight)


def mean(values: jax.Array, weights: jax.Array | None = None) -> jax.Array | WeightedMean:
    """The mean of `values`; with weights of the same shape, 0 for what does not count, a WeightedMean.

    Raises UserError where the shapes differ.
    """
    if weights is None:
        return jnp.mean(values)
    if weights.shape != values.shape:
        raise UserError(
            f"the weights have the shape {weights.shape} and what they weigh {values.shape}: give one weight for each "
            "value (for the tokens of a mask (B, T + 1), those that are predicted are mask[:, 1:])."
        )
    weights = weights.astype(jnp.float32)
    return WeightedMean(jnp.sum(values * weights), jnp.sum(weights))


def divided(total: Any, weight: jax.Array) -> Any:
    """`total`, an array, by a weight that may be 0."""
    return (total / jnp.where(weight == 0, 1, weight).astype(total.dtype)).astype(total.dtype)


def value(mean: Any) -> Any:
    """The number that a loss or a metric is: itself, or the mean of a WeightedMean."""
    return mean.mean if isinstance(mean, WeightedMean) else mean


def floats(tree: Any) -> Any:
    """`tree` with weights that can be averaged: a count of tokens is often an integer."""

    def made(x: Any) -> Any:
        return WeightedMean(x.total, x.weight.astype(jnp.float32)) if is_weighted(x) else x

    return jax.tree.map(made, tree, is_leaf=is_weighted)


def is_weighted(x: Any) -> bool:
    return isinstance(x, WeightedMean)


def settled(tree: Any, over: Callable[[jax.Array], jax.Array]) -> Any:
    """`tree` with each WeightedMean as total / over(weight): where `over` gives the mean of a weight over devices, the
    mean over devices of what is returned is the mean of the whole."""
    weights: dict[int, jax.Array] = {}  # several metrics often share one, which then travels once

    def settle(x: Any) -> Any:
        if not is_weighted(x):
            return x
        if id(x.weight) not in weights:
            weights[id(x.weight)] = over(x.weight)
        return divided(x.total, weights[id(x.weight)])

    return jax.tree.map(settle, tree, is_leaf=is_weighted)


class Means:
    """Means over all examples of metrics that are found a chunk of examples at a time. Host numbers."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._weights: dict[str, float] = {}

    def add(self, metrics: dict[str, Any], examples: int) -> None:
        """metrics: of so many examples. The accuracy of a plain mean is a whole number of right answers."""
        for name, found in metrics.items():
            if is_weighted(found):
                total, weight = float(np.asarray(found.total)), float(np.asarray(found.weight))
            else:
                total, weight = float(np.asarray(found)) * examples, float(examples)
                total = round(total) if name == "accuracy" else total
            self._totals[name] = self._totals.get(name, 0.0) + total
            self._weights[name] = self._weights.get(name, 0.0) + weight

    def means(self) -> dict[str, float]:
        return {name: total / (self._weights[name] or 1.0) for name, total in self._totals.items()}
