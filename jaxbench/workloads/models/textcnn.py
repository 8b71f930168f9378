# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A convolutional classifier of byte strings, with max-pooling over all positions.

Kim, "Convolutional Neural Networks for Sentence Classification", arXiv:1408.5882, on bytes in place of words, with
embeddings learned from scratch, zero padding, and no dropout.

Axes: B examples, T positions, D embedding width, F filters.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads.flops import dense
from jaxbench.workloads.models.per_device import rows

VOCAB, WINDOWS = 256, (3, 4, 5)


class Classifier(nnx.Module):
    """Bytes (B, T), padded with 0, to logits (B, classes)."""

    def __init__(self, config: ConfigDict, rngs: nnx.Rngs):
        """config: has `embedding`, `filters` (of each window) and `classes`."""
        self.embedding = nnx.Param(0.1 * jax.random.normal(rngs.params(), (VOCAB, config.embedding)))
        self.convolutions = nnx.List(
            nnx.Conv(config.embedding, config.filters, (window,), padding="SAME", rngs=rngs) for window in WINDOWS
        )
        self.logits = nnx.Linear(len(WINDOWS) * config.filters, config.classes, rngs=rngs)

    def __call__(self, tokens_BT: jax.Array) -> jax.Array:
        x_BTD = rows(self.embedding[...], tokens_BT)
        pooled_BF = [jnp.max(nnx.relu(convolution(x_BTD)), axis=1) for convolution in self.convolutions]
        return self.logits(jnp.concatenate(pooled_BF, axis=-1))


def layer_flops(config: ConfigDict) -> list[float]:
    """Forward FLOPs of each convolution and of the logits, one example, without the lookup."""
    convolutions = [config.length * dense(window * config.embedding, config.filters) for window in WINDOWS]
    return [*convolutions, dense(len(WINDOWS) * config.filters, config.classes)]
