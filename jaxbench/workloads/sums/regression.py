# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Linear regression by the normal equations, and logistic regression by L-BFGS.

A row is its columns and, as the last one, the target. Both models have an intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Field, Metrics, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.workloads.sums import adapt
from jaxbench.workloads.sums.adapt import Params, from_sums

Draw = Callable[[jax.Array, int], jax.Array]
MEMORY = 10  # pairs of differences that L-BFGS keeps: optax's and SciPy's default


def with_intercept(table_RC: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits a table into (columns with ones in place of the target, (rows, columns + 1); the target, (rows,))."""
    ones = jnp.ones_like(table_RC[:, -1:])
    return jnp.concatenate([table_RC[:, :-1], ones], axis=1), table_RC[:, -1]


def ridge(name: str, *, columns: int, l2: float, draw: Draw, **facts: Any) -> TrainWorkload:
    """Squared error with a penalty of `l2` |weights|^2 per row. One step gives the answer; further steps repeat it.

    For its accuracy, a prediction counts as the nearer class, 0 or 1.
    """

    def local(state: dict[str, jax.Array], rows: Batch) -> dict[str, jax.Array]:
        x_RC, y_R = with_intercept(rows["row"])
        residual_R = x_RC @ state["weights"] - y_R
        return {"xx": x_RC.T @ x_RC, "xy": x_RC.T @ y_R, "loss": jnp.sum(residual_R**2)}

    def update(state: dict[str, jax.Array], sums: dict[str, jax.Array]) -> dict[str, jax.Array]:
        penalty = jnp.full(columns + 1, l2).at[-1].set(0.0)  # not of the intercept
        return {"weights": jnp.linalg.solve(sums["xx"] + jnp.diag(penalty), sums["xy"])}

    def evaluate(params: Params, model_state: ArrayTree, rows: Batch) -> Metrics:
        x_RC, y_R = with_intercept(rows["row"])
        found_R = x_RC @ params["state"]["weights"]
        right = jnp.mean((found_R > 0.5) == (y_R > 0.5), dtype=jnp.float32)
        return {"loss": jnp.mean((found_R - y_R) ** 2), "accuracy": right}

    return from_sums(
        name=name,
        evaluate=evaluate,
        init=lambda key: {"weights": jnp.zeros(columns + 1)},
        local=local,
        update=update,
        example={"row": Field((columns + 1,), draw=draw)},
        flops_per_example=2.0 * (columns + 1) ** 2 + 4.0 * (columns + 1),  # X'X; X'y and the prediction
        tolerance=1e-4,
        tolerance_reason="solving the normal equations multiplies rounding by the condition of X'X",
        **facts,
    )


def logistic(name: str, *, columns: int, l2: float, draw: Draw, **facts: Any) -> TrainWorkload:
    """Logistic regression of a target in {0, 1}; each step is one of L-BFGS, of length 1 and without a line search.

    The sum over rows is the gradient, so this is ordinary training: 4 (columns + 1) FLOPs per row.
    """

    def loss(
        params: dict[str, jax.Array], model_state: ArrayTree, rows: Batch, key: jax.Array
    ) -> tuple[jax.Array, tuple[ArrayTree, Metrics]]:
        x_RC, y_R = with_intercept(rows["row"])
        logits_R = x_RC @ params["weights"]
        penalty = l2 * jnp.sum(params["weights"][:-1] ** 2) / 2
        right = jnp.mean((logits_R > 0) == (y_R > 0.5), dtype=jnp.float32)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits_R, y_R)) + penalty, (model_state, {"accuracy": right})

    return TrainWorkload(
        name=name,
        init=lambda key: ({"weights": jnp.zeros(columns + 1)}, {}),
        loss=loss,
        # Without a line search, which needs the loss as a function: a step passes an optimizer only gradients.
        optimizer=optax.lbfgs(1.0, memory_size=MEMORY, linesearch=None),
        example={"row": Field((columns + 1,), draw=draw)},
        flops_per_example=4.0 * (columns + 1),
        unit="rows",
        tolerance=1e-3,
        tolerance_reason="L-BFGS divides by differences of gradients, so last-bit differences grow",
        **facts,
    )


def training(
    kind: Callable[..., TrainWorkload], name: str, table: adapt.Table, *, l2: float, seed: int
) -> TrainWorkload:
    """`ridge` or `logistic` regression of a table's class on its standardized columns.

    Raises UserError for more than two classes.
    """
    if table.classes > 2:
        raise UserError(
            f"{table.name} has {table.classes} classes, and this regression is of two: give a table of two, such as "
            "breast_cancer, or train gbdt."
        )
    columns = table.rows.shape[1] - 1

    # For compiling and checks, which need rows before the table is read: a class that the first column decides.
    def draw(key: jax.Array, rows: int) -> jax.Array:
        x_RC = jax.random.normal(key, (rows, columns))
        return jnp.concatenate([x_RC, (x_RC[:, :1] > 0).astype(jnp.float32)], axis=1)

    return kind(name, columns=columns, l2=l2, draw=draw, data=lambda: adapt.standardized(table, seed))
