# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""CLIP's contrastive loss over the global batch.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", arXiv:2103.00020, figure 3. It
compares examples with each other: the mean of the losses of each device's examples would be another loss.

Axes: B examples given, G of the global batch, D width, C columns of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.base import Batch, Metrics, PyTree
from jaxbench.workloads.examples import gathered
from jaxbench.workloads.losses import given


def contrastive(
    model: PureModel, *, inputs: tuple[str, str], columns: int = 0, remat: str = "none"
) -> Callable[..., Any]:
    """The loss of a model that maps a dictionary of the fields `inputs` to (x_BD, y_BD, scale).

    x_BD and y_BD are unit features of both kinds; scale is the factor (inverse temperature) of their products.

    A device compares its examples with all others, which is B x G products of each kind. It gathers the features of all
    examples, not the examples. columns: the number of columns of the similarity matrix that are computed at a time if
    the lever `remat` is block.

    The loss raises UserError, when it is first traced, for any `remat` but none and block.
    """

    def loss(params: PyTree, model_state: PyTree, batch: Batch, key: jax.Array) -> tuple[jax.Array, Any]:
        held = _held(remat, columns)
        (x_BD, y_BD, scale), model_state = model.apply(params, model_state, given(batch, inputs), key)
        own_B = scale * jnp.sum(x_BD.astype(jnp.float32) * y_BD.astype(jnp.float32), axis=-1)
        others_B = log_sums(scale * x_BD, gathered(y_BD), held) + log_sums(scale * y_BD, gathered(x_BD), held)
        return jnp.mean(others_B / 2 - own_B), (model_state, {})

    return loss


def _held(remat: str, columns: int) -> int:
    """The number of columns at a time, 0 for all. Checked while tracing, since a config may list several values."""
    if remat not in ("none", "block"):
        raise UserError(
            f"--config.lever.remat={remat} does not apply to a contrastive loss, which computes its similarity "
            "matrix whole or in blocks: use none or block."
        )
    return columns if remat == "block" else 0


def log_sums(x_BD: jax.Array, y_GD: jax.Array, columns: int = 0) -> jax.Array:
    """log of sum over g of exp(<x_b, y_g>), float32 (B,).

    It is computed in blocks of at most `columns` columns, with a running sum scaled by the largest product so far
    (Milakov and Gimelshein, arXiv:1805.02867). The backward pass recomputes each block. The size of a block divides the
    examples of one device, because XLA would gather a block that spans devices once more.
    """
    if not columns:
        return jax.nn.logsumexp((x_BD @ y_GD.T).astype(jnp.float32), axis=-1)

    @jax.checkpoint
    def add(so_far: tuple[jax.Array, jax.Array], y_CD: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        most_B, sum_B = so_far
        products_BC = (x_BD @ y_CD.T).astype(jnp.float32)
        more_B = jnp.maximum(most_B, jnp.max(jax.lax.stop_gradient(products_BC), axis=-1))
        sum_B = sum_B * jnp.exp(most_B - more_B) + jnp.sum(jnp.exp(products_BC - more_B[:, None]), axis=-1)
        return (more_B, sum_B), None

    own = len(x_BD) // sharding_context.current().parts
    held = max(size for size in range(1, min(columns, own) + 1) if own % size == 0)
    nothing_B = jnp.zeros_like(x_BD[:, 0], jnp.float32)
    (most_B, sum_B), _ = jax.lax.scan(add, (nothing_B - jnp.inf, nothing_B), y_GD.reshape(-1, held, y_GD.shape[1]))
    return most_B + jnp.log(sum_B)


def retrieval(model: PureModel, *, inputs: tuple[str, str]) -> Callable[..., Metrics]:
    """The `evaluate` of a TrainWorkload: the loss and "accuracy".

    The accuracy is how often the nearest example of the second kind has the same label as the example of the first.
    """

    def evaluate(params: PyTree, model_state: PyTree, batch: Batch) -> Metrics:
        x_BD, y_BD, scale = model.predict(params, model_state, given(batch, inputs))
        products_BB = scale * (x_BD @ y_BD.T).astype(jnp.float32)
        both_B = jax.nn.logsumexp(products_BB, axis=0) + jax.nn.logsumexp(products_BB, axis=1)
        nearest_B = batch["label"][jnp.argmax(products_BB, axis=1)]
        right_B = (nearest_B == batch["label"]).astype(jnp.float32)
        return {"loss": jnp.mean(both_B / 2 - jnp.diagonal(products_BB)), "accuracy": jnp.mean(right_B)}

    return evaluate
