# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A whole training of boosted trees: the state holds every tree, and a step grows one level of the newest trees.

The step of `trees` takes the margin of each row as an input. Here the margin is computed from the trees that are
already grown, so a row needs no further data. Any batch of rows makes a step (Friedman, "Stochastic gradient boosting",
2002), and a checkpoint needs only the state. With more than two classes, each class has a tree in every round, and the
loss is the cross-entropy of their softmax, with the diagonal of its second derivatives.

Axes: R rows, C columns, O outputs (1 for two classes, otherwise one for each class), T rounds of trees.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Batch, Field, Metrics, PyTree, Splits, TrainWorkload
from jaxbench.workloads.sums import tables, trees
from jaxbench.workloads.sums.adapt import from_sums

KEPT = ("column", "bin", "value")  # the arrays kept of a grown tree

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """tree: the settings of each tree. rounds: the number of trees for every output. classes: those of the target."""

    tree: trees.TreeSettings
    rounds: int
    classes: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= 1000:
            raise UserError(f"--config.model.trees={self.rounds} is not a number of 1 to 1000: use 50.")
        if self.tree.loss != "logistic":
            raise UserError(
                f"--config.model.loss={self.tree.loss} is not for training to an accuracy: use logistic, which is the "
                "softmax's for more than two classes."
            )

    @property
    def outputs(self) -> int:
        return 1 if self.classes == 2 else self.classes


def init(tree: trees.TreeSettings, rounds: int, at_once: int) -> State:
    """The state before the first step: room for `rounds` rounds of `at_once` trees, none grown yet."""
    one = trees.init(tree)
    grown = {name: one[name] for name in KEPT}
    return {
        "growing": jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (at_once, *leaf.shape)), one),
        "grown": jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rounds, at_once, *leaf.shape)), grown),
        "count": jnp.zeros(()),
    }


def margins(of: Ensemble, grown: State, bins_RC: jax.Array) -> jax.Array:
    """The sum of all grown trees for each row, (R, O). A tree that is not grown yet contributes 0."""
    given = functools.partial(trees.predicted, of.tree)

    def add(sum_OR: jax.Array, round_: State) -> tuple[jax.Array, None]:
        return sum_OR + jax.vmap(given, in_axes=(0, None))(round_, bins_RC), None

    return jax.lax.scan(add, jnp.zeros((of.outputs, len(bins_RC))), grown)[0].T


def derivatives(margin_RO: jax.Array, target_R: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The loss of each row, and its first and second derivatives with respect to each output, (R, O)."""
    if margin_RO.shape[1] == 1:
        loss, first, second = trees.derivatives("logistic", margin_RO[:, 0], target_R.astype(jnp.float32))
        return loss, first[:, None], second[:, None]
    is_class = jax.nn.one_hot(target_R, margin_RO.shape[1])
    share = jax.nn.softmax(margin_RO)
    loss = -jnp.sum(is_class * jax.nn.log_softmax(margin_RO), axis=1)
    return loss, share - is_class, share * (1 - share)


def local(of: Ensemble, state: State, rows: Batch) -> dict[str, jax.Array]:
    bins_RC, target_R = rows["row"][:, :-1], rows["row"][:, -1].astype(jnp.int32)
    loss_R, first_RO, second_RO = derivatives(margins(of, state["grown"], bins_RC), target_R)

    def of_output(tree: trees.State, first_R: jax.Array, second_R: jax.Array) -> dict[str, jax.Array]:
        return trees.histograms(of.tree, tree, bins_RC, first_R, second_R)

    return {**jax.vmap(of_output)(state["growing"], first_RO.T, second_RO.T), "loss": jnp.sum(loss_R)}


def update(of: Ensemble, state: State, sums: dict[str, jax.Array]) -> State:
    """Grows a level of the newest trees. After their last level they join the others, until all rounds are grown."""
    growing = jax.vmap(functools.partial(trees.update, of.tree))(state["growing"], sums)
    return joined(state, growing, of.rounds)


def joined(state: State, growing: State, rounds: int) -> State:
    """The next state: trees that have all their levels join those that are grown, up to `rounds` rounds."""
    is_grown = growing["level"][0] == 0
    place = jnp.where(is_grown, state["count"], rounds).astype(jnp.int32)  # outside: dropped
    grown = {name: state["grown"][name].at[place].set(growing[name], mode="drop") for name in KEPT}
    return {"growing": growing, "grown": grown, "count": jnp.minimum(state["count"] + is_grown, rounds)}


def evaluate(of: Ensemble, params: PyTree, model_state: PyTree, rows: Batch) -> Metrics:
    margin_RO = margins(of, params["state"]["grown"], rows["row"][:, :-1])
    target_R = rows["row"][:, -1].astype(jnp.int32)
    found_R = jnp.argmax(margin_RO, axis=1) if of.outputs > 1 else (margin_RO[:, 0] > 0).astype(jnp.int32)
    loss_R, _, _ = derivatives(margin_RO, target_R)
    return {"loss": jnp.mean(loss_R), "accuracy": jnp.mean((found_R == target_R).astype(jnp.float32))}


def workload(name: str, table: tables.Table, *, rounds: int, seed: int, **tree: Any) -> TrainWorkload:
    """The training of boosted trees on a table.

    tree: fields of `trees.TreeSettings`, without its columns. seed: of the split. Raises UserError for wrong settings.
    """
    columns = table.rows.shape[1] - 1
    of = Ensemble(tree=trees.TreeSettings(columns=columns, **tree), rounds=rounds, classes=table.classes)
    return from_sums(
        name=name,
        init=lambda key: init(of.tree, of.rounds, of.outputs),
        local=functools.partial(local, of),
        update=functools.partial(update, of),
        evaluate=functools.partial(evaluate, of),
        data=lambda: split(table, seed),
        example={"row": row_field(table)},
        tolerance=1e-3,
        tolerance_reason="float32 sums are in another order; a split must be the same one",
    )


def split(table: tables.Table, seed: int) -> Splits:
    """The table as bins, with the edges of the training rows. A fifth of the rows is for testing."""
    train, test = tables.divided(table, seed)
    edges = trees.edges(train[:, :-1])
    return Splits(_binned(train, edges), _binned(test, edges), table.name)


def _binned(rows: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    return {"row": np.column_stack([trees.binned(rows[:, :-1], edges), rows[:, -1].astype(np.uint8)])}


def row_field(table: tables.Table) -> Field:
    """The fields of a row: its bins and its class.

    For compiling and checks, synthetic rows are drawn: uniform bins, and a class that follows the first column.
    """
    columns = table.rows.shape[1] - 1

    def drawn(key: jax.Array, rows: int) -> jax.Array:
        bins = jax.random.randint(key, (rows, columns), 0, trees.BINS)
        target = bins[:, :1] * table.classes // trees.BINS
        return jnp.concatenate([bins, target], axis=1).astype(jnp.uint8)

    return Field((columns + 1,), jnp.uint8, classes=trees.BINS, draw=drawn)
