# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Tables: a synthetic table in the shape of Higgs with a known true function, those of scikit-learn, and your own.

Higgs: 11 million rows of 28 columns, two classes (Baldi, Sadowski and Whiteson, "Searching for exotic particles in
high-energy physics with deep learning", Nature Communications 5, 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.workload import Dataset
from jaxbench.errors import UserError, did_you_mean
from jaxbench.workloads.data.order import permutation

COLUMNS = 28  # of Higgs
DRAWN, DRAWN_ROWS = "higgs_like", 81_920  # 65,536 = 2^16 to train on, and a fifth to test on
TEST_SHARE = 0.2
CARRIED = ("breast_cancer", "digits", "iris", "wine")  # with scikit-learn: tables with classes, without a network


@dataclass(frozen=True)
class Table:
    """rows: float32 (rows, columns + 1), the class last, a number in [0, classes)."""

    name: str
    rows: np.ndarray
    classes: int


def load(name: str, path: str = "", *, seed: int = 0) -> Table:
    """The table of this name, or of a .csv file with a line of names and the class in the last column.

    Raises UserError for an unknown name, for a file of another kind, and for a table that `checked` refuses.
    """
    if path:
        return _of_csv(Path(path).expanduser())
    if name == DRAWN:
        drawn = np.asarray(higgs_like(jax.random.PRNGKey(seed), DRAWN_ROWS))
        return Table("a table drawn in the shape of Higgs", drawn, 2)
    if name not in CARRIED:
        raise UserError(f"--config.model.table={name} is unknown: {did_you_mean(name, [DRAWN, *CARRIED])}")
    from sklearn import datasets  # late: it takes a second to import

    columns, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _coded(name, checked(columns, target))


def given(config: Any) -> bool:
    """Whether the config names a table, by name or as a file."""
    return bool(config.model.table or config.data.path)


def divided(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(the rows to train on, the rows to test on: a fifth of all)."""
    order = permutation(len(table.rows), seed)
    cut = max(1, round(TEST_SHARE * len(order)))
    return table.rows[order[cut:]], table.rows[order[:cut]]


def standardized(table: Table, seed: int) -> Dataset:
    """`divided`, with columns scaled to mean 0 and standard deviation 1 over the training rows."""
    train, test = divided(table, seed)
    mean, spread = train[:, :-1].mean(axis=0), train[:, :-1].std(axis=0)
    scale = np.where(spread > 0, spread, 1)  # a constant column becomes 0

    def scaled(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {"row": np.column_stack([(rows[:, :-1] - mean) / scale, rows[:, -1]]).astype(np.float32)}

    return Dataset(scaled(train), scaled(test), table.name)


def _of_csv(path: Path) -> Table:
    import pandas as pd

    if path.suffix != ".csv" or not path.is_file():
        raise UserError(f"--config.data.path={path} is not a table: give a .csv file with the class as last column.")
    try:
        read = pd.read_csv(path)
    except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
        raise UserError(f"--config.data.path={path} cannot be read as a table ({error}).") from error
    names = tuple(map(str, read.columns))
    return _coded(path.name, checked(read.iloc[:, :-1].to_numpy(), read.iloc[:, -1].to_numpy(), names))


def _coded(name: str, rows: np.ndarray) -> Table:
    """The classes as numbers from 0. Raises UserError for more than 256 classes."""
    # `trees` holds a row, its class included, in bytes.
    found, codes = np.unique(rows[:, -1], return_inverse=True)
    if len(found) > 256:
        raise UserError(f"the target of {name} has {len(found):,} different values, too many for classes: at most 256.")
    return Table(name, np.column_stack([rows[:, :-1], codes]).astype(np.float32), len(found))


def true_logit(x_RC: jax.Array) -> jax.Array:
    """The log odds of class 1, (rows,): products, a step and a bend of six columns. The other columns are noise."""
    a, b, c, d, e, f = (x_RC[:, column] for column in range(6))
    return 1.5 * a * b + 2.0 * jnp.where(c > 0.5, 1.0, -0.5) + jnp.abs(d) - 0.8 + 0.7 * e * (f > 0)


def higgs_like(key: jax.Array, rows: int) -> jax.Array:
    """(rows, COLUMNS + 1): normal columns, then the class, 0 or 1, drawn with the odds of `true_logit`."""
    columns, classes = jax.random.split(key)
    x_RC = jax.random.normal(columns, (rows, COLUMNS))
    odds = jax.nn.sigmoid(true_logit(x_RC))
    return jnp.concatenate([x_RC, jax.random.bernoulli(classes, odds)[:, None].astype(jnp.float32)], axis=1)


def checked(columns: np.ndarray, target: np.ndarray, names: tuple[str, ...] = ()) -> np.ndarray:
    """A table as float32 (rows, columns + 1), the class last. columns: (rows, columns). target: (rows,).

    Raises UserError for a table with text or missing values, or with fewer than two classes.
    """
    numbers = [_number(columns[:, i], names[i] if names else f"number {i + 1}") for i in range(columns.shape[1])]
    table = np.stack([*numbers, _number(target, names[-1] if names else "target")], axis=1)
    if (classes := len(np.unique(table[:, -1]))) < 2:
        raise UserError(f"the rows of the table have {classes} classes: give rows of at least two.")
    return table


def _number(column: np.ndarray, name: str) -> np.ndarray:
    """A column as float32. Raises UserError for text and missing values."""
    try:
        numbers = column.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"the column {name} has text ({error}): give numbers, such as a code for each word.") from error
    if missing := np.count_nonzero(~np.isfinite(numbers)):
        raise UserError(
            f"the column {name} has no finite number in {missing:,} of {len(column):,} rows: fill them, such "
            "as with the column's median, or leave the rows out."
        )
    return numbers
