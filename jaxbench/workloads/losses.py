# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Losses for a TrainWorkload: plain or weighted means over the given examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads import weighted
from jaxbench.workloads.adapters import PureModel
from jaxbench.workloads.base import Batch, Metrics, PyTree

Inputs = str | tuple[str, ...]  # a field of the batch, or several


def given(batch: Batch, inputs: Inputs) -> Any:
    """The model's input from a batch: the array of one field, or a dictionary of several."""
    return batch[inputs] if isinstance(inputs, str) else {name: batch[name] for name in inputs}


def classification(
    model: PureModel, *, inputs: Inputs = "image", labels: str = "label", weights: str | None = None
) -> Callable[..., Any]:
    """Softmax cross-entropy and accuracy of a model that maps its input to logits (batch, classes).

    A one-hot product, not indexing, selects the log-likelihood. It keeps a sharded batch sharded (a gather over a
    sharded axis needs an output sharding), at negligible cost. The loss is computed in float32, whatever the model's
    number format.

    inputs: the field that is the model's input, or several fields, which are passed as a dictionary.

    weights: the field with the weight of each example, (batch,), 0 for padding. Loss and accuracy are then
      WeightedMeans, exact for any distribution of the weights over devices.
    """

    def loss(params: Any, model_state: Any, batch: Batch, key: jax.Array) -> tuple[Any, tuple[PyTree, Metrics]]:
        logits, model_state = model.apply(params, model_state, given(batch, inputs), key)
        metrics = _metrics(logits, batch[labels], None if weights is None else batch[weights])
        return metrics["loss"], (model_state, {"accuracy": metrics["accuracy"]})

    return loss


def evaluation(
    model: PureModel, *, inputs: Inputs = "image", labels: str = "label", weights: str | None = None
) -> Callable[..., Metrics]:
    """Loss and accuracy in inference mode: the `evaluate` of a TrainWorkload. weights: as in `classification`."""
    answer = prediction(model, inputs=inputs)

    def evaluate(params: PyTree, model_state: PyTree, batch: Batch) -> Metrics:
        weight = None if weights is None else batch[weights]
        return _metrics(answer(params, model_state, batch), batch[labels], weight)

    return evaluate


def prediction(model: PureModel, *, inputs: Inputs = "image") -> Callable[..., Any]:
    """The model's output for the field or fields `inputs` in inference mode: the `predict` of a TrainWorkload."""
    return lambda params, model_state, batch: model.predict(params, model_state, given(batch, inputs))


def _metrics(logits: jax.Array, label: jax.Array, weight: jax.Array | None) -> Metrics:
    """Mean cross-entropy and accuracy. logits: (batch, classes); label, weight: (batch,)."""
    logits = logits.astype(jnp.float32)
    target = jax.nn.one_hot(label, logits.shape[-1], dtype=jnp.float32)
    cross_entropy = -jnp.sum(target * jax.nn.log_softmax(logits), axis=-1)
    correct = (jnp.argmax(logits, axis=-1) == label).astype(jnp.float32)
    return {"loss": weighted.mean(cross_entropy, weight), "accuracy": weighted.mean(correct, weight)}
