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
    """The PureModel of a Haiku function.

    `function`: the input batch -> outputs, with Haiku modules; or the result of hk.transform of such a function.
    `example`: shape and dtype (jax.ShapeDtypeStruct) of the input batch, or a tuple or dictionary of several.

    Arguments of the function named `is_training`, `train` and so on are passed.

    Raises:
      UserError: Haiku is not installed, or `function` is not a function.
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
    """The function before hk.transform: the transformed pair hides its signature."""
    original = getattr(getattr(function, "init", function), "_original_fn", function)
    if not callable(original):
        raise UserError(f"from_haiku takes a function of the input batch, and was given a {type(function).__name__}.")
    return original


def _normalising_over(hk: Any, axis: Any) -> AbstractContextManager[Any]:
    """A context in which Haiku's batch normalization takes the statistics of the global batch under all strategies.

    axis: the mapped axis over which other devices have the rest of the batch.
    """

    def interceptor(call: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        layer = context.module  # the function makes a new one at each call, so it can be modified
        normalises = isinstance(layer, hk.BatchNorm) and context.method_name == "__call__"
        if normalises and layer.cross_replica_axis is None:
            layer.cross_replica_axis = axis
        return call(*args, **kwargs)

    return contextlib.nullcontext() if axis is None else hk.intercept_methods(interceptor)
