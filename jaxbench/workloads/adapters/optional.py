# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Equinox and Haiku, which are installed with the extra `adapters`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.core.workload import KEY, PyTree
from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters.pure import PureModel, arguments, library, mode, parameters, zeros


def from_equinox(constructor: Callable[[jax.Array], Any]) -> PureModel:
    """The PureModel of an Equinox module. `constructor`: key -> eqx.Module, which takes one example; it is vmapped.

    Arrays of floats are trained. Other arrays are the model's state, which never changes. Everything else is part of
    the program. Each example gets its own key if ``__call__`` takes `key`. Inference is `eqx.nn.inference_mode`.

    Raises:
      UserError: Equinox is not installed, or a layer keeps an `eqx.nn.State`.
    """
    eqx = library("equinox", "equinox")
    abstract = eqx.filter_eval_shape(constructor, KEY)
    _refuse_states(eqx, abstract)
    takes = parameters(type(abstract).__call__)
    trained, other, static = _parts(eqx, abstract)
    statics = {training: eqx.nn.inference_mode(static, not training) for training in (False, True)}

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        trained, other, _ = _parts(eqx, constructor(key))
        return _by_path(trained), _by_path(other)

    def run(
        params: PyTree, model_state: PyTree, x: PyTree, key: jax.Array | None, training: bool
    ) -> tuple[PyTree, PyTree]:
        model = eqx.combine(_filled(trained, params), _filled(other, model_state), statics[training])
        flags = mode(takes, training=training)
        if key is None or "key" not in takes:
            return jax.vmap(lambda *one: model(*one, **flags))(*arguments(x)), model_state
        keys = _split_like(key, jax.tree.leaves(x)[0])
        return jax.vmap(lambda key, *one: model(*one, key=key, **flags))(keys, *arguments(x)), model_state

    return PureModel(init, run)


def _split_like(key: jax.Array, x: jax.Array) -> jax.Array:
    """A key for each example of `x`, with the sharding of the examples."""
    # vmap needs equal sharding of the keys and the examples, if that is explicit.
    keys, sharding = jax.random.split(key, len(x)), jax.typeof(x).sharding
    if not any(sharding.spec):
        return keys
    return jax.sharding.reshard(keys, NamedSharding(sharding.mesh, PartitionSpec(sharding.spec[0])))


def _refuse_states(eqx: Any, made: Any) -> None:
    def stateful(leaf: PyTree) -> bool:
        return isinstance(leaf, (eqx.nn.State, eqx.nn.StateIndex))

    if any(map(stateful, jax.tree.leaves(made, is_leaf=stateful))):
        raise UserError(
            "from_equinox takes no layers that keep an eqx.nn.State, such as eqx.nn.BatchNorm: use eqx.nn.GroupNorm or "
            "eqx.nn.LayerNorm."
        )


def _parts(eqx: Any, model: Any) -> tuple[Any, Any, Any]:
    """(arrays of floats, other arrays, everything else), each with None in place of the others."""

    def array(leaf: PyTree) -> bool:
        return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))

    arrays, static = eqx.partition(model, array)
    return *eqx.partition(arrays, lambda leaf: jnp.issubdtype(leaf.dtype, jnp.inexact)), static


def _path(path: Any) -> list[str]:
    return [jax.tree_util.keystr((part,), simple=True) for part in path]


def _by_path(tree: PyTree) -> PyTree:
    """The arrays of a model as nested dictionaries: {"layers": {"0": {"weight": ...}}}."""
    nested: dict[str, Any] = {}
    for path, leaf in jax.tree.leaves_with_path(tree):
        at, *names = nested, *_path(path)
        for name in names[:-1]:
            at = at.setdefault(name, {})
        at[names[-1]] = leaf
    return nested


def _filled(abstract: Any, nested: PyTree) -> PyTree:
    """The inverse of `_by_path`: `abstract` with the arrays of `nested`."""

    def found(path: Any, _: Any) -> PyTree:
        at = nested
        for name in _path(path):
            at = at[name]
        return at

    return jax.tree.map_with_path(found, abstract)


def from_haiku(function: Any, example: PyTree) -> PureModel:
    """The PureModel of a Haiku function.

    `function`: the input batch -> outputs, with Haiku modules; or the result of hk.transform of such a function.
    `example`: shape and dtype (jax.ShapeDtypeStruct) of the input batch, or a tuple or dictionary of several.

    Arguments of the function named `is_training`, `train` and so on are passed.

    Raises:
      UserError: Haiku is not installed.
    """
    hk = library("haiku", "dm-haiku")
    # The function before hk.transform: the transformed pair hides its signature.
    function = getattr(getattr(function, "init", function), "_original_fn", function)
    takes, transformed = parameters(function), hk.transform_with_state(function)

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        return transformed.init(key, *zeros(arguments(example)), **mode(takes, training=True))

    def run(
        params: PyTree, model_state: PyTree, x: PyTree, key: jax.Array | None, training: bool
    ) -> tuple[PyTree, PyTree]:
        with _normalising_over(hk, sharding_context.current().axis):
            return transformed.apply(params, model_state, key, *arguments(x), **mode(takes, training=training))

    return PureModel(init, run)


def _normalising_over(hk: Any, axis: Any) -> AbstractContextManager[Any]:
    """A context in which Haiku's batch normalization takes the statistics of the global batch under all strategies.

    axis: the mapped axis over which other devices have the rest of the batch.
    """

    def interceptor(call: Callable[..., PyTree], args: Any, kwargs: Any, context: Any) -> Any:
        layer = context.module  # the function makes a new one at each call, so it can be modified
        normalises = isinstance(layer, hk.BatchNorm) and context.method_name == "__call__"
        if normalises and layer.cross_replica_axis is None:
            layer.cross_replica_axis = axis
        return call(*args, **kwargs)

    return contextlib.nullcontext() if axis is None else hk.intercept_methods(interceptor)
