# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model as pure functions, and helpers shared by the adapters."""

from __future__ import annotations

import functools
import importlib
import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.command_form import with_extra
from jaxbench.core.workload import PyTree
from jaxbench.errors import UserError

# The arguments that tell a model whether it is trained, and their values in training.
TRAINING = {
    "train": True,
    "training": True,
    "is_training": True,
    "deterministic": False,
    "use_running_average": False,
    "inference": False,
}


@dataclass(frozen=True)
class PureModel:
    """A model as pure functions.

    params and model_state are plain nested dictionaries, so checkpoints and freezing patterns look the same for all
    libraries. The libraries' own normalization layers use statistics of the global batch under every strategy.

    init: key -> (params, model_state). model_state: what is not trained, such as running statistics; {} if none.
    run: (params, model_state, x, key or None, whether it is trained) -> (y, model_state).
    """

    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    run: Callable[[PyTree, PyTree, Any, jax.Array | None, bool], tuple[PyTree, PyTree]]

    def apply(
        self, params: PyTree, model_state: PyTree, x: PyTree, key: jax.Array | None = None
    ) -> tuple[PyTree, PyTree]:
        """(y, model_state) in training.

        x: the argument of the model, which may be a dictionary, or a tuple of several arguments.
        key: for random numbers (dropout, noise). None: for a model that draws none.

        Raises:
          UserError: no key for a model that draws.
        """
        return self.run(params, model_state, x, key, True)

    def predict(self, params: PyTree, model_state: PyTree, x: PyTree) -> PyTree:
        """y in inference: no dropout, running statistics. Random numbers, if any, are the same at each call."""
        run = either_form(lambda key: self.run(params, model_state, x, key, False))
        return run(jax.random.PRNGKey(0))[0]


def either_form(function: Any) -> Callable[..., PyTree]:
    """Wraps `function` so that a key given as words (uint32), its last argument, arrives as a typed key.

    A typed key is what ``jax.random.key`` returns. `function` gets the words if it works only with them: older code
    expects a key to be an array of numbers.
    """
    words_work: bool | None = None  # None: not known yet

    def call(*arguments: PyTree) -> PyTree:
        nonlocal words_work
        *others, words = arguments
        # Decided at the first call: trying the typed key each time would trace the function twice.
        if words_work or words is None or jax.dtypes.issubdtype(words.dtype, jax.dtypes.prng_key):
            return function(*arguments)
        try:
            result, words_work = function(*others, jax.random.wrap_key_data(words)), False
        except (TypeError, ValueError, IndexError):  # how JAX refuses a key of the other form
            if words_work is not None:
                raise
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
    """The key of stream `name`, the same in every process."""
    # Not Python's `hash`, which is another number in each process.
    return jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))


def arguments(x: PyTree) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def zeros(example: PyTree) -> PyTree:
    """Arrays of the shapes and dtypes of a tree of jax.ShapeDtypeStruct."""
    return jax.tree.map(lambda aval: jnp.zeros(aval.shape, aval.dtype), example)


def parameters(function: Callable[..., PyTree]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name."""
    return dict(inspect.signature(function).parameters)


def mode(names: Any, *, training: bool) -> dict[str, bool]:
    """The values of the arguments among `names` that tell a model whether it is trained."""
    return {name: value == training for name, value in TRAINING.items() if name in names}


def library(name: str, package: str) -> ModuleType:
    """The module `name`. Raises UserError if its `package` is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UserError(
            f"from_{name} needs the package {package}, which is not installed: {with_extra('adapters')}."
        ) from error


def from_functions(init: Callable[[jax.Array], Any], apply: Callable[..., PyTree]) -> PureModel:
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
    stateful, draws = len(positional) == 4, len(positional) > 2

    def run(
        params: PyTree, model_state: PyTree, x: PyTree, key: jax.Array | None, training: bool
    ) -> tuple[PyTree, PyTree]:
        variables = (params, model_state) if stateful else (params,)
        key_argument = {positional[-1]: required(key)} if draws else {}
        y = apply(*variables, x, **key_argument, **mode(takes, training=training))
        return y if stateful else (y, model_state)

    return PureModel(init if stateful else lambda key: (init(key), {}), run)
