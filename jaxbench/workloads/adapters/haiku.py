# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Haiku."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters.pure import PureModel, arguments, library, mode, parameters, zeros
from jaxbench.workloads.base import PyTree


def from_haiku(function: Any, example: PyTree) -> PureModel:
    """`function`: the input batch -> outputs, made of Haiku's modules; or what hk.transform made of one.
    `example`: shape and dtype (jax.ShapeDtypeStruct) of the input batch, or a tuple or dictionary of several.

    Arguments of the function named `is_training`, `train` and so on are given.

    Raises:
      UserError: Haiku is not installed; another thing than a function is given.
    """
    hk = library("haiku", "dm-haiku")
    function = _original(function)
    takes, transformed = parameters(function), hk.transform_with_state(function)

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        return transformed.init(key, *zeros(arguments(example)), **mode(takes, training=True))

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        with _normalising_over(hk, sharding_context.current().axis):
            return transformed.apply(params, model_state, key, *arguments(x), **mode(takes, training=training))

    return PureModel(init, run)


def _original(function: Any) -> Callable[..., Any]:
    """What was transformed. Its arguments are seen there and not in the pair of functions that came of it."""
    found = getattr(getattr(function, "init", function), "_original_fn", function)
    if not callable(found):
        raise UserError(f"from_haiku takes a function of the input batch, and was given a {type(function).__name__}.")
    return found


def _normalising_over(hk: Any, axis: Any) -> AbstractContextManager[Any]:
    """Inside, Haiku's batch normalisation, which sees the examples that it is given, is told the mapped axis over which
    other devices hold the rest of the batch: so it is one function under all strategies."""

    def told(call: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        layer = context.module  # made by the function at each call: nobody else sees it
        called = isinstance(layer, hk.BatchNorm) and context.method_name == "__call__"
        if called and layer.cross_replica_axis is None:
            layer.cross_replica_axis = axis
        return call(*args, **kwargs)

    return contextlib.nullcontext() if axis is None else hk.intercept_methods(told)
