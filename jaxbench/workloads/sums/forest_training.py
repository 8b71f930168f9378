# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A whole training of a random forest: rounds of trees, each grown level by level, all trees of a round at once.

The state is that of `boosting`, and a step is that of `forest`. Each row carries the number of times that each tree
counts it, so the bootstrap is the same in every strategy and after every restart.

Axes: R rows, C columns.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Batch, Field, Metrics, PyTree, Splits, TrainWorkload
from jaxbench.workloads.data.order import words
from jaxbench.workloads.sums import boosting, forest, tables, trees
from jaxbench.workloads.sums.adapt import from_sums

State = boosting.State


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


def local(of: Forest, state: State, rows: Batch) -> dict[str, jax.Array]:
    """The histograms of the round's trees; "loss": the squared error of the trees that are grown."""
    first = jnp.minimum(state["count"], of.rounds - 1).astype(jnp.int32) * of.at_once
    drawn = jax.lax.dynamic_slice_in_dim(rows["drawn"], first, of.at_once, axis=1)
    sums = forest.local(of.tree, state["growing"], {"row": rows["row"], "drawn": drawn})
    error_R = share(of, state, rows["row"][:, :-1]) - rows["row"][:, -1].astype(jnp.float32)
    return {**sums, "loss": jnp.sum(error_R**2)}


def update(of: Forest, state: State, sums: dict[str, jax.Array]) -> State:
    growing = forest.update(of.tree, of.tried, state["growing"], sums, seed=state["count"].astype(jnp.int32))
    return boosting.joined(state, growing, of.rounds)


def share(of: Forest, state: State, bins_RC: jax.Array) -> jax.Array:
    """The share of class 1 in each row's leaves, (rows,): the mean over all trees that are grown; 0 without any."""

    def add(sum_R: jax.Array, round_: State) -> tuple[jax.Array, None]:
        each = jax.vmap(functools.partial(trees.predicted, of.tree), in_axes=(0, None))(round_, bins_RC)
        return sum_R + jnp.sum(each, axis=0), None

    sum_R, _ = jax.lax.scan(add, jnp.zeros(len(bins_RC)), state["grown"])
    return sum_R / (of.at_once * jnp.maximum(state["count"], 1))


def evaluate(of: Forest, params: PyTree, model_state: PyTree, rows: Batch) -> Metrics:
    share_R, target_R = share(of, params["state"], rows["row"][:, :-1]), rows["row"][:, -1].astype(jnp.float32)
    right_R = (share_R > 0.5) == (target_R > 0.5)
    return {"loss": jnp.mean((share_R - target_R) ** 2), "accuracy": jnp.mean(right_R.astype(jnp.float32))}


def workload(
    name: str, table: tables.Table, *, count: int, rounds: int, depth: int, tried: int, min_rows: float, seed: int
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
    tree = forest.settings(columns=columns, depth=depth, min_rows=min_rows)
    of = Forest(tree=tree, at_once=count, rounds=rounds, tried=tried)
    all_ = count * rounds
    drawn = Field((all_,), jnp.uint8, classes=forest.MAX_COUNT, draw=lambda key, rows: forest.counts(key, rows, all_))
    return from_sums(
        name=name,
        init=lambda key: boosting.init(tree, rounds, count),
        local=functools.partial(local, of),
        update=functools.partial(update, of),
        evaluate=functools.partial(evaluate, of),
        data=lambda: split(table, all_, seed),
        example={"row": boosting.row_field(table), "drawn": drawn},
        tolerance=1e-3,
        tolerance_reason="float32 sums are in another order; a split must be the same one",
    )


def split(table: tables.Table, count: int, seed: int) -> Splits:
    """`boosting.split` with a further field: the number of times that each of `count` trees counts a row."""
    binned = boosting.split(table, seed)
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(forest.MAX_COUNT - 1)])  # cumulative Poisson(1)
    parts = []
    for number, part in enumerate((binned.train, binned.test)):  # the counts of test rows mean nothing
        shape = len(part["row"]), count
        counts = np.searchsorted(below, words(math.prod(shape), seed, number) / 2**64)
        parts.append({**part, "drawn": counts.reshape(shape).astype(np.uint8)})
    return Splits(train=parts[0], test=parts[1], name=binned.name)
