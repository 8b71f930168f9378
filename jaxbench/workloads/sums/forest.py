# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A random forest: its trees are independent, so a step grows a level of all of them (Breiman 2001).

Each tree counts each row as often as a bootstrap would draw it: Poisson(1) times, as online forests do (Oza and Russell
2001). Each node may split by a random share of the columns. A tree is that of `trees` with the squared loss, a rate of
1 and margins of 0. Its leaves are means, and the gain of a split is the reduction of the variance, which for two
classes is half of Gini's impurity.

A whole training has rounds of trees, each grown level by level, all trees of a round at once. Its state is that of
`trees.training`. Each row carries the number of times that each tree counts it, so the bootstrap is the same in every
strategy and after every restart.

Axes: R rows, C columns.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Dataset, Field, Metrics, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.workloads.data.input import words
from jaxbench.workloads.sums import adapt, trees
from jaxbench.workloads.sums.adapt import from_sums

MAX_COUNT = 8  # per row and tree: a bootstrap exceeds it in one of a million cases


def settings(*, columns: int, depth: int, min_rows: float) -> trees.TreeSettings:
    """The settings of each tree. min_rows: share of the table's rows that each side of a split must hold."""
    # Leaves are plain means; l2 is above 0 only so that an empty side does not divide by 0.
    return trees.TreeSettings(columns=columns, depth=depth, rate=1.0, l2=1e-9, min_hessian=min_rows, loss="squared")


def init(of: trees.TreeSettings, count: int) -> trees.State:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), trees.init(of))


def local(of: trees.TreeSettings, state: trees.State, rows: Batch) -> dict[str, jax.Array]:
    """The histograms of each tree, (trees, nodes, columns, BINS); "loss": half the squared target, that of no trees."""
    plain = {"row": rows["row"], "margin": jnp.zeros(len(rows["row"]))}  # trees of a forest do not build on others

    def of_tree(tree: trees.State, weight: jax.Array) -> dict[str, jax.Array]:
        return trees.local(of, tree, plain, weight)

    sums = jax.vmap(of_tree)(state, rows["drawn"].T.astype(jnp.float32))
    return {**sums, "loss": jnp.mean(sums["loss"])}


def update(
    of: trees.TreeSettings, tried: int, state: trees.State, sums: dict[str, jax.Array], seed: jax.Array | int = 0
) -> trees.State:
    """Grows a level of every tree. tried: the number of columns that may split a node.

    The columns are drawn from the seed, the level and the number of the tree.
    """
    # `from_sums` passes `update` no key. Drawn from the state, all devices and a restarted run try the same columns.
    count, level = state["level"].shape[0], state["level"][0].astype(jnp.int32)
    keys = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(seed), level), count)
    shape = 2 ** (of.depth - 1), of.columns

    def of_tree(key: jax.Array, tree: trees.State, own: dict[str, jax.Array]) -> trees.State:
        drawn_NC = jax.random.uniform(key, shape)
        # The columns with the smallest numbers: exactly `tried` of them at each node, in one program for any node.
        allowed_NC = drawn_NC <= jnp.sort(drawn_NC, axis=1)[:, tried - 1 : tried]
        return trees.update(of, tree, own, allowed_NC)

    return jax.vmap(of_tree)(keys, state, sums)


def counts(key: jax.Array, rows: int, count: int) -> jax.Array:
    """The number of times that each tree counts each row, (rows, trees), uint8."""
    return jnp.minimum(jax.random.poisson(key, 1.0, (rows, count)), MAX_COUNT - 1).astype(jnp.uint8)


def workload(name: str, *, count: int, depth: int, tried: int, min_rows: float, **facts: Any) -> TrainWorkload:
    """The workload that grows a level of `count` trees, with the drawn table."""
    of = settings(columns=adapt.COLUMNS, depth=depth, min_rows=min_rows)
    drawn = Field((count,), jnp.uint8, classes=MAX_COUNT, draw=lambda key, rows: counts(key, rows, count))
    return from_sums(
        name=name,
        init=lambda key: init(of, count),
        local=functools.partial(local, of),
        update=functools.partial(update, of, tried),
        example={"row": Field((adapt.COLUMNS + 1,), jnp.uint8, classes=trees.BINS, draw=trees.drawn), "drawn": drawn},
        **trees.SAME_SPLITS,
        **facts,
    )


def predicted(of: trees.TreeSettings, state: trees.State, bins: np.ndarray) -> np.ndarray:
    """The mean over all trees of the mean target of a row's leaf, (rows,)."""
    each = jax.vmap(lambda tree: trees.predicted(of, tree, jnp.asarray(bins)))(state)
    return np.asarray(jnp.mean(each, axis=0))


State = trees.EnsembleState


@dataclass(frozen=True, kw_only=True)
class Forest:
    """tree: the settings of each tree. at_once: trees of a round. tried: the number of columns tried for a split."""

    tree: trees.TreeSettings
    at_once: int
    rounds: int
    tried: int

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= 1000:
            raise UserError(f"--config.model.rounds={self.rounds} is not a number of 1 to 1000: use 4.")
        if not 1 <= self.tried <= self.tree.columns:
            raise UserError(
                f"--config.model.tried={self.tried} is not a number of 1 to {self.tree.columns}, the table's columns: "
                f"use {max(1, round(self.tree.columns**0.5))}."
            )


def training_local(of: Forest, state: State, rows: Batch) -> dict[str, jax.Array]:
    """The histograms of the round's trees; "loss": the squared error of the trees that are grown."""
    # A batch after the last round grows the last one again, and `joined_ensemble` drops it: a step has one program.
    first = jnp.minimum(state["count"], of.rounds - 1).astype(jnp.int32) * of.at_once
    drawn = jax.lax.dynamic_slice_in_dim(rows["drawn"], first, of.at_once, axis=1)
    sums = local(of.tree, state["growing"], {"row": rows["row"], "drawn": drawn})
    error_R = share(of, state, rows["row"][:, :-1]) - rows["row"][:, -1].astype(jnp.float32)
    return {**sums, "loss": jnp.sum(error_R**2)}


def training_update(of: Forest, state: State, sums: dict[str, jax.Array]) -> State:
    growing = update(of.tree, of.tried, state["growing"], sums, seed=state["count"].astype(jnp.int32))
    return trees.joined_ensemble(state, growing, of.rounds)


def share(of: Forest, state: State, bins_RC: jax.Array) -> jax.Array:
    """The share of class 1 in each row's leaves, (rows,): the mean over all trees that are grown; 0 without any."""

    def add(sum_R: jax.Array, round_: State) -> tuple[jax.Array, None]:
        each = jax.vmap(functools.partial(trees.predicted, of.tree), in_axes=(0, None))(round_, bins_RC)
        return sum_R + jnp.sum(each, axis=0), None

    sum_R, _ = jax.lax.scan(add, jnp.zeros(len(bins_RC)), state["grown"])
    return sum_R / (of.at_once * jnp.maximum(state["count"], 1))


def evaluate(of: Forest, params: dict[str, trees.State], model_state: ArrayTree, rows: Batch) -> Metrics:
    share_R, target_R = share(of, params["state"], rows["row"][:, :-1]), rows["row"][:, -1].astype(jnp.float32)
    right_R = (share_R > 0.5) == (target_R > 0.5)
    return {"loss": jnp.mean((share_R - target_R) ** 2), "accuracy": jnp.mean(right_R.astype(jnp.float32))}


def training(
    name: str, table: adapt.Table, *, count: int, rounds: int, depth: int, tried: int, min_rows: float, seed: int
) -> TrainWorkload:
    """The training of a random forest on a table.

    count: trees of a round. seed: of the split and of the bootstraps. Raises UserError for more than two classes.
    """
    if table.classes > 2:
        raise UserError(
            f"{table.name} has {table.classes} classes, and a forest's leaves here are shares of one: give a table of "
            "two, such as breast_cancer, or train gbdt."
        )
    columns = table.rows.shape[1] - 1
    tree = settings(columns=columns, depth=depth, min_rows=min_rows)
    of = Forest(tree=tree, at_once=count, rounds=rounds, tried=tried)
    all_ = count * rounds
    drawn = Field((all_,), jnp.uint8, classes=MAX_COUNT, draw=lambda key, rows: counts(key, rows, all_))
    return from_sums(
        name=name,
        init=lambda key: trees.init_ensemble(tree, rounds, count),
        local=functools.partial(training_local, of),
        update=functools.partial(training_update, of),
        evaluate=functools.partial(evaluate, of),
        data=lambda: split(table, all_, seed),
        example={"row": trees.row_field(table), "drawn": drawn},
        **trees.SAME_SPLITS,
    )


def split(table: adapt.Table, count: int, seed: int) -> Dataset:
    """`trees.split_table` with a further field: the number of times that each of `count` trees counts a row."""
    binned = trees.split_table(table, seed)
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(MAX_COUNT - 1)])  # cumulative Poisson(1)
    parts = []
    for number, part in enumerate((binned.train, binned.test)):  # the counts of test rows mean nothing
        shape = len(part["row"]), count
        # By inversion of the distribution, because numpy may change its own Poisson numbers in a later version.
        counts = np.searchsorted(below, words(math.prod(shape), seed, number) / 2**64)
        parts.append({**part, "drawn": counts.reshape(shape).astype(np.uint8)})
    return Dataset(train=parts[0], test=parts[1], name=binned.name)
