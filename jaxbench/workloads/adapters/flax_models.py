# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models of Flax NNX and Flax Linen.

The sharding that a model names for its own arrays is ignored: each strategy decides where arrays lie.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp

from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.workload import KEY
from jaxbench.errors import UserError, present
from jaxbench.workloads import sharding_context
from jaxbench.workloads.adapters.pure import (
    Axis,
    PureModel,
    Result,
    arguments,
    mode,
    parameters,
    required,
    stream,
    zeros,
)
from jaxbench.workloads.jaxprs import numbered

if TYPE_CHECKING:  # imported where it is used: it takes a second
    from flax import linen as nn
    from flax import nnx

P = ParamSpec("P")
T = TypeVar("T")


def from_nnx(constructor: Callable[[nnx.Rngs], nnx.Module]) -> PureModel:
    """The PureModel of an NNX module. `constructor`: flax.nnx.Rngs -> nnx.Module; its ``__call__`` takes the batch.

    The module's `train()` selects training, its `eval()` inference. Arguments of ``__call__`` named `train`,
    `deterministic` and so on are passed too, and `rngs`. Random streams are not state: each step draws new ones.
    """
    from flax import nnx

    # The graph is split once, here, and not at every call: walking it in Python makes nnx.jit slow to dispatch.
    graphs: dict[bool, nnx.GraphDef[Any]] = {}
    takes: dict[str, inspect.Parameter] = {}  # filled by `built`, which returns only arrays
    writes_checked = False

    def built() -> tuple[nnx.State, ...]:
        model = constructor(nnx.Rngs(0))
        takes.update(parameters(type(model).__call__))
        model.eval()  # training and inference differ in the graph, not in the values
        graphs[False], *_ = _split(model)
        model.train()
        graphs[True], *values = _split(model)
        return tuple(values)

    # Not nnx.eval_shape, which loses arrays that are no Variables.
    with without_named_axes():
        abstract_params, abstract_rngs, abstract_state = jax.eval_shape(built)  # a large model takes no memory here

    @functools.partial(jax.jit, inline=True)  # so that JAX caches its trace, which many places need
    def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
        with without_named_axes():
            _, params, _, model_state = _split(constructor(nnx.Rngs(key)))
        return nnx.to_pure_dict(params), nnx.to_pure_dict(model_state)

    def run(params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None, training: bool) -> Result:
        nonlocal writes_checked

        def called(params: ArrayTree) -> tuple[nnx.Module, Any, ArrayTree]:
            """(the model, y, the parameters of the model after the call)."""
            rngs = _filled(abstract_rngs, _stream_values(nnx.to_pure_dict(abstract_rngs), key))
            streams = {} if key is None or "rngs" not in takes else {"rngs": nnx.Rngs(stream(key, "rngs"))}
            values = _filled(abstract_params, params), rngs, _filled(abstract_state, model_state)
            model = nnx.merge(graphs[training], *values)
            # `model` is made anew at each call, so it can be modified.
            _normalise_over(model, sharding_context.current().axis)
            with without_named_axes():
                y = model(*arguments(x), **mode(takes, training=training), **streams)
            return model, y, _restricted(params, nnx.to_pure_dict(nnx.state(model, nnx.Param)))

        model, y, after = called(params)
        if training and not writes_checked:
            # Once is enough: every call of a module writes the same parameters.
            _refuse_writes(params, after, lambda params: called(params)[2])
            writes_checked = True
        kinds = nnx.Not(nnx.Any(nnx.Param, nnx.RngState, nnx.Intermediate))  # Intermediate: sown values are not state
        return y, _restricted(nnx.to_pure_dict(abstract_state), nnx.to_pure_dict(nnx.state(model, kinds)))

    named = ((path, leaf.get_metadata("out_sharding", None)) for path, leaf in nnx.to_flat_state(abstract_params))
    return PureModel(with_axes_noted(init, {"/".join(map(str, path)): axes for path, axes in named if axes}), run)


def _refuse_writes(before: ArrayTree, after: ArrayTree, again: Callable[[ArrayTree], ArrayTree]) -> None:
    """Raises UserError for a parameter that the model itself changes: a step would lose what it wrote.

    again: before -> after. It is traced only where a transformation inside the model, such as nnx.remat, returned all
    parameters as new arrays.
    """
    # Most models return the very arrays that they were given, which needs no tracing.
    same = map(operator.is_, jax.tree.leaves(before), jax.tree.leaves(after))
    if all(same):
        return
    # Equal values under other names are no write: value numbering tells them from changed ones.
    values = numbered(jax.make_jaxpr(again)(before).jaxpr)
    for index, (path, _) in enumerate(jax.tree.leaves_with_path(before)):
        if values[index] != ("argument", index):
            raise UserError(
                f"the model writes into its parameter '{jax.tree_util.keystr(path, simple=True, separator='/')}' while "
                "it is called, and a step keeps only what the optimizer changes: compute with the new value without "
                "assigning it to the nnx.Param, or keep it in an nnx.Variable of another type."
            )


def _restricted(wanted: ArrayTree, found: ArrayTree) -> ArrayTree:
    """The entries of `found` that are also in `wanted`: variables that each call creates are not state."""
    if not isinstance(wanted, dict):
        return found
    other = entries(found)
    return {name: _restricted(wanted[name], other[name]) for name in wanted if name in other}


def _split(model: nnx.Module) -> tuple[nnx.GraphDef[Any], nnx.State, nnx.State, nnx.State]:
    """(graph, parameters, random streams, everything else)."""
    from flax import nnx

    graph, params, *rest = nnx.split(model, nnx.Param, nnx.RngState, ...)
    return graph, params, rest[0], rest[1]


def _filled(abstract: nnx.State, values: ArrayTree) -> nnx.State:
    """A copy of an nnx.State with its leaves replaced by `values`."""
    from flax import nnx

    # Flax's own function for this does not take tuples as keys, which nnx.WeightNorm has.
    flat = nnx.to_flat_state(abstract)
    found = [functools.reduce(lambda at, name: at[name], path, values) for path, _ in flat]
    filled = zip(flat, found, strict=True)
    return nnx.from_flat_state([(path, x.replace(new) if hasattr(x, "replace") else new) for (path, x), new in filled])


def _stream_values(rngs: T, key: jax.Array | None) -> T:
    """Values for a model's random streams: a key from the stream's path in the model, and a count of 0."""

    def value(path: jax.tree_util.KeyPath, leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jnp.zeros(leaf.shape, leaf.dtype)  # the count: each step has a new key, so it starts at 0
        new = stream(required(key), jax.tree_util.keystr(path, simple=True, separator="/"))
        new = new if jax.dtypes.issubdtype(new.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(new)
        return jax.random.split(new, leaf.shape) if leaf.shape else new  # several keys for vmapped layers

    return jax.tree.map_with_path(value, rngs)


def _normalise_over(model: nnx.Module, axis: Any) -> None:
    """Makes Flax's batch normalization take the statistics of the global batch, as under all strategies.

    axis: the mapped axis over which other devices have the rest of the batch.
    """
    from flax import nnx

    if axis is None:
        return
    for _, module in nnx.iter_modules(model):
        if isinstance(module, nnx.BatchNorm) and module.axis_name is None:  # else the user chose
            module.axis_name = axis


Run = Callable[..., tuple[Any, Mapping[str, ArrayTree]]]  # the `apply` of a module: (y, what has changed)


def from_linen(module: nn.Module, example: ArrayTree) -> PureModel:
    """The PureModel of a Linen module. `module`: flax.linen.Module.

    `example`: shape and dtype (jax.ShapeDtypeStruct) of the input batch, or a tuple or dictionary of several. The
    number of examples does not matter.

    Arguments of ``__call__``, or fields of the module, named `train`, `deterministic` and so on are passed, and all
    random streams that it asks for. Its state is the collections that it needs, not those that it only sows into.
    """
    from flax import linen as nn

    inputs, fields = arguments(example), {field.name for field in dataclasses.fields(module)}
    takes = set(parameters(type(module).__call__)) - fields  # Flax accepts it from only one of the two
    # A field is part of the module, so each of its values needs a module of its own.
    modules: dict[bool, Any] = {t: module.clone(**mode(fields, training=t)) for t in (False, True)}

    def boxed(key: jax.Array) -> dict[str, Any]:  # with the mesh axes that the model names, as boxes around arrays
        return modules[True].init(key, *zeros(inputs), **mode(takes, training=True))

    def variables(key: jax.Array) -> dict[str, ArrayTree]:
        with without_named_axes():
            return nn.meta.unbox(boxed(key))

    def call(
        values: Mapping[str, ArrayTree], x: ArrayTree, rngs: dict[str, jax.Array], training: bool
    ) -> tuple[Any, Mapping[str, ArrayTree]]:
        mutable = [name for name in values if name != "params"]  # Linen returns only collections that may change
        flags = mode(takes, training=training)
        with without_named_axes(), nn.intercept_methods(_adapted(sharding_context.current().axis)):
            return modules[training].apply(values, *arguments(x), rngs=rngs, mutable=mutable, **flags)

    avals = jax.eval_shape(variables, KEY)
    streams = _streams(call, avals, inputs)
    needed = _needed(call, avals, inputs, streams)

    def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
        initial = variables(key)  # a module without parameters has no "params"
        return initial.get("params", {}), {name: initial[name] for name in needed}

    def run(params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None, training: bool) -> Result:
        # A module may check for a dropout stream before it asks for one.
        names = () if key is None and not streams else ("dropout", *streams)
        rngs = {name: stream(required(key), name) for name in names}
        y, changed = call({"params": params, **entries(model_state)}, x, rngs, training)
        return y, {**entries(model_state), **changed}

    return PureModel(with_axes_noted(init, _axes(jax.eval_shape(boxed, KEY).get("params", {}))), run)


def _axes(boxed: object) -> dict[str, tuple[str | None, ...]]:
    """The mesh axes that a model names, by parameter."""
    from flax import linen as nn

    found = jax.tree.leaves_with_path(boxed, is_leaf=lambda leaf: isinstance(leaf, nn.Partitioned))
    named = [(path, leaf.names) for path, leaf in found if isinstance(leaf, nn.Partitioned)]
    return {jax.tree_util.keystr(path, simple=True, separator="/"): names for path, names in named}


def _streams(call: Run, avals: Mapping[str, ArrayTree], inputs: ArrayTree) -> tuple[str, ...]:
    """The random streams that a module asks for in training, found by tracing it and adding each missing one."""
    from flax import errors

    found: list[str] = []
    while True:  # each turn finds one: Flax raises at the first that is missing
        try:
            _trace(call, avals, inputs, found)
            return tuple(found)
        except errors.InvalidRngError as error:
            # Flax names the missing stream only in its message.
            missing = re.search(r'PRNG for "([^"]+)"', str(error))
            if missing is None or missing[1] in found:
                raise
            found.append(missing[1])


def _needed(call: Run, avals: Mapping[str, ArrayTree], inputs: ArrayTree, streams: tuple[str, ...]) -> tuple[str, ...]:
    """The collections without which a module does not run. Collections that it only sows into are not among them."""
    from flax import errors

    found = []
    for name in avals:  # without each in turn: `init` also returns what was only sown
        try:
            if name != "params":
                _trace(call, {other: aval for other, aval in avals.items() if other != name}, inputs, streams)
        except (errors.FlaxError, AttributeError, TypeError):  # the last two: a missing variable is read
            found.append(name)
    return tuple(found)


def _trace(call: Run, avals: Mapping[str, ArrayTree], inputs: ArrayTree, streams: Iterable[str]) -> None:
    """Traces a call by shapes, to see what it needs."""
    rngs = dict.fromkeys(streams, KEY)
    jax.eval_shape(lambda *given: call(*given, training=True), avals, inputs, rngs)


def _adapted(axis: Axis) -> Callable[..., Any]:
    """An interceptor of Flax's layers. axis: the mapped axis over which other devices have the rest of the batch."""
    from flax import linen as nn

    def interceptor(
        call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context: nn.module.InterceptorContext
    ) -> Any:
        layer = context.module
        if context.method_name == "__call__" and isinstance(layer, nn.Dropout):
            return _dropped(layer, call, *args, **kwargs)
        # Statistics of the global batch, so that a layer is the same function under all strategies.
        normalises = isinstance(layer, nn.BatchNorm) and context.method_name == "__call__"
        if axis is None or not normalises or layer.axis_name is not None:
            return call(*args, **kwargs)
        scope = present(layer.scope)  # it is being called
        # Linen modules are frozen: a clone with the axis, on the same scope, so that it finds the same variables.
        return layer.clone(parent=scope.rewound(), axis_name=axis)(*args, **kwargs)

    return interceptor


def _dropped(
    layer: nn.Dropout,
    call: Callable[..., jax.Array],
    inputs: jax.Array,
    deterministic: bool | None = None,
    rng: jax.Array | None = None,
) -> jax.Array:
    """Dropout with a mask that has the sharding of its input. call: Flax's own dropout, which does not shard it."""
    from flax import linen as nn

    sharding = jax.typeof(inputs).sharding
    fixed = nn.merge_param("deterministic", layer.deterministic, deterministic)
    # At rate 0 and 1 Flax draws no mask, and must not use up a key here either.
    if not any(sharding.spec) or fixed or not 0 < layer.rate < 1:
        return call(inputs, deterministic=deterministic, rng=rng)
    drop = nn.Dropout(layer.rate, layer.broadcast_dims, deterministic=False)
    masked = jax.sharding.auto_axes(lambda x, rng: drop.apply({}, x, rng=rng), out_sharding=sharding)
    return masked(inputs, layer.make_rng(layer.rng_collection) if rng is None else rng)


@contextlib.contextmanager
def without_named_axes() -> Iterator[None]:
    """A context in which Flax ignores the mesh axes of a model's variables and its constraints on activations.

    They name axes of the model's own mesh, which the mesh of a strategy does not have.
    """
    from flax import nnx
    from flax.core import meta

    original, sharding = meta.get_global_mesh, jax.core.Tracer.sharding
    meta.get_global_mesh = lambda: None  # Linen asks it before each constraint, and unlike NNX has no switch
    # When NNX assigns to a variable, as nnx.Rngs does at each draw, it asks tracers for a sharding that they lack. In
    # the AttributeError, which NNX ignores, JAX before 0.12 lists all operations that led to the tracer.
    jax.core.Tracer.sharding = property()  # type: ignore[method-assign, assignment]
    try:
        with nnx.use_eager_sharding(False):
            yield
    finally:
        meta.get_global_mesh = original
        jax.core.Tracer.sharding = sharding  # type: ignore[method-assign]


def with_axes_noted(init: Callable[P, T], names: Mapping[str, Iterable[str | None]]) -> Callable[P, T]:
    """`init` with the removed axes attached: path of a parameter -> its axis names."""
    # An attribute survives the wrappers of `init` (`functools.wraps`), so that a report can name the axes.
    init.axes = {path: ", ".join(map(str, axes)) for path, axes in names.items()}  # type: ignore[attr-defined]
    return init


def named_axes_sentence(init: Callable[..., object]) -> str:
    """A sentence about the axes that were removed from the model of `init`; "" if none were."""
    axes: dict[str, str] = getattr(init, "axes", {})
    if not axes:
        return ""
    more = f"; and {len(axes) - 4} more" if len(axes) > 4 else ""
    named = "; ".join(f"{path}: {names}" for path, names in list(axes.items())[:4])
    return (
        f"The model names mesh axes for {len(axes)} of its parameters ({named}{more}). They are ignored, because each "
        "strategy decides where arrays lie."
    )
