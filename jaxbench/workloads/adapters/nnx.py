# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Flax NNX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters.pure import PureModel, arguments, mode, parameters, required, stream
from jaxbench.workloads.base import PyTree


def from_nnx(constructor: Callable[[Any], Any]) -> PureModel:
    """`constructor`: flax.nnx.Rngs -> nnx.Module whose ``__call__`` takes the input batch.

    It is trained as its `train()` makes it and infers as its `eval()` does; arguments of ``__call__`` named `train`,
    `deterministic` and so on are given too, and `rngs`. Its random streams are no state: each step draws them anew.

    The graph is split once, here and not at every call: walking it in Python is what makes nnx.jit slow to dispatch.
    """
    from flax import nnx

    model = nnx.eval_shape(lambda: constructor(nnx.Rngs(0)))
    takes = parameters(type(model).__call__)
    model.eval()  # what differs between inference and training is in the graph, not in the values
    inference, *_ = _split(model)
    model.train()
    trained, abstract_params, abstract_rngs, abstract_state = _split(model)

    @functools.partial(jax.jit, inline=True)  # so that JAX keeps its trace: it is asked for in many places
    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        _, params, _, model_state = _split(constructor(nnx.Rngs(key)))
        return nnx.to_pure_dict(params), nnx.to_pure_dict(model_state)

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        rngs = _filled(abstract_rngs, _drawn(nnx.to_pure_dict(abstract_rngs), key))
        values = _filled(abstract_params, params), rngs, _filled(abstract_state, model_state)
        model = nnx.merge(trained if training else inference, *values)
        _normalise_over(model, sharding_context.current().axis)
        more = {} if key is None or "rngs" not in takes else {"rngs": nnx.Rngs(stream(key, "rngs"))}
        y = model(*arguments(x), **mode(takes, training=training), **more)
        kept = nnx.Not(nnx.Any(nnx.Param, nnx.RngState, nnx.Intermediate))  # what was sown is no state
        return y, _those_of(nnx.to_pure_dict(abstract_state), nnx.to_pure_dict(nnx.state(model, kept)))

    return PureModel(init, run)


def _those_of(kept: PyTree, found: PyTree) -> PyTree:
    """What of a nested dictionary is in another: a variable that each call makes anew is none of the model's state."""
    if not isinstance(kept, dict):
        return found
    return {name: _those_of(kept[name], found[name]) for name in kept if name in found}


def _split(model: Any) -> tuple[Any, Any, Any, Any]:
    """(graph, parameters, random streams, everything else)."""
    from flax import nnx

    graph, params, *rest = nnx.split(model, nnx.Param, nnx.RngState, ...)
    return graph, params, rest[0], rest[1]


def _filled(abstract: Any, values: PyTree) -> Any:
    """A copy of an nnx.State with its leaves replaced by `values`."""
    from flax import nnx

    state = jax.tree.map(lambda leaf: leaf, abstract)
    nnx.replace_by_pure_dict(state, values)
    return state


def _drawn(rngs: PyTree, key: jax.Array | None) -> PyTree:
    """Values for a model's streams: of each, a key by its place in the model and a count of 0."""

    def drawn(path: Any, leaf: Any) -> jax.Array:
        if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.zeros(leaf.shape, leaf.dtype)
        own = stream(required(key), jax.tree_util.keystr(path, simple=True, separator="/"))
        own = own if jax.dtypes.issubdtype(own.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(own)
        return jax.random.split(own, leaf.shape) if leaf.shape else own  # several: of layers that are mapped over

    return jax.tree.map_with_path(drawn, rngs)


def _normalise_over(model: Any, axis: Any) -> None:
    """Flax's batch normalisation sees the examples that it is given; where other devices hold the rest of the batch it
    is told the mapped axis, so that it is one function under all strategies."""
    from flax import nnx

    if axis is None:
        return
    for _, module in nnx.iter_modules(model):
        if isinstance(module, nnx.BatchNorm) and module.axis_name is None:
            module.axis_name = axis
