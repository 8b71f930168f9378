# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model as pure functions: of plain functions, of Equinox and of Haiku; and helpers shared by the adapters."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import zlib
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.command_form import with_extra
from jaxbench.core.trees import ArrayTree, entries
from jaxbench.core.workload import KEY
from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context

T = TypeVar("T")
Axis = str | tuple[str, ...] | None  # mapped axes

# The arguments that tell a model whether it is trained, and their values in training.
TRAINING = {
    "train": True,
    "training": True,
    "is_training": True,
    "deterministic": False,
    "use_running_average": False,
    "inference": False,
}


Result = tuple[Any, ArrayTree]  # (y, model_state). Only the model and its loss know what y is


@dataclass(frozen=True)
class PureModel:
    """A model as pure functions.

    params and model_state are plain nested dictionaries, so checkpoints and freezing patterns look the same for all
    libraries. The libraries' own normalization layers use statistics of the global batch under every strategy.

    init: key -> (params, model_state). model_state: what is not trained, such as running statistics; {} if none.
    run: (params, model_state, x, key or None, whether it is trained) -> (y, model_state).
    """

    init: Callable[[jax.Array], tuple[ArrayTree, ArrayTree]]
    run: Callable[[Any, Any, Any, jax.Array | None, bool], Result]

    def apply(self, params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None = None) -> Result:
        """(y, model_state) in training.

        x: the argument of the model, which may be a dictionary, or a tuple of several arguments.
        key: for random numbers (dropout, noise). None: for a model that draws none.

        Raises:
          UserError: no key for a model that draws.
        """
        return self.run(params, model_state, x, key, True)

    def predict(self, params: ArrayTree, model_state: ArrayTree, x: ArrayTree) -> Any:
        """y in inference: no dropout, running statistics. Random numbers, if any, are the same at each call."""
        # A key even in inference: a model may draw there, too.
        run = either_form(lambda key: self.run(params, model_state, x, key, False))
        return run(jax.random.PRNGKey(0))[0]


def either_form(function: Callable[..., T]) -> Callable[..., T]:
    """Wraps `function` so that a key given as words (uint32), its last argument, arrives as a typed key.

    A typed key is what ``jax.random.key`` returns. `function` gets the words if it works only with them.
    """
    # A state holds words, because NumPy and checkpoints have no typed keys. Newer models expect a typed key, and older
    # ones an array of numbers.
    words_work: bool | None = None  # None: not known yet

    def call(*arguments: Any) -> T:
        nonlocal words_work
        *others, words = arguments
        # Decided at the first call: trying the typed key each time would trace the function twice.
        if words_work or words is None or jax.dtypes.issubdtype(words.dtype, jax.dtypes.prng_key):
            return function(*arguments)
        try:
            result, words_work = function(*others, jax.random.wrap_key_data(words)), False
        except (TypeError, ValueError, IndexError):  # how JAX refuses a key of the other form
            if words_work is not None:
                raise  # it took a typed key before, so this is an error of its own
            result, words_work = function(*arguments), True
        return result

    return functools.wraps(function)(call) if callable(function) else function


def required(key: jax.Array | None) -> jax.Array:
    """`key`, for a model that draws random numbers. Raises UserError if it is None."""
    if key is None:
        raise UserError(
            "this model draws random numbers: pass it the loss's key, model.apply(params, model_state, x, key)."
        )
    return key


def stream(key: jax.Array, name: str) -> jax.Array:
    """The key of stream `name`."""
    # Not Python's `hash`, which is another number in each process: all processes must draw the same.
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))


def arguments(x: ArrayTree) -> tuple[ArrayTree, ...]:
    return x if isinstance(x, tuple) else (x,)


def zeros(example: T) -> T:
    """Arrays of the shapes and dtypes of a tree of jax.ShapeDtypeStruct."""
    return jax.tree.map(lambda aval: jnp.zeros(aval.shape, aval.dtype), example)


def parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name."""
    return dict(inspect.signature(function).parameters)


def mode(names: Collection[str], *, training: bool) -> dict[str, Any]:
    """The values of the arguments among `names` that tell a model whether it is trained."""
    return {name: value == training for name, value in TRAINING.items() if name in names}


def library(name: str, package: str) -> ModuleType:
    """The module `name`. Raises UserError if its `package` is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise  # the package is there, and something that it imports is not
        raise UserError(
            f"from_{name} needs the package {package}, which is not installed: {with_extra('adapters')}."
        ) from error


def from_functions(init: Callable[[jax.Array], Any], apply: Callable[..., Any]) -> PureModel:
    """The PureModel of two functions. The signature of `apply` determines the kind of model:

    - ``apply(params, x) -> y``, with ``init(key) -> params``
    - ``apply(params, x, key) -> y`` for a model that draws random numbers, with the same `init`
    - ``apply(params, model_state, x, key) -> (y, model_state)``, with ``init(key) -> (params, model_state)``

    Arguments may have any name. An argument named `train` (or as in `pure.TRAINING`) is passed by name: True in
    training, False in inference. Arguments with default values are ignored, except `key`.

    Raises:
      UserError: `apply` takes other arguments.
    """
    takes = parameters(apply)
    empty = inspect.Parameter.empty
    positional = [name for name, x in takes.items() if name not in TRAINING and (x.default is empty or name == "key")]
    if len(positional) not in (2, 3, 4):
        raise UserError(
            "from_functions: apply takes (params, x), (params, x, key) or (params, model_state, x, key), and yours "
            f"takes ({', '.join(positional)})."
        )
    stateful, is_random = len(positional) == 4, len(positional) > 2

    def run(params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None, training: bool) -> Result:
        variables = (params, model_state) if stateful else (params,)
        # By name, because a `train` may stand before it in the signature.
        key_argument = {positional[-1]: required(key)} if is_random else {}
        y = apply(*variables, x, **key_argument, **mode(takes, training=training))
        return y if stateful else (y, model_state)

    return PureModel(init if stateful else lambda key: (init(key), {}), run)


def from_equinox(constructor: Callable[[jax.Array], Any]) -> PureModel:
    """The PureModel of an Equinox module. `constructor`: key -> eqx.Module, which takes one example; it is vmapped.

    Arrays of floats are trained. Other arrays are the model's state, which never changes. Everything else is part of
    the program. Each example gets its own key if ``__call__`` takes `key`. Inference is `eqx.nn.inference_mode`.

    Raises:
      UserError: Equinox is not installed, or a layer keeps an `eqx.nn.State`.
    """
    eqx = library("equinox", "equinox")  # of the extra `adapters`
    abstract = eqx.filter_eval_shape(constructor, KEY)
    _refuse_states(eqx, abstract)
    takes = parameters(type(abstract).__call__)
    trained, other, static = _parts(eqx, abstract)
    # Both forms are made once here: whether it is trained is a Python value, so that each form is traced as its own
    # program.
    statics = {training: eqx.nn.inference_mode(static, not training) for training in (False, True)}

    def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
        trained, other, _ = _parts(eqx, constructor(key))
        return _by_path(trained), _by_path(other)

    def run(params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None, training: bool) -> Result:
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
    def stateful(leaf: object) -> bool:
        return isinstance(leaf, (eqx.nn.State, eqx.nn.StateIndex))

    if any(map(stateful, jax.tree.leaves(made, is_leaf=stateful))):
        raise UserError(
            "from_equinox takes no layers that keep an eqx.nn.State, such as eqx.nn.BatchNorm: use eqx.nn.GroupNorm or "
            "eqx.nn.LayerNorm."
        )


def _parts(eqx: Any, model: Any) -> tuple[Any, Any, Any]:
    """(arrays of floats, other arrays, everything else), each with None in place of the others."""

    def array(leaf: object) -> bool:  # also of a model of shapes, which `eqx.is_array` denies
        return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))

    arrays, static = eqx.partition(model, array)
    return *eqx.partition(arrays, lambda leaf: jnp.issubdtype(leaf.dtype, jnp.inexact)), static


def _path_names(path: jax.tree_util.KeyPath) -> list[str]:
    return [jax.tree_util.keystr((part,), simple=True) for part in path]


def _by_path(tree: object) -> ArrayTree:
    """The arrays of a model as nested dictionaries: {"layers": {"0": {"weight": ...}}}."""
    nested: dict[str, Any] = {}
    for path, leaf in jax.tree.leaves_with_path(tree):
        at, *names = nested, *_path_names(path)
        for name in names[:-1]:
            at = at.setdefault(name, {})
        at[names[-1]] = leaf
    return nested


def _filled(abstract: T, nested: ArrayTree) -> T:
    """The inverse of `_by_path`: `abstract` with the arrays of `nested`."""

    def found(path: jax.tree_util.KeyPath, _: object) -> ArrayTree:
        at = nested
        for name in _path_names(path):
            at = entries(at)[name]
        return at

    return jax.tree.map_with_path(found, abstract)


def from_haiku(function: Any, example: ArrayTree) -> PureModel:
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
    takes, transformed = parameters(function), hk.transform_with_state(function)  # with state, also if it has none

    def init(key: jax.Array) -> tuple[ArrayTree, ArrayTree]:
        # In training mode: some layers, such as BatchNorm, make their state only there.
        return transformed.init(key, *zeros(arguments(example)), **mode(takes, training=True))

    def run(params: ArrayTree, model_state: ArrayTree, x: ArrayTree, key: jax.Array | None, training: bool) -> Result:
        with _normalising_over(hk, sharding_context.current().axis):
            return transformed.apply(params, model_state, key, *arguments(x), **mode(takes, training=training))

    return PureModel(init, run)


def _normalising_over(hk: Any, axis: Axis) -> AbstractContextManager[object]:
    """A context in which Haiku's batch normalization takes the statistics of the global batch under all strategies.

    axis: the mapped axis over which other devices have the rest of the batch.
    """

    def interceptor(call: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], context: Any) -> T:
        layer = context.module  # the function makes a new one at each call, so it can be modified
        normalises = isinstance(layer, hk.BatchNorm) and context.method_name == "__call__"
        if normalises and layer.cross_replica_axis is None:  # else the user chose
            layer.cross_replica_axis = axis
        return call(*args, **kwargs)

    return contextlib.nullcontext() if axis is None else hk.intercept_methods(interceptor)
