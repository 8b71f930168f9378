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
    """`apply` says by its arguments what the model is; names are free, except for those below:

    - ``apply(params, x) -> y``, with ``init(key) -> params``
    - ``apply(params, x, key) -> y`` for a model that draws random numbers, with the same `init`
    - ``apply(params, model_state, x, key) -> (y, model_state)``, with ``init(key) -> (params, model_state)``

    An argument named `train` (or as in `pure.TRAINING`) is given by name: True in training, False in inference. One
    with a default value is left alone, unless it is named `key`.

    Raises:
      UserError: `apply` takes something else.
    """
    takes = parameters(apply)
    asked = [name for name, one in takes.items() if one.default is inspect.Parameter.empty or name == "key"]
    asked = [name for name in asked if name not in TRAINING]
    if len(asked) not in (2, 3, 4):
        raise UserError(
            "from_functions: apply takes (params, x), (params, x, key) or (params, model_state, x, key), and yours "
            f"takes ({', '.join(asked)})."
        )
    stateful, draws = len(asked) == 4, len(asked) > 2

    def run(params: PyTree, model_state: PyTree, x: Any, key: jax.Array | None, training: bool) -> tuple[Any, PyTree]:
        given = (params, model_state) if stateful else (params,)
        drawn_from = {asked[-1]: required(key)} if draws else {}
        y = apply(*given, x, **drawn_from, **mode(takes, training=training))
        return y if stateful else (y, model_state)

    return PureModel(init if stateful else lambda key: (init(key), {}), run)
