# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A click-through model: 26 categorical fields in one large embedding table, 13 numbers, and a perceptron on both.

It reads the fields of the Criteo data as DLRM does (Naumov et al., arXiv:1906.00091), without pairwise interactions and
with one table into which all fields are hashed. The gradient is dense: it is mostly zero, but every step communicates
it and updates the whole table. The purpose of this model is to show that cost.

Axes: B examples, N dense features, C categorical fields, D embedding width.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads.flops import dense
from jaxbench.workloads.models.per_device import rows

DENSE, FIELDS = 13, 26


class ClickThrough(nnx.Module):
    """{"dense": (B, N), "rows": (B, C) in [0, config.rows)} to logits (B, 2) of (no click, click).

    The first logit is 0, so the softmax of the two is the logistic function of the second.
    """

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `rows`, `embedding`, `width` and `depth`."""
        self.table = nnx.Param(0.01 * jax.random.normal(rngs.params(), (config.rows, config.embedding)))
        self.layers = nnx.List(nnx.Linear(i, o, rngs=rngs) for i, o in layer_sizes(config))

    def __call__(self, inputs: dict[str, jax.Array]) -> jax.Array:
        embedded_BCD = rows(self.table[...], inputs["rows"])
        x = jnp.concatenate([inputs["dense"], embedded_BCD.reshape(embedded_BCD.shape[0], -1)], axis=-1)
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        click_B1 = self.layers[-1](x)
        return jnp.concatenate([jnp.zeros_like(click_B1), click_B1], axis=-1)


def layer_sizes(config: ConfigDict) -> list[tuple[int, int]]:
    """(inputs, outputs) of each dense layer."""
    widths = [DENSE + FIELDS * config.embedding, *[config.width] * config.depth, 1]
    return list(zip(widths[:-1], widths[1:], strict=True))


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each dense layer, one example, without the lookup."""
    return [dense(i, o) for i, o in layer_sizes(config)]
