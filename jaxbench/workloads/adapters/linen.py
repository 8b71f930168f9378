# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Flax Linen."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax

from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters import named_axes
from jaxbench.workloads.adapters.pure import PureModel, arguments, mode, parameters, required, stream, zeros
from jaxbench.workloads.base import KEY, PyTree

Run = Callable[..., tuple[Any, PyTree]]


def from_linen(module: Any, example: PyTree) -> PureModel:
    """The PureModel of a Linen module. `module`: flax.linen.Module.

    `example`: shape and dtype (jax.ShapeDtypeStruct) of the input batch, or a tuple or dictionary of several. The
    number of examples does not matter.

    Arguments of ``__call__``, or fields of the module, named `train`, `deterministic` and so on are passed, and all
    random streams that it asks for. Its state is the collections that it needs, not those that it only sows into.
    """
    from flax import linen as nn

    inputs, fields = arguments(example), {field.name for field in dataclasses.fields(module)}
    takes = set(parameters(type(module).__call__)) - fields  # Flax accepts it from only one of the two
    modules = {t: module.clone(**mode(fields, training=t)) for t in (False, True)}

    def boxed(key: jax.Array) -> PyTree:
        return modules[True].init(key, *zeros(inputs), **mode(takes, training=True))

    def variables(key: jax.Array) -> PyTree:
        with named_axes.removed():
            return nn.meta.unbox(boxed(key))

    def call(values: PyTree, x: Any, rngs: dict[str, jax.Array], training: bool) -> tuple[Any, PyTree]:
        mutable = [name for name in values if name != "params"]
        flags = mode(takes, training=training)
        with named_axes.removed(), nn.intercept_methods(_adapted(sharding_context.current().axis)):
            return modules[training].apply(values, *arguments(x), rngs=rngs, mutable=mutable, **flags)

    avals = jax.eval_shape(variables, KEY)
    streams = _streams(call, avals, inputs)
    needed = _needed(call, avals, inputs, streams)

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        initial = variables(key)
        return initial.get("params", {}), {name: initial[name] for name in needed}

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        # A module may check for a dropout stream before it asks for one.
        names = () if key is None and not streams else ("dropout", *streams)
        rngs = {name: stream(required(key), name) for name in names}
        y, changed = call({"params": params, **model_state}, x, rngs, training)
        return y, {**model_state, **changed}

    return PureModel(named_axes.kept(init, _axes(jax.eval_shape(boxed, KEY).get("params", {}))), run)


def _axes(boxed: PyTree) -> dict[str, Any]:
    """The mesh axes that a model names, by parameter."""
    from flax import linen as nn

    found = jax.tree.leaves_with_path(boxed, is_leaf=lambda leaf: isinstance(leaf, nn.Partitioned))
    named = [(path, leaf.names) for path, leaf in found if isinstance(leaf, nn.Partitioned)]
    return {jax.tree_util.keystr(path, simple=True, separator="/"): names for path, names in named}


def _streams(call: Run, avals: PyTree, inputs: PyTree) -> tuple[str, ...]:
    """The random streams that a module asks for in training, found by tracing it and adding each missing one."""
    from flax import errors

    found: list[str] = []
    while True:
        try:
            _trace(call, avals, inputs, found)
            return tuple(found)
        except errors.InvalidRngError as error:
            # Flax names the missing stream only in its message.
            missing = re.search(r'PRNG for "([^"]+)"', str(error))
            if missing is None or missing[1] in found:
                raise
            found.append(missing[1])


def _needed(call: Run, avals: PyTree, inputs: PyTree, streams: tuple[str, ...]) -> tuple[str, ...]:
    """The collections without which a module does not run. Collections that it only sows into are not among them."""
    from flax import errors

    found = []
    for name in avals:
        try:
            if name != "params":
                _trace(call, {other: aval for other, aval in avals.items() if other != name}, inputs, streams)
        except (errors.FlaxError, AttributeError, TypeError):  # the last two: a missing variable is read
            found.append(name)
    return tuple(found)


def _trace(call: Run, avals: PyTree, inputs: PyTree, streams: Any) -> None:
    rngs = dict.fromkeys(streams, KEY)
    jax.eval_shape(lambda *given: call(*given, training=True), avals, inputs, rngs)


def _adapted(axis: Any) -> Callable[..., Any]:
    """An interceptor of Flax's layers.

    Batch normalization takes the statistics of the global batch, so it is the same function under all strategies.
    Dropout draws its mask with the sharding of its input if that is explicit. axis: the mapped axis over which other
    devices have the rest of the batch.
    """
    from flax import linen as nn

    def interceptor(call: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        layer = context.module
        if context.method_name == "__call__" and isinstance(layer, nn.Dropout):
            return _dropped(layer, call, *args, **kwargs)
        normalises = isinstance(layer, nn.BatchNorm) and context.method_name == "__call__"
        if axis is None or not normalises or layer.axis_name is not None:
            return call(*args, **kwargs)
        assert layer.scope is not None  # it is being called
        return layer.clone(parent=layer.scope.rewound(), axis_name=axis)(*args, **kwargs)

    return interceptor


def _dropped(layer: Any, call: Callable[..., Any], inputs: Any, deterministic: Any = None, rng: Any = None) -> Any:
    """Dropout with a mask that has the sharding of its input. call: Flax's own dropout, which does not shard it."""
    from flax import linen as nn

    sharding = jax.typeof(inputs).sharding
    fixed = nn.merge_param("deterministic", layer.deterministic, deterministic)
    if not any(sharding.spec) or fixed or not 0 < layer.rate < 1:
        return call(inputs, deterministic=deterministic, rng=rng)
    drop = nn.Dropout(layer.rate, layer.broadcast_dims, deterministic=False)
    masked = jax.sharding.auto_axes(lambda x, rng: drop.apply({}, x, rng=rng), out_sharding=sharding)
    return masked(inputs, layer.make_rng(layer.rng_collection) if rng is None else rng)
