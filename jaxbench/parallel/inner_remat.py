# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Keeps the recomputation that a model asks for inside a strategy's own recomputation.

`jax.checkpoint` applies its policy to the checkpoints inside it too. A strategy that stores everything except gathered
parameters would therefore also store what the model wants to recompute. Here each inner checkpoint becomes a function
with its own backward pass. The outer checkpoint then sees only its arguments and what its own policy stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core

_REMAT = ("checkpoint", "remat2", "remat")  # the primitive's names in several versions of JAX


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, with checkpoints that keep their own policy inside another checkpoint.

    This holds for checkpoints at the top level of `function`; checkpoints inside a loop do not change.
    """

    def run(*args: Any) -> Any:
        closed, out = jax.make_jaxpr(function, return_shape=True)(*args)
        if not any(equation.primitive.name in _REMAT for equation in closed.jaxpr.eqns):
            return function(*args)
        return jax.tree.unflatten(jax.tree.structure(out), _evaluate(closed, jax.tree.leaves(args)))

    return run


def _evaluate(closed: core.ClosedJaxpr, args: list[Any]) -> list[Any]:
    jaxpr = closed.jaxpr
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))
    for equation in jaxpr.eqns:
        values = [atom.val if isinstance(atom, core.Literal) else known[atom] for atom in equation.invars]
        if equation.primitive.name in _REMAT:
            made = _recomputed(equation.params)(*values)
        else:
            with equation.ctx.manager:  # such as the precision of products
                made = equation.primitive.bind(*values, **equation.primitive.get_bind_params(equation.params))
        known.update(zip(equation.outvars, made if equation.primitive.multiple_results else [made], strict=True))
    return [atom.val if isinstance(atom, core.Literal) else known[atom] for atom in jaxpr.outvars]


def _recomputed(params: dict[str, Any]) -> Callable[..., Any]:
    """The body of a checkpoint, with a backward pass of its own that gets what the checkpoint's policy stores."""
    body = core.jaxpr_as_fun(core.ClosedJaxpr(params["jaxpr"], ()))
    inner = jax.checkpoint(body, policy=params["policy"], prevent_cse=params["prevent_cse"])

    @jax.custom_vjp
    def run(*args: Any) -> Any:
        return inner(*args)

    def forward(*args: Any) -> tuple[Any, Any]:
        return jax.vjp(inner, *args)

    def backward(stored: Any, gradient: Any) -> Any:
        return stored(gradient)

    run.defvjp(forward, backward)
    return run
