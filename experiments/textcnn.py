# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Convolutions over bytes of text, the baseline for the lstm on the same lines of Python's own sources (1 min).

    make run EXP=textcnn
    make train EXP=textcnn                                       # to 95 % accuracy on lines of unseen files
    make train EXP=textcnn ARGS=--config.data.path=reviews.csv   # columns text and label, or one folder per class

Expect it to reach its target in one or two epochs; the lstm needs several epochs for a lower target.

The model is that of Kim, "Convolutional Neural Networks for Sentence Classification", arXiv:1408.5882, on bytes in
place of words, with embeddings learned from scratch, zero padding, and no dropout.

Axes: B examples, T positions, D embedding width, F filters.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.discovery import load_experiment
from jaxbench.workloads import TrainWorkload
from jaxbench.workloads.flops import dense
from jaxbench.workloads.models.lstm import VOCAB
from jaxbench.workloads.models.sharded_layers import rows

base = load_experiment("lstm")
WINDOWS = 3, 4, 5


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


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 160, 16384
    config.model = ConfigDict({"length": 64, "embedding": 32, "filters": 100, "classes": 5})
    config.optimizer = ConfigDict({"name": "adam", "learning_rate": 1e-3})
    config.train = ConfigDict({"batch": 64, "epochs": 10, "target": 0.95})
    return config


def tiny(config: ConfigDict) -> ConfigDict:
    config.model.update({"length": 8, "embedding": 4, "filters": 4})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    return base.build(config, "textcnn", Classifier, layer_flops)
