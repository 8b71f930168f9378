# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Models that are two plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax

from jaxbench.errors import UserError
from jaxbench.workloads.adapters.pure import TRAINING, PureModel, mode, parameters, required
from jaxbench.workloads.base import PyTree


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
    stateful, draws = len(positional) == 4, len(positional) > 2

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        variables = (params, model_state) if stateful else (params,)
        key_argument = {positional[-1]: required(key)} if draws else {}
        y = apply(*variables, x, **key_argument, **mode(takes, training=training))
        return y if stateful else (y, model_state)

    return PureModel(init if stateful else lambda key: (init(key), {}), run)
