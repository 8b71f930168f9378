# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A random forest: its trees are independent, so a step grows a level of all of them (Breiman 2001).

Each tree counts each row as often as a bootstrap would draw it: Poisson(1) times, as online forests do (Oza and Russell
2001). Each node may split by a random share of the columns. A tree is that of `trees` with the squared loss, a rate of
1 and margins of 0. Its leaves are means, and the gain of a split is the reduction of the variance, which for two
classes is half of Gini's impurity.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.workloads.base import Batch, Field, TrainWorkload
from jaxbench.workloads.sums import tables, trees
from jaxbench.workloads.sums.adapt import from_sums

MAX_COUNT = 8  # per row and tree: a bootstrap exceeds it in one of a million cases


def settings(*, columns: int, depth: int, min_rows: float) -> trees.TreeSettings:
    """The settings of each tree. min_rows: share of the table's rows that each side of a split must hold."""
    return trees.TreeSettings(columns=columns, depth=depth, rate=1.0, l2=1e-9, min_hessian=min_rows, loss="squared")


def init(of: trees.TreeSettings, count: int) -> trees.State:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), trees.init(of))


def local(of: trees.TreeSettings, state: trees.State, rows: Batch) -> dict[str, jax.Array]:
    """The histograms of each tree, (trees, nodes, columns, BINS); "loss": the squared target, the loss of no trees."""
    plain = {"row": rows["row"], "margin": jnp.zeros(len(rows["row"]))}

    def of_tree(tree: trees.State, weight: jax.Array) -> dict[str, jax.Array]:
        return trees.local(of, tree, plain, weight)

    sums = jax.vmap(of_tree)(state, rows["drawn"].T.astype(jnp.float32))
    return {**sums, "loss": jnp.mean(sums["loss"])}


def update(
    of: trees.TreeSettings, tried: int, state: trees.State, sums: dict[str, jax.Array], seed: Any = 0
) -> trees.State:
    """Grows a level of every tree. tried: the number of columns that may split a node.

    The columns are drawn from the seed, the level and the number of the tree.
    """
    count, level = state["level"].shape[0], state["level"][0].astype(jnp.int32)
    keys = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(seed), level), count)
    shape = 2 ** (of.depth - 1), of.columns

    def of_tree(key: jax.Array, tree: trees.State, own: dict[str, jax.Array]) -> trees.State:
        drawn_NC = jax.random.uniform(key, shape)
        allowed_NC = drawn_NC <= jnp.sort(drawn_NC, axis=1)[:, tried - 1 : tried]
        return trees.update(of, tree, own, allowed_NC)

    return jax.vmap(of_tree)(keys, state, sums)


def counts(key: jax.Array, rows: int, count: int) -> jax.Array:
    """The number of times that each tree counts each row, (rows, trees), uint8."""
    return jnp.minimum(jax.random.poisson(key, 1.0, (rows, count)), MAX_COUNT - 1).astype(jnp.uint8)


def workload(name: str, *, count: int, depth: int, tried: int, min_rows: float, **facts: Any) -> TrainWorkload:
    """The workload that grows a level of `count` trees, with the drawn table."""
    of = settings(columns=tables.COLUMNS, depth=depth, min_rows=min_rows)
    drawn = Field((count,), jnp.uint8, classes=MAX_COUNT, draw=lambda key, rows: counts(key, rows, count))
    return from_sums(
        name=name,
        init=lambda key: init(of, count),
        local=functools.partial(local, of),
        update=functools.partial(update, of, tried),
        example={"row": Field((tables.COLUMNS + 1,), jnp.uint8, classes=trees.BINS, draw=trees.drawn), "drawn": drawn},
        tolerance=1e-3,
        tolerance_reason="float32 sums are in another order; a split must be the same one",
        **facts,
    )


def fit(of: trees.TreeSettings, table: np.ndarray, *, count: int, tried: int, seed: int = 0) -> trees.State:
    """All trees, grown on one device like in the measured step. table: bins, then the target."""
    rows = {"row": jnp.asarray(table), "drawn": counts(jax.random.PRNGKey(seed), len(table), count)}

    @jax.jit
    def level(state: trees.State) -> trees.State:
        sums = local(of, state, rows)
        return update(of, tried, state, {key: sums[key] / len(table) for key in ("first", "second")})

    state = init(of, count)
    for _ in range(of.depth):
        state = level(state)
    return state


def predicted(of: trees.TreeSettings, state: trees.State, bins: np.ndarray) -> np.ndarray:
    """The mean over all trees of the mean target of a row's leaf, (rows,)."""
    each = jax.vmap(lambda tree: trees.predicted(of, tree, jnp.asarray(bins)))(state)
    return np.asarray(jnp.mean(each, axis=0))
