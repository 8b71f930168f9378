# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Turns a Flax NNX model, a Flax Linen model or two plain functions into one set of pure functions.

``init(key) -> (params, model_state)`` and ``apply(params, model_state, x) -> (y, model_state)``; params and model_state
are plain nested dictionaries, so checkpoints and freezing patterns read the same whatever the model was written in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from jaxbench.workloads.base import PyTree


@dataclass(frozen=True)
class PureModel:
    """A model without its framework.

    predict: ``(params, model_state, x) -> y`` in inference mode (running statistics, no dropout); None where it is not
      known how to ask the model for that.
    """

    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    apply: Callable[[PyTree, PyTree, Any], tuple[Any, PyTree]]
    predict: Callable[[PyTree, PyTree, Any], Any] | None = None


def from_nnx(constructor: Callable[[Any], Any]) -> PureModel:
    """`constructor`: flax.nnx.Rngs -> nnx.Module whose ``__call__`` takes the input batch.

    The graph is split once, here and not at every call: walking it in Python is what makes nnx.jit slow to dispatch.
    """
    from flax import nnx

    abstract = nnx.eval_shape(lambda: constructor(nnx.Rngs(0)))
    graph, abstract_params, abstract_rest = _split(abstract)
    abstract.eval()  # what differs between training and inference is in the graph, not in the values
    inference_graph, *_ = _split(abstract)

    @functools.partial(jax.jit, inline=True)  # so that JAX keeps its trace: it is asked for in many places
    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        _, params, rest = _split(constructor(nnx.Rngs(key)))
        return nnx.to_pure_dict(params), _untyped(nnx.to_pure_dict(rest))

    def apply(params: PyTree, model_state: PyTree, x: Any) -> tuple[Any, PyTree]:
        model = merged(graph, params, model_state)
        y = model(x)
        return y, _untyped(nnx.to_pure_dict(nnx.state(model, nnx.Not(nnx.Param))))

    def predict(params: PyTree, model_state: PyTree, x: Any) -> Any:
        return merged(inference_graph, params, model_state)(x)

    def merged(graph: Any, params: PyTree, model_state: PyTree) -> Any:
        return nnx.merge(graph, _filled(abstract_params, params), _filled(abstract_rest, model_state))

    return PureModel(init, apply, predict)


def _split(model: Any) -> tuple[Any, Any, Any]:
    """(graph, parameters, everything else)."""
    from flax import nnx

    graph, params, *rest = nnx.split(model, nnx.Param, ...)
    return graph, params, rest[0]


def _filled(abstract: Any, values: PyTree) -> Any:
    """A copy of an nnx.State with its leaves replaced by `values`."""
    from flax import nnx

    state = jax.tree.map(lambda leaf: leaf, abstract)
    typed = jax.tree.map(
        lambda a, v: jax.random.wrap_key_data(v) if _is_key(a) else v, nnx.to_pure_dict(abstract), values
    )
    nnx.replace_by_pure_dict(state, typed)
    return state


def _untyped(tree: PyTree) -> PyTree:
    """Random keys (of nnx.Dropout, for one) as plain uint32, which every strategy and checkpoint can carry."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, tree)


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def from_linen(module: Any, example: jax.ShapeDtypeStruct) -> PureModel:
    """`module`: flax.linen.Module. `example`: the input batch's shape and dtype; the batch size does not matter."""
    import jax.numpy as jnp

    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        variables = dict(module.init(key, jnp.zeros(example.shape, example.dtype)))
        return variables.pop("params"), variables

    def apply(params: PyTree, model_state: PyTree, x: Any) -> tuple[Any, PyTree]:
        if not model_state:
            return module.apply({"params": params}, x), model_state
        y, new_state = module.apply({"params": params, **model_state}, x, mutable=list(model_state))
        return y, {**model_state, **new_state}

    return PureModel(init, apply)


def from_functions(init: Callable[[jax.Array], PyTree], apply: Callable[[PyTree, Any], Any]) -> PureModel:
    """`init`: key -> params. `apply`: (params, x) -> y. For a model without state."""
    return PureModel(
        init=lambda key: (init(key), {}),
        apply=lambda params, model_state, x: (apply(params, x), model_state),
        predict=lambda params, model_state, x: apply(params, x),
    )
