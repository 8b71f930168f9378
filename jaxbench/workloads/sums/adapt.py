# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`from_sums`: an algorithm that repeats a sum over rows, as a workload that every data-parallel strategy can run.

Many algorithms need only sums over their rows, and compute the next state from these (Chu et al., "Map-Reduce for
Machine Learning on Multicore", NIPS 2006). A training step does the same: its gradient is such a sum, and the optimizer
computes the next parameters. So the sums take the place of the gradient here, and strategies, checks, collective counts
and clocks work unchanged.

The parameters are {"state": the algorithm's state, "sums": those of the last step}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec

from jaxbench.core.workload import KEY, Batch, Field, Metrics, PyTree, TrainWorkload
from jaxbench.errors import UserError

SENT = "sums"  # the part of the parameters that has the gradients which devices reduce

State = PyTree
Sums = dict[str, Any]


def from_sums(
    *,
    name: str,
    init: Callable[[jax.Array], State],
    local: Callable[[State, Batch], Sums],
    update: Callable[[State, Sums], State],
    example: Mapping[str, Field],
    **facts: Any,
) -> TrainWorkload:
    """A workload with the step `state = update(state, local(state, rows))`.

    init: key, uint32 (2,) -> state, a tree of float arrays. local: (state, rows) -> a dict of sums over the given rows;
    "loss" is a number that should fall, such as the squared error. update: (state, sums) -> state. It gets the sums
    over all rows divided by the number of rows, without "loss". So regularization is per row, and the same for every
    number of rows. example: the fields of one row. facts: the remaining fields of `TrainWorkload`.

    Raises UserError for sums without a loss, or a state that changes its structure, shapes or dtypes.
    """

    def shapes(state: State) -> Sums:  # of two rows: the shapes of sums do not depend on their number
        avals = {field: jax.ShapeDtypeStruct((2, *f.shape), f.dtype) for field, f in example.items()}
        sums = jax.eval_shape(local, state, avals)
        _require_loss(name, sums)
        return {key: value for key, value in sums.items() if key != "loss"}

    def first(key: jax.Array) -> tuple[PyTree, PyTree]:
        state = init(key)
        # The sums stand among the parameters so that their gradients, the new sums, are what strategies reduce.
        sums = jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.float32), shapes(state))
        return {"state": state, SENT: sums}, {}

    def loss(params: PyTree, model_state: PyTree, rows: Batch, key: jax.Array) -> tuple[jax.Array, tuple[Any, Metrics]]:
        count = len(next(iter(rows.values())))
        # `update` makes the next state from the sums, so the state itself needs no gradient.
        state = jax.lax.stop_gradient(params["state"])
        # Per row, so that the mean over devices, which strategies compute, is that of all rows.
        means = jax.tree.map(lambda x: x.astype(jnp.float32) / count, _in_any_sharding(local)(state, rows))
        value = means.pop("loss")
        return value + _with_gradient(params[SENT], means), (model_state, {})

    return TrainWorkload(
        name=name,
        init=first,
        loss=loss,
        optimizer=_updating(name, update, jax.eval_shape(init, KEY)),
        example=example,
        sent=SENT,
        **{"unit": "rows", **facts},
    )


@jax.custom_vjp
def _with_gradient(probe: PyTree, gradient: PyTree) -> jax.Array:
    """Zero, with `gradient` as its gradient with respect to `probe`."""
    # So the result of `local` arrives where a gradient would, and nothing is differentiated to get it.
    return jnp.zeros(())


def _forward(probe: PyTree, gradient: PyTree) -> tuple[jax.Array, PyTree]:
    return jnp.zeros(()), gradient


def _backward(gradient: PyTree, scale: jax.Array) -> tuple[PyTree, PyTree]:
    # scale: that of the loss (float16), which the optimizer divides out of every gradient.
    return jax.tree.map(lambda x: x * scale, gradient), jax.tree.map(jnp.zeros_like, gradient)


_with_gradient.defvjp(_forward, _backward)


def _in_any_sharding(local: Callable[[State, Batch], Sums]) -> Callable[[State, Batch], Sums]:
    """`local` under explicit sharding: its sums are whole on every device, and the compiler shards the rest."""
    # A product over rows or a scatter has no unique sharding, so each of them would need an explicit one.
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or not mesh.explicit_axes:
        return local
    return jax.sharding.auto_axes(local, axes=mesh.explicit_axes, out_sharding=PartitionSpec())


def _updating(name: str, update: Callable[[State, Sums], State], first: State) -> optax.GradientTransformation:
    """The optimizer that applies `update`: it adds to each parameter the difference from its next value."""
    expected = _described(first)

    def change(grads: PyTree, opt_state: PyTree, params: PyTree | None = None) -> tuple[PyTree, PyTree]:
        assert params is not None
        state = update(params["state"], grads[SENT])
        if _described(state) != expected:
            raise UserError(
                f"update(state, sums) of '{name}' returns {_described(state)}, and its init returns {expected}: return "
                "a state of the same names, shapes and dtypes."
            )
        new = {"state": state, SENT: grads[SENT]}  # a step adds updates, so they are differences
        return jax.tree.map(lambda after, before: after - before, new, params), opt_state

    # It has no state of its own: all of it is in the parameters, which are compared with those of one device.
    return optax.GradientTransformation(lambda params: optax.EmptyState(), change)


def _described(state: State) -> str:
    """The leaves of a state in words, such as "centers float32 (8, 28)"."""
    leaves = jax.tree.leaves_with_path(state)
    named = [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in leaves]
    return ", ".join(f"{path} {jnp.result_type(leaf)} {jnp.shape(leaf)}" for path, leaf in named) or "no arrays"


def _require_loss(name: str, sums: Any) -> None:
    if not (isinstance(sums, dict) and len(sums) > 1 and "loss" in sums and sums["loss"].shape == ()):
        found = ", ".join(map(str, sums)) if isinstance(sums, dict) else type(sums).__name__
        raise UserError(
            f"local(state, rows) of '{name}' returns {found}: return a dict of sums with the scalar 'loss' and at "
            "least one more."
        )
