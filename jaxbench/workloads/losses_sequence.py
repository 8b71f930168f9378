# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses of models of sequences, and of those that read several fields of a batch."""

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

    The model is given the first T and judged on the last T, or on those of them that lie on this device. The arithmetic
    is float32.

    weights: the field with how much each of the last T tokens counts, (B, T): then loss and accuracy are WeightedMeans,
      and "real_share", the share of tokens that count at all, is a metric too.
    penalty: model state -> (what the model itself adds to the loss, further metrics).

    Raises:
      UserError: weights and a penalty, which is a mean over sequences and so another mean than the loss.
    """
    if weights is not None and penalty is not None:
        raise UserError(
            "a mixture of experts adds a mean over sequences to the loss, which cannot be added to a mean over real "
            "tokens: use --config.model.experts=0, or --config.data.pad='' without padding."
        )

    def loss(params: Any, model_state: Any, batch: Batch, key: jax.Array) -> Any:
        logits, model_state = model.apply(params, model_state, positions.held(batch[tokens][:, :-1]), key)
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
    """(mean cross-entropy, metrics) of a device's logits for what follows each of the first T of ``batch[tokens]``.

    weights: as of `next_token`.
    """
    loss_BT, hit_BT = per_position(logits_BTV, positions.held(batch[tokens][:, 1:]))
    if weights is None:
        return jnp.mean(loss_BT), {"accuracy": jnp.mean(hit_BT)}
    weight_BT = positions.held(batch[weights]).astype(jnp.float32)
    real_share = jnp.mean((weight_BT != 0).astype(jnp.float32))
    loss, accuracy = weighted.mean(loss_BT, weight_BT), weighted.mean(hit_BT, weight_BT)
    return loss, {"accuracy": accuracy, "real_share": real_share}


def per_position(logits_BTV: jax.Array, next_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cross-entropy, 1 where the largest logit, the first of equals, is the next token's, else 0), float32 (B, T).

    The next token's logit is picked by a comparison, not by indexing, so that a batch that is split over devices stays
    split; it fuses into the sum. The largest logit is found by two plain reductions, which a CPU does many at a time,
    and not by `argmax`, which it does one by one.

    Where the vocabulary is split over devices each has the logits of its part, and what is found in the parts is put
    together: four numbers a position travel, and no logit.
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
    """What is found in all parts of the vocabulary together."""
    axis = sharding_context.current().tensor
    return found_BT if axis is None else reduction(found_BT, axis)


def last_position(model: PureModel, *, tokens: str = "tokens") -> Callable[..., Any]:
    """The `predict` of a TrainWorkload: logits (B, V) of what follows the first T of ``batch[tokens]``, (B, T + 1)."""
    return lambda params, model_state, batch: model.predict(params, model_state, batch[tokens][:, :-1])[:, -1]


def of_several(function: Callable[..., Any], *fields: str) -> Callable[..., Any]:
    """A loss, evaluation or prediction made with ``inputs="inputs"`` for a model that reads several fields of a batch.

    The model is given a dictionary of them.
    """

    def joined(params: Any, model_state: Any, batch: Batch, *key: jax.Array) -> Any:
        inputs = {name: batch[name] for name in fields}
        return function(params, model_state, {**batch, "inputs": inputs}, *key)

    return joined
