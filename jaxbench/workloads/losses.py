# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses for a TrainWorkload: plain or weighted means over the given examples.

Axes: B examples given, G of the global batch, T positions, V vocabulary, D width, C columns of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp

from jaxbench.core import weighted
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Evaluate, Loss, Mean, Metrics, Predict
from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.sharding_context import gathered

# Of the next tokens (B, T): what `per_position` returns.
PerPosition = Callable[[jax.Array], tuple[jax.Array, jax.Array]]
Inputs = str | tuple[str, ...]  # a field of the batch, or several


def given(batch: Batch, inputs: Inputs) -> jax.Array | Batch:
    """The model's input from a batch: the array of one field, or a dictionary of several."""
    return batch[inputs] if isinstance(inputs, str) else {name: batch[name] for name in inputs}


def classification(
    model: PureModel, *, inputs: Inputs = "image", labels: str = "label", weights: str | None = None
) -> Loss:
    """Softmax cross-entropy and accuracy of a model that maps its input to logits (batch, classes).

    inputs: the field that is the model's input, or several fields, which are passed as a dictionary.

    weights: the field with the weight of each example, (batch,), 0 for padding. Loss and accuracy are then
      WeightedMeans, exact for any distribution of the weights over devices.
    """

    def loss(
        params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> tuple[Mean, tuple[ArrayTree, Metrics]]:
        logits, model_state = model.apply(params, model_state, given(batch, inputs), key)
        metrics = _metrics(logits, batch[labels], None if weights is None else batch[weights])
        return metrics["loss"], (model_state, {"accuracy": metrics["accuracy"]})  # a step adds the loss itself

    return loss


def evaluation(
    model: PureModel, *, inputs: Inputs = "image", labels: str = "label", weights: str | None = None
) -> Evaluate:
    """Loss and accuracy in inference mode: the `evaluate` of a TrainWorkload. weights: as in `classification`."""
    answer = prediction(model, inputs=inputs)

    def evaluate(params: ArrayTree, model_state: ArrayTree, batch: Batch) -> Metrics:
        weight = None if weights is None else batch[weights]
        return _metrics(answer(params, model_state, batch), batch[labels], weight)

    return evaluate


def prediction(model: PureModel, *, inputs: Inputs = "image") -> Predict:
    """The model's output for the field or fields `inputs` in inference mode: the `predict` of a TrainWorkload."""
    return lambda params, model_state, batch: model.predict(params, model_state, given(batch, inputs))


def _metrics(logits: jax.Array, label: jax.Array, weight: jax.Array | None) -> Metrics:
    """Mean cross-entropy and accuracy. logits: (batch, classes); label, weight: (batch,)."""
    # float32 whatever the model's format: a sum over many classes in 16 bits loses the small terms.
    logits = logits.astype(jnp.float32)
    # A product, not indexing: it keeps a sharded batch sharded (a gather over a sharded axis needs an output sharding).
    target = jax.nn.one_hot(label, logits.shape[-1], dtype=jnp.float32)
    cross_entropy = -jnp.sum(target * jax.nn.log_softmax(logits), axis=-1)
    correct = (jnp.argmax(logits, axis=-1) == label).astype(jnp.float32)
    return {"loss": weighted.mean(cross_entropy, weight), "accuracy": weighted.mean(correct, weight)}


def next_token(
    model: PureModel,
    *,
    tokens: str = "tokens",
    weights: str | None = None,
    penalty: Callable[[ArrayTree], tuple[jax.Array, Metrics]] | None = None,
) -> Loss:
    """Cross-entropy (natural logarithm) and accuracy of logits (B, T, V) for ``batch[tokens]``, integers (B, T + 1).

    The model reads the first T tokens and predicts the last T, or those of the last T on this device.

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

    def loss(
        params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> tuple[Mean, tuple[ArrayTree, Metrics]]:
        logits, model_state = model.apply(
            params, model_state, sharding_context.own_positions(batch[tokens][:, :-1]), key
        )
        value, metrics = score(logits, batch, tokens=tokens, weights=weights)
        if penalty is not None:
            more, further = penalty(model_state)
            value, metrics = cast(jax.Array, value) + more, {**metrics, **further}  # a WeightedMean is refused above
        return value, (model_state, metrics)

    return loss


def score(
    logits: jax.Array | PerPosition, batch: Batch, *, tokens: str = "tokens", weights: str | None = None
) -> tuple[Mean, Metrics]:
    """(mean cross-entropy, metrics) of a device's logits for the last T of ``batch[tokens]``.

    logits: (B, T, V), or a function of the next tokens in place of logits that are never whole (`in_blocks`).
    weights: as in `next_token`.
    """
    next_BT = sharding_context.own_positions(batch[tokens][:, 1:])
    loss_BT, hit_BT = logits(next_BT) if callable(logits) else per_position(logits, next_BT)
    if weights is None:
        return jnp.mean(loss_BT), {"accuracy": jnp.mean(hit_BT)}
    weight_BT = sharding_context.own_positions(batch[weights]).astype(jnp.float32)  # stored as integers
    real_share = jnp.mean((weight_BT != 0).astype(jnp.float32))
    loss, accuracy = weighted.mean(loss_BT, weight_BT), weighted.mean(hit_BT, weight_BT)
    return loss, {"accuracy": accuracy, "real_share": real_share}


def per_position(logits_BTV: jax.Array, next_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cross-entropy, 1 where the first largest logit is the next token's, else 0), both float32 (B, T).

    If the vocabulary is split over devices, each device has the logits of its part. The devices exchange four numbers
    for each position, but no logits.
    """
    logits_BTV = logits_BTV.astype(jnp.float32)
    axis, vocab = sharding_context.current().tensor, logits_BTV.shape[-1]
    number_BTV = jax.lax.broadcasted_iota(jnp.int32, logits_BTV.shape, 2)  # of the word, for comparisons
    if axis is not None:
        number_BTV = number_BTV + jax.lax.axis_index(axis) * vocab
        vocab *= jax.lax.axis_size(axis)
    # A comparison, not indexing: a sharded batch stays sharded, and the comparison fuses into the sum.
    picked_BT = jnp.sum(jnp.where(number_BTV == next_BT[..., None], logits_BTV, 0.0), axis=-1)
    # Subtracted so that `exp` cannot overflow. It cancels in the logarithm of the sum, so it needs no gradient, and
    # `pmax` has none.
    most_BT = _over_parts(jax.lax.pmax, jnp.max(jax.lax.stop_gradient(logits_BTV), axis=-1))
    sum_BT = _over_parts(jax.lax.psum, jnp.sum(jnp.exp(logits_BTV - most_BT[..., None]), axis=-1))
    log_sum_BT = most_BT + jnp.log(sum_BT)
    # Two plain reductions find the first largest logit, because a CPU vectorizes them but not `argmax`.
    first_BT = jnp.min(jnp.where(logits_BTV == most_BT[..., None], number_BTV, vocab), axis=-1)
    first_BT = _over_parts(jax.lax.pmin, first_BT)
    picked_BT = _over_parts(jax.lax.psum, picked_BT)
    return log_sum_BT - picked_BT, (first_BT == next_BT).astype(jnp.float32)


def in_blocks(
    scores: Callable[[jax.Array, jax.Array], jax.Array],
    table: jax.Array,
    x_BTD: jax.Array,
    count: int,
    next_BT: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """`per_position` of ``scores(x_BTD, table)``, in `count` equal blocks of positions.

    The backward pass computes the scores of a block again. So only one block of scores is in memory at a time, and the
    product is computed twice.
    """

    def blocks(array: jax.Array) -> jax.Array:
        cut = array.reshape(array.shape[0], count, -1, *array.shape[2:])
        return jnp.moveaxis(cut, 1, 0)

    # Two checkpoints. The outer one is for a strategy with a checkpoint of its own, which would store what is inside a
    # loop (`parallel.sharded_step.keeping_recomputation`). In a loop XLA cannot merge two computations of the scores,
    # so the inner one needs no barriers.
    @jax.checkpoint
    def every(table: jax.Array, x_BTD: jax.Array) -> tuple[jax.Array, jax.Array]:
        @partial(jax.checkpoint, prevent_cse=False)
        def block(table: jax.Array, x_BTD: jax.Array, next_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
            return per_position(scores(x_BTD, table), next_BT)

        def add(_: None, part: tuple[jax.Array, jax.Array]) -> tuple[None, tuple[jax.Array, jax.Array]]:
            return None, block(table, *part)

        return jax.lax.scan(add, None, (blocks(x_BTD), blocks(next_BT)))[1]

    loss, hit = (jnp.moveaxis(found, 0, 1).reshape(next_BT.shape) for found in every(table, x_BTD))
    return loss, hit


def _over_parts(reduction: Callable[..., jax.Array], found_BT: jax.Array) -> jax.Array:
    """Reduces each device's values over all parts of the vocabulary."""
    axis = sharding_context.current().tensor
    return found_BT if axis is None else reduction(found_BT, axis)


def last_position(model: PureModel, *, tokens: str = "tokens") -> Predict:
    """The `predict` of a TrainWorkload: logits (B, V) after the first T of ``batch[tokens]``, (B, T + 1)."""
    return lambda params, model_state, batch: model.predict(params, model_state, batch[tokens][:, :-1])[:, -1]


def contrastive(model: PureModel, *, inputs: tuple[str, str], columns: int = 0, remat: str = "none") -> Loss:
    """The loss of a model that maps a dictionary of the fields `inputs` to (x_BD, y_BD, scale).

    x_BD and y_BD are unit features of both kinds; scale is the factor (inverse temperature) of their products.

    A device compares its examples with all others, which is B x G products of each kind. columns: the number of columns
    of the similarity matrix that are computed at a time if the lever `remat` is block.

    The loss raises UserError, when it is first traced, for any `remat` but none and block.
    """

    def loss(
        params: ArrayTree, model_state: ArrayTree, batch: Batch, key: jax.Array
    ) -> tuple[jax.Array, tuple[ArrayTree, Metrics]]:
        # Here and not above: a config may hold several values of the lever, and a loss is traced with one of them.
        if remat not in ("none", "block"):
            raise UserError(
                f"--config.lever.remat={remat} does not apply to a contrastive loss, which computes its similarity "
                "matrix whole or in blocks: use none or block."
            )
        held = columns if remat == "block" else 0
        (x_BD, y_BD, scale), model_state = model.apply(params, model_state, given(batch, inputs), key)
        # Features are gathered, D numbers an example, and not the examples, which are larger.
        own_B = scale * jnp.sum(x_BD.astype(jnp.float32) * y_BD.astype(jnp.float32), axis=-1)
        others_B = log_sums(scale * x_BD, gathered(y_BD), held) + log_sums(scale * y_BD, gathered(x_BD), held)
        # The mean of both directions: the right caption of each image, and the right image of each caption.
        return jnp.mean(others_B / 2 - own_B), (model_state, {})

    return loss


def log_sums(x_BD: jax.Array, y_GD: jax.Array, columns: int = 0) -> jax.Array:
    """log of sum over g of exp(<x_b, y_g>), float32 (B,).

    columns: it is computed in blocks of at most that many; 0: at once.
    """
    if not columns:
        return jax.nn.logsumexp((x_BD @ y_GD.T).astype(jnp.float32), axis=-1)

    # A running sum scaled by the largest product so far (Milakov and Gimelshein, arXiv:1805.02867). Because of the
    # checkpoint the backward pass recomputes each block, so that only one block of products is in memory.
    @jax.checkpoint
    def add(so_far: tuple[jax.Array, jax.Array], y_CD: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        most_B, sum_B = so_far
        products_BC = (x_BD @ y_CD.T).astype(jnp.float32)
        more_B = jnp.maximum(most_B, jnp.max(jax.lax.stop_gradient(products_BC), axis=-1))
        sum_B = sum_B * jnp.exp(most_B - more_B) + jnp.sum(jnp.exp(products_BC - more_B[:, None]), axis=-1)
        return (more_B, sum_B), None

    own = len(x_BD) // sharding_context.current().parts
    # A block divides the examples of one device: XLA would gather one that spans devices once more.
    held = max(size for size in range(1, min(columns, own) + 1) if own % size == 0)
    nothing_B = jnp.zeros_like(x_BD[:, 0], jnp.float32)
    # From -inf, so that the first block is like the others: its old sum is scaled by exp(-inf) = 0.
    (most_B, sum_B), _ = jax.lax.scan(add, (nothing_B - jnp.inf, nothing_B), y_GD.reshape(-1, held, y_GD.shape[1]))
    return most_B + jnp.log(sum_B)


def retrieval(model: PureModel, *, inputs: tuple[str, str]) -> Evaluate:
    """The `evaluate` of a TrainWorkload: the loss and "accuracy".

    The accuracy is how often the nearest example of the second kind has the same label as the example of the first.
    """

    def evaluate(params: ArrayTree, model_state: ArrayTree, batch: Batch) -> Metrics:
        x_BD, y_BD, scale = model.predict(params, model_state, given(batch, inputs))
        products_BB = scale * (x_BD @ y_BD.T).astype(jnp.float32)
        both_B = jax.nn.logsumexp(products_BB, axis=0) + jax.nn.logsumexp(products_BB, axis=1)
        nearest_B = batch["label"][jnp.argmax(products_BB, axis=1)]
        right_B = (nearest_B == batch["label"]).astype(jnp.float32)
        return {"loss": jnp.mean(both_B / 2 - jnp.diagonal(products_BB)), "accuracy": jnp.mean(right_B)}

    return evaluate
