# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Flax NNX."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters import named_axes
from jaxbench.workloads.adapters.pure import PureModel, arguments, mode, parameters, required, stream
from jaxbench.workloads.base import PyTree
from jaxbench.workloads.jaxprs import numbered


def from_nnx(constructor: Callable[[Any], Any]) -> PureModel:
    """The PureModel of an NNX module. `constructor`: flax.nnx.Rngs -> nnx.Module; its ``__call__`` takes the batch.

    The module's `train()` selects training, its `eval()` inference. Arguments of ``__call__`` named `train`,
    `deterministic` and so on are passed too, and `rngs`. Random streams are not state: each step draws new ones.

    The graph is split once, here, and not at every call: walking it in Python makes nnx.jit slow to dispatch.
    """
    from flax import nnx

    graphs: dict[bool, Any] = {}
    takes: dict[str, Any] = {}
    writes_checked = False

    def built() -> tuple[Any, ...]:
        model = constructor(nnx.Rngs(0))
        takes.update(parameters(type(model).__call__))
        model.eval()  # training and inference differ in the graph, not in the values
        graphs[False], *_ = _split(model)
        model.train()
        graphs[True], *values = _split(model)
        return tuple(values)

    # Not nnx.eval_shape, which loses arrays that are no Variables.
    with named_axes.removed():
        abstract_params, abstract_rngs, abstract_state = jax.eval_shape(built)

    @functools.partial(jax.jit, inline=True)  # so that JAX caches its trace, which many places need
    def init(key: jax.Array) -> tuple[PyTree, PyTree]:
        with named_axes.removed():
            _, params, _, model_state = _split(constructor(nnx.Rngs(key)))
        return nnx.to_pure_dict(params), nnx.to_pure_dict(model_state)

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        nonlocal writes_checked

        def called(params: PyTree) -> tuple[Any, Any, PyTree]:
            """(the model, y, the parameters of the model after the call)."""
            rngs = _filled(abstract_rngs, _stream_values(nnx.to_pure_dict(abstract_rngs), key))
            streams = {} if key is None or "rngs" not in takes else {"rngs": nnx.Rngs(stream(key, "rngs"))}
            values = _filled(abstract_params, params), rngs, _filled(abstract_state, model_state)
            model = nnx.merge(graphs[training], *values)
            _normalise_over(model, sharding_context.current().axis)
            with named_axes.removed():
                y = model(*arguments(x), **mode(takes, training=training), **streams)
            return model, y, _restricted(params, nnx.to_pure_dict(nnx.state(model, nnx.Param)))

        model, y, after = called(params)
        if training and not writes_checked:
            _refuse_writes(params, after, lambda params: called(params)[2])
            writes_checked = True
        kinds = nnx.Not(nnx.Any(nnx.Param, nnx.RngState, nnx.Intermediate))  # Intermediate: sown values are not state
        return y, _restricted(nnx.to_pure_dict(abstract_state), nnx.to_pure_dict(nnx.state(model, kinds)))

    named = ((path, leaf.get_metadata("out_sharding", None)) for path, leaf in nnx.to_flat_state(abstract_params))
    return PureModel(named_axes.kept(init, {"/".join(map(str, path)): axes for path, axes in named if axes}), run)


def _refuse_writes(before: PyTree, after: PyTree, again: Callable[[PyTree], PyTree]) -> None:
    """Raises UserError for a parameter that the model itself changes: a step would lose what it wrote.

    again: before -> after. It is traced only where a transformation inside the model, such as nnx.remat, returned all
    parameters as new arrays.
    """
    # Most models return the very arrays that they were given, which needs no tracing.
    same = map(operator.is_, jax.tree.leaves(before), jax.tree.leaves(after))
    if all(same):
        return
    values = numbered(jax.make_jaxpr(again)(before).jaxpr)
    for place, (path, _) in enumerate(jax.tree.leaves_with_path(before)):
        if values[place] != ("argument", place):
            raise UserError(
                f"the model writes into its parameter '{jax.tree_util.keystr(path, simple=True, separator='/')}' while "
                "it is called, and a step keeps only what the optimizer changes: compute with the new value without "
                "assigning it to the nnx.Param, or keep it in an nnx.Variable of another type."
            )


def _restricted(wanted: PyTree, found: PyTree) -> PyTree:
    """The entries of `found` that are also in `wanted`: variables that each call creates are not state."""
    if not isinstance(wanted, dict):
        return found
    return {name: _restricted(wanted[name], found[name]) for name in wanted if name in found}


def _split(model: Any) -> tuple[Any, Any, Any, Any]:
    """(graph, parameters, random streams, everything else)."""
    from flax import nnx

    graph, params, *rest = nnx.split(model, nnx.Param, nnx.RngState, ...)
    return graph, params, rest[0], rest[1]


def _filled(abstract: Any, values: PyTree) -> Any:
    """A copy of an nnx.State with its leaves replaced by `values`.

    Flax's own function for this does not take tuples as keys, which nnx.WeightNorm has.
    """
    from flax import nnx

    flat = nnx.to_flat_state(abstract)
    found = [functools.reduce(lambda at, name: at[name], path, values) for path, _ in flat]
    filled = zip(flat, found, strict=True)
    return nnx.from_flat_state([(path, x.replace(new) if hasattr(x, "replace") else new) for (path, x), new in filled])


def _stream_values(rngs: PyTree, key: jax.Array | None) -> PyTree:
    """Values for a model's random streams: a key from the stream's path in the model, and a count of 0."""

    def value(path: Any, leaf: Any) -> jax.Array:
        if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.zeros(leaf.shape, leaf.dtype)
        new = stream(required(key), jax.tree_util.keystr(path, simple=True, separator="/"))
        new = new if jax.dtypes.issubdtype(new.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(new)
        return jax.random.split(new, leaf.shape) if leaf.shape else new  # several keys for vmapped layers

    return jax.tree.map_with_path(value, rngs)


def _normalise_over(model: Any, axis: Any) -> None:
    """Makes Flax's batch normalization take the statistics of the global batch, as under all strategies.

    axis: the mapped axis over which other devices have the rest of the batch.
    """
    from flax import nnx

    if axis is None:
        return
    for _, module in nnx.iter_modules(model):
        if isinstance(module, nnx.BatchNorm) and module.axis_name is None:
            module.axis_name = axis
