# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `freeze`: parameters that are not trained. They leave `params`, and so have no gradient, no optimizer state
and no communication."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import jax

from jaxbench.core.workload import KEY, PyTree, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.workloads import flops


def apply(workload: TrainWorkload, pattern: str) -> TrainWorkload:
    """The workload with frozen parameters: those with a path that matches `pattern`, a regular expression.

    The trainable tree has None in place of frozen parameters, and the frozen tree has None everywhere else. The model's
    state becomes ``{"model": its own state, "frozen": the frozen tree}``; a loss returns only "model".

    Raises:
      UserError: `pattern` is not a regular expression, or matches no parameter or every one.
    """
    if pattern == "none":
        return workload
    chosen = _chosen(workload, pattern)

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        params, model_state = workload.init(key)
        trainable = jax.tree.map(lambda x, frozen: None if frozen else x, params, chosen)
        frozen = jax.tree.map(lambda x, frozen: x if frozen else None, params, chosen)
        return trainable, {"model": model_state, "frozen": frozen}

    def with_frozen(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
        return lambda params, state, *rest: function(_merge(params, state["frozen"]), state["model"], *rest)

    def loss(params: PyTree, state: PyTree, batch: PyTree, key: jax.Array) -> PyTree:
        value, (new, metrics) = with_frozen(workload.loss)(params, state, batch, key)
        new = {**state["model"], **new} if isinstance(new, dict) else new
        return value, ({"model": new}, metrics)

    frozen = dataclasses.replace(
        workload,
        init=init,
        loss=loss,
        evaluate=workload.evaluate and with_frozen(workload.evaluate),
        predict=workload.predict and with_frozen(workload.predict),
    )
    # FLOPs of training the rest. Frozen layers need no gradient of their weights; layers before the first trained layer
    # need none of their inputs. A workload's own figure is scaled by the remaining share of the products.
    remaining = _products(frozen)
    if workload.flops_per_example is not None:
        remaining *= workload.flops_per_example / _products(workload)
    return dataclasses.replace(frozen, flops_per_example=remaining, masked_flops_per_example=0.0)


def stateful(model_state: PyTree) -> bool:
    """Whether a model has state, such as batch statistics, in addition to frozen parameters."""
    return bool(jax.tree.leaves(not_frozen(model_state)))


def not_frozen(model_state: PyTree) -> PyTree:
    """A model's state without its frozen parameters."""
    return {k: v for k, v in model_state.items() if k != "frozen"} if isinstance(model_state, dict) else model_state


def paths(params: PyTree) -> list[str]:
    """The parameters' names in the order of the tree's leaves, such as "blocks/0/attention/kernel"."""
    return [jax.tree_util.keystr(at, simple=True, separator="/") for at, _ in jax.tree.leaves_with_path(params)]


def _chosen(workload: TrainWorkload, pattern: str) -> PyTree:
    """A tree with the structure of params: whether each parameter is frozen."""
    params, _ = jax.eval_shape(workload.init, KEY)
    names = paths(params)
    try:
        chosen = [re.search(pattern, name) is not None for name in names]
    except re.error as error:
        raise UserError(
            f"--config.lever.freeze={pattern} is not a regular expression ({error}): use '{names[0]}', for example."
        ) from error
    if not any(chosen):
        raise UserError(f"--config.lever.freeze={pattern} matches no parameter: there are {_some(names)}.")
    if all(chosen):
        raise UserError(
            f"--config.lever.freeze={pattern} matches every parameter, which leaves none to train: there are "
            f"{_some(names)}."
        )
    return jax.tree.unflatten(jax.tree.structure(params), chosen)


def _some(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _merge(trainable: PyTree, frozen: PyTree) -> PyTree:
    return jax.tree.map(lambda t, f: f if t is None else t, trainable, frozen, is_leaf=lambda x: x is None)


def _products(workload: TrainWorkload) -> float:
    """FLOPs of one example's products, forward and backward."""

    def derivative(params: PyTree, model_state: PyTree, batch: PyTree, key: jax.Array) -> PyTree:
        return jax.jvp(lambda p: workload.mean_loss(p, model_state, batch, key)[0], (params,), (params,))

    # Counted in forward mode: its derivative has products of the same size as the backward pass, but never recomputes
    # an activation. Rematerialization is not work that training requires.
    params, model_state = jax.eval_shape(workload.init, KEY)
    avals = params, model_state, workload.batch_avals(1), KEY
    try:
        return flops.count(derivative, *avals)
    except TypeError:  # a custom_vjp function has no forward mode
        return flops.count(jax.grad(workload.mean_loss, has_aux=True), *avals)
