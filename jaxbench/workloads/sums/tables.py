# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tables: one drawn in the shape of Higgs, whose true function is known, and a check of tables that are brought.

Higgs: 11 million rows of 28 columns, two classes (Baldi, Sadowski and Whiteson, "Searching for exotic particles in
high-energy physics with deep learning", Nature Communications 5, 2014).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError

COLUMNS = 28


def true_logit(x_RC: jax.Array) -> jax.Array:
    """The log odds of class 1, (rows,): products, a step and a bend of six columns; the others are noise."""
    a, b, c, d, e, f = (x_RC[:, column] for column in range(6))
    return 1.5 * a * b + 2.0 * jnp.where(c > 0.5, 1.0, -0.5) + jnp.abs(d) - 0.8 + 0.7 * e * (f > 0)


def higgs_like(key: jax.Array, rows: int) -> jax.Array:
    """(rows, COLUMNS + 1): normal columns, then the class, 0 or 1, drawn with the odds of `true_logit`."""
    columns, classes = jax.random.split(key)
    x_RC = jax.random.normal(columns, (rows, COLUMNS))
    odds = jax.nn.sigmoid(true_logit(x_RC))
    return jnp.concatenate([x_RC, jax.random.bernoulli(classes, odds)[:, None].astype(jnp.float32)], axis=1)


def checked(columns: Any, target: Any, *, classes: bool, names: tuple[str, ...] = ()) -> np.ndarray:
    """A table as float32 (rows, columns + 1), the target last. columns: (rows, columns). target: (rows,).

    classes: whether the target is a class. Raises UserError for a table without rows, with text or missing values, or
    with one class only.
    """
    columns, target = np.asarray(columns), np.asarray(target)
    if columns.ndim != 2 or target.shape != columns.shape[:1]:
        raise UserError(
            f"a table has columns of shape {columns.shape} and a target of shape {target.shape}: give (rows, columns) "
            "and (rows,)."
        )
    if not len(columns):
        raise UserError("the table has no rows: give at least 2.")
    numbers = [_number(columns[:, i], names[i] if names else f"number {i + 1}") for i in range(columns.shape[1])]
    table = np.stack([*numbers, _number(target, "target")], axis=1)
    if classes and len(np.unique(table[:, -1])) < 2:
        raise UserError(f"the target has one class only, {table[0, -1]:g}: give rows of at least two classes.")
    return table


def _number(column: np.ndarray, name: str) -> np.ndarray:
    """A column as float32. Raises UserError for text and missing values."""
    try:
        numbers = column.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"the column {name} has text, {error}: give numbers, such as a code for each word.") from error
    if missing := np.count_nonzero(~np.isfinite(numbers)):
        raise UserError(
            f"the column {name} has {missing:,} values that are missing or not finite: fill them, such as with the "
            "column's median."
        )
    return numbers
