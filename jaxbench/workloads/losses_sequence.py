# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses of sequence models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.errors import UserError
from jaxbench.workloads import positions, sharding_context, weighted
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.base import Batch, Metrics, PyTree
from jaxbench.workloads.weighted import WeightedMean


def next_token(
    model: PureModel,
    *,
    tokens: str = "tokens",
    weights: str | None = None,
    penalty: Callable[[PyTree], tuple[jax.Array, Metrics]] | None = None,
) -> Callable[..., Any]:
    """Cross-entropy (natural logarithm) and accuracy of logits (B, T, V) for ``batch[tokens]``, integers (B, T + 1).

    The model reads the first T tokens and predicts the last T, or those of the last T on this device. The arithmetic is
    float32.

    weights: the field with the weight of each of the last T tokens, (B, T). Loss and accuracy are then WeightedMeans,
      and "real_share", the share of tokens with a weight other than 0, is a further metric.
    penalty: model state -> (a term that the model adds to the loss, further metrics).

    Raises:
      UserError: both weights and a penalty, which is a mean over sequences and cannot be added to a weighted mean.
    """
    if weights is not None and penalty is not None:
        raise UserError(
            "a mixture of experts adds a mean over sequences to the loss, which cannot be added to a mean over real "
            "tokens: use --config.model.experts=0, or --config.data.pad='' without padding."
        )

    def loss(params: Any, model_state: Any, batch: Batch, key: jax.Array) -> Any:
        logits, model_state = model.apply(params, model_state, positions.local(batch[tokens][:, :-1]), key)
        value, metrics = score(logits, batch, tokens=tokens, weights=weights)
        if penalty is not None:
            assert not isinstance(value, WeightedMean)  # refused above
            more, further = penalty(model_state)
            value, metrics = value + more, metrics | further
        return value, (model_state, metrics)

    return loss


def score(
    logits_BTV: jax.Array, batch: Batch, *, tokens: str = "tokens", weights: str | None = None
) -> tuple[jax.Array | WeightedMean, Metrics]:
    """(mean cross-entropy, metrics) of a device's logits for the last T of ``batch[tokens]``.

    weights: as in `next_token`.
    """
    loss_BT, hit_BT = per_position(logits_BTV, positions.local(batch[tokens][:, 1:]))
    if weights is None:
        return jnp.mean(loss_BT), {"accuracy": jnp.mean(hit_BT)}
    weight_BT = positions.local(batch[weights]).astype(jnp.float32)
    real_share = jnp.mean((weight_BT != 0).astype(jnp.float32))
    loss, accuracy = weighted.mean(loss_BT, weight_BT), weighted.mean(hit_BT, weight_BT)
    return loss, {"accuracy": accuracy, "real_share": real_share}


def per_position(logits_BTV: jax.Array, next_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cross-entropy, 1 where the first largest logit is the next token's, else 0), both float32 (B, T).

    A comparison, not indexing, selects the next token's logit: a sharded batch stays sharded, and the comparison fuses
    into the sum. Two plain reductions find the largest logit, because a CPU vectorizes them but not `argmax`.

    If the vocabulary is split over devices, each device has the logits of its part. The devices exchange four numbers
    for each position, but no logits.
    """
    logits_BTV = logits_BTV.astype(jnp.float32)
    axis, vocab = sharding_context.current().tensor, logits_BTV.shape[-1]
    number_BTV = jax.lax.broadcasted_iota(jnp.int32, logits_BTV.shape, 2)
    if axis is not None:
        number_BTV = number_BTV + jax.lax.axis_index(axis) * vocab
        vocab *= jax.lax.axis_size(axis)
    picked_BT = jnp.sum(jnp.where(number_BTV == next_BT[..., None], logits_BTV, 0.0), axis=-1)
    most_BT = _over_parts(jax.lax.pmax, jnp.max(jax.lax.stop_gradient(logits_BTV), axis=-1))
    sum_BT = _over_parts(jax.lax.psum, jnp.sum(jnp.exp(logits_BTV - most_BT[..., None]), axis=-1))
    log_sum_BT = most_BT + jnp.log(sum_BT)
    first_BT = jnp.min(jnp.where(logits_BTV == most_BT[..., None], number_BTV, vocab), axis=-1)
    first_BT = _over_parts(jax.lax.pmin, first_BT)
    picked_BT = _over_parts(jax.lax.psum, picked_BT)
    return log_sum_BT - picked_BT, (first_BT == next_BT).astype(jnp.float32)


def _over_parts(reduction: Callable[..., jax.Array], found_BT: jax.Array) -> jax.Array:
    """Reduces each device's values over all parts of the vocabulary."""
    axis = sharding_context.current().tensor
    return found_BT if axis is None else reduction(found_BT, axis)


def last_position(model: PureModel, *, tokens: str = "tokens") -> Callable[..., Any]:
    """The `predict` of a TrainWorkload: logits (B, V) after the first T of ``batch[tokens]``, (B, T + 1)."""
    return lambda params, model_state, batch: model.predict(params, model_state, batch[tokens][:, :-1])[:, -1]
