# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses that fit the TrainWorkload doorway: a mean over the examples they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads.adapters import PureModel


def classification(model: PureModel, *, inputs: str = "image", labels: str = "label") -> Callable[..., Any]:
    """Softmax cross-entropy and accuracy of a model that maps ``batch[inputs]`` to logits (batch, classes).

    The log-likelihood is picked by a one-hot product, not by indexing: it keeps a batch that is split over devices
    split (a gather over a sharded axis would have to say how), and costs nothing next to the model. The arithmetic of
    the loss is float32 whatever the model computes in.
    """

    def loss(params: Any, model_state: Any, batch: Any, key: jax.Array) -> Any:
        del key
        logits, model_state = model.apply(params, model_state, batch[inputs])
        logits = logits.astype(jnp.float32)
        target = jax.nn.one_hot(batch[labels], logits.shape[-1], dtype=jnp.float32)
        cross_entropy = -jnp.sum(target * jax.nn.log_softmax(logits), axis=-1)
        correct = jnp.argmax(logits, axis=-1) == batch[labels]
        return jnp.mean(cross_entropy), (model_state, {"accuracy": jnp.mean(correct.astype(jnp.float32))})

    return loss
