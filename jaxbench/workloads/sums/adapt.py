# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`from_sums`: an algorithm that repeats a sum over rows, as a workload that every data-parallel strategy can run.

Many algorithms need only sums over their rows, and compute the next state from these (Chu et al., "Map-Reduce for
Machine Learning on Multicore", NIPS 2006). A training step does the same: its gradient is such a sum, and the optimizer
computes the next parameters. So the sums take the place of the gradient here, and strategies, checks, collective counts
and clocks work unchanged.

The parameters are {"state": the algorithm's state, "sums": those of the last step}.

The tables are a synthetic table in the shape of Higgs with a known true function, those of scikit-learn, and your own.

Higgs: 11 million rows of 28 columns, two classes (Baldi, Sadowski and Whiteson, "Searching for exotic particles in
high-energy physics with deep learning", Nature Communications 5, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, Batch, Dataset, Field, Metrics, TrainWorkload
from jaxbench.errors import UserError, did_you_mean, present
from jaxbench.workloads.data.input import permutation

SENT = "sums"  # the part of the parameters that has the gradients which devices reduce

State = TypeVar("State")  # a tree of arrays, into which only its algorithm looks
Sums = dict[str, jax.Array]
Params = dict[str, dict[str, jax.Array]]  # {"state": a state that is a dictionary, "sums": the last sums}
COLUMNS = 28  # of Higgs
DRAWN, DRAWN_ROWS = "higgs_like", 81_920  # 65,536 = 2^16 to train on, and a fifth to test on
TEST_SHARE = 0.2
CARRIED = ("breast_cancer", "digits", "iris", "wine")  # with scikit-learn: tables with classes, without a network


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

    def first(key: jax.Array) -> tuple[dict[str, ArrayTree], ArrayTree]:
        state = init(key)
        # The sums stand among the parameters so that their gradients, the new sums, are what strategies reduce.
        sums = jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.float32), shapes(state))
        return {"state": state, SENT: sums}, {}

    def loss(
        params: dict[str, Any], model_state: ArrayTree, rows: Batch, key: jax.Array
    ) -> tuple[jax.Array, tuple[ArrayTree, Metrics]]:
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
def _with_gradient(probe: ArrayTree, gradient: ArrayTree) -> jax.Array:
    """Zero, with `gradient` as its gradient with respect to `probe`."""
    # So the result of `local` arrives where a gradient would, and nothing is differentiated to get it.
    return jnp.zeros(())


def _forward(probe: ArrayTree, gradient: ArrayTree) -> tuple[jax.Array, ArrayTree]:
    return jnp.zeros(()), gradient


def _backward(gradient: ArrayTree, scale: jax.Array) -> tuple[ArrayTree, ArrayTree]:
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

    def change(
        grads: dict[str, Sums], opt_state: ArrayTree, params: dict[str, State] | None = None
    ) -> tuple[dict[str, ArrayTree], ArrayTree]:
        params = present(params)
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


def _require_loss(name: str, sums: object) -> None:
    if not (isinstance(sums, dict) and len(sums) > 1 and "loss" in sums and sums["loss"].shape == ()):
        found = ", ".join(map(str, sums)) if isinstance(sums, dict) else type(sums).__name__
        raise UserError(
            f"local(state, rows) of '{name}' returns {found}: return a dict of sums with the scalar 'loss' and at "
            "least one more."
        )


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
