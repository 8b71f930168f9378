# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees by histograms: a step grows one level of one tree (Chen and Guestrin, arXiv:1603.02754).

Each column is one of BINS bins. A row of the table is its bins, its target, and its margin: the sum of the values that
the trees before have given it. `local` sums the first and second derivatives of the loss by node, column and bin;
`update` splits each node where that gains most. These sums are all that devices exchange, whatever the rows.

The gain of a split into L and R is G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2), and a leaf's value is
-rate x G / (H + l2) (equations 5 to 7 there, without their factor 1/2 and the cost of a leaf). Sums are per row of the
table, and so is l2. After its last level a tree is begun anew, so that every step does the same work.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads.base import Batch, Field, TrainWorkload
from jaxbench.workloads.sums import tables
from jaxbench.workloads.sums.adapt import from_sums

BINS = 256
LOSSES = ("logistic", "squared")

State = dict[str, jax.Array]


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """Of a tree. min_hessian: per row of the table, that each side of a split must hold. l2: per row too."""

    columns: int
    depth: int = 6
    rate: float = 0.1
    l2: float = 1e-5
    min_hessian: float = 1e-4
    loss: str = "logistic"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise UserError(f"--config.model.loss={self.loss} is unknown: use {' or '.join(LOSSES)}.")
        if not 1 <= self.depth <= 10:
            raise UserError(f"--config.model.depth={self.depth} is not a depth of 1 to 10: use 6.")


def init(settings: TreeSettings) -> State:
    """No splits: column -1 sends every row to the left. Nodes are numbered as in a heap; level is the next to grow."""
    nodes = 2**settings.depth
    return {
        "column": -jnp.ones(nodes - 1), "bin": jnp.zeros(nodes - 1), "value": jnp.zeros(nodes), "level": jnp.zeros(()),
    }  # fmt: skip


def local(settings: TreeSettings, state: State, rows: Batch, weight: jax.Array | None = None) -> dict[str, jax.Array]:
    """The `histograms` of this level, and the loss. weight: of each row, (rows,); None: all count once."""
    bins_RC, target_R = rows["row"][:, :-1].astype(jnp.int32), rows["row"][:, -1].astype(jnp.float32)
    loss_R, first_R, second_R = derivatives(settings.loss, rows["margin"], target_R)
    sums = histograms(settings, state, bins_RC, first_R, second_R, weight)
    return {**sums, "loss": jnp.sum(loss_R)}


def histograms(
    settings: TreeSettings,
    state: State,
    bins_RC: jax.Array,
    first_R: jax.Array,
    second_R: jax.Array,
    weight: jax.Array | None = None,
) -> dict[str, jax.Array]:
    """Sums of the "first" and "second" derivatives of rows, (nodes of the last level, columns, BINS)."""
    node_R = _node(state, bins_RC, levels=settings.depth - 1, until=state["level"])
    widest, columns = 2 ** (settings.depth - 1), jnp.arange(settings.columns)
    cell_RC = (node_R[:, None] * settings.columns + columns) * BINS + bins_RC
    both_R2 = jnp.stack([first_R, second_R], axis=1) * (1.0 if weight is None else weight[:, None])
    both_RC2 = jnp.broadcast_to(both_R2[:, None], (*bins_RC.shape, 2))
    sums = jnp.zeros((widest * settings.columns * BINS, 2)).at[cell_RC.reshape(-1)].add(both_RC2.reshape(-1, 2))
    shape = (widest, settings.columns, BINS)
    return {"first": sums[:, 0].reshape(shape), "second": sums[:, 1].reshape(shape)}


def derivatives(loss: str, margin: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The loss of each row, and its first and second derivatives by the margin."""
    if loss == "squared":
        return (margin - target) ** 2 / 2, margin - target, jnp.ones_like(margin)
    odds = jax.nn.sigmoid(margin)
    return jax.nn.softplus(margin) - target * margin, odds - target, odds * (1 - odds)


def update(settings: TreeSettings, state: State, sums: dict[str, jax.Array], allowed: jax.Array | None = None) -> State:
    """Splits each node of this level where that gains most, or sends all its rows to the left.

    allowed: which columns may split a node, (nodes, columns); None: all.
    """
    level = state["level"].astype(jnp.int32)
    left, right, whole = _sides(sums)
    gain_NCB = sum(g**2 / (h + settings.l2) for g, h in (left, right)) - whole[0] ** 2 / (whole[1] + settings.l2)
    legal = jnp.minimum(left[1], right[1]) >= settings.min_hessian
    legal &= True if allowed is None else allowed[:, :, None]
    flat_NS = jnp.where(legal, gain_NCB, -jnp.inf).reshape(len(gain_NCB), -1)
    best_N = jnp.argmax(flat_NS, axis=1)
    splits_N = jnp.take_along_axis(flat_NS, best_N[:, None], axis=1)[:, 0] > 0
    column_N, bin_N = jnp.where(splits_N, best_N // BINS, -1), jnp.where(splits_N, best_N % BINS, 0)
    places = jnp.arange(len(best_N))
    heap = jnp.where(places < 2**level, 2**level - 1 + places, len(state["column"]))  # the others are dropped
    values_N2 = jnp.stack([_chosen(settings, side, best_N) for side in (left, right)], axis=1)
    values_N2 = jnp.where(splits_N[:, None], values_N2, _value(settings, *(each[:, 0] for each in whole)))
    last, first = level == settings.depth - 1, level == 0
    return {
        "column": jnp.where(first, -1.0, state["column"]).at[heap].set(column_N.astype(jnp.float32), mode="drop"),
        "bin": jnp.where(first, 0.0, state["bin"]).at[heap].set(bin_N.astype(jnp.float32), mode="drop"),
        "value": jnp.where(last, values_N2.reshape(-1), 0.0),
        "level": jnp.where(last, 0.0, state["level"] + 1),
    }


def _sides(sums: dict[str, jax.Array]) -> tuple[tuple[jax.Array, jax.Array], ...]:
    """(G, H) of what is left of each split, right of it, and of the whole node, (nodes, columns, BINS or 1)."""
    left = jnp.cumsum(sums["first"], axis=2), jnp.cumsum(sums["second"], axis=2)
    whole = left[0][:, :, -1:], left[1][:, :, -1:]
    return left, (whole[0] - left[0], whole[1] - left[1]), whole


def _chosen(settings: TreeSettings, side: tuple[jax.Array, jax.Array], best: jax.Array) -> jax.Array:
    """The value of a leaf made of one side of each node's split."""
    g, h = (jnp.take_along_axis(each.reshape(len(best), -1), best[:, None], axis=1) for each in side)
    return _value(settings, g, h)[:, 0]


def _value(settings: TreeSettings, g: jax.Array, h: jax.Array) -> jax.Array:
    return -settings.rate * g / (h + settings.l2)


def _node(state: State, bins_RC: jax.Array, *, levels: int, until: Any) -> jax.Array:
    """The node of each row after the first `until` of so many levels, counted from the left of its level."""
    node_R = jnp.zeros(len(bins_RC), jnp.int32)
    for level in range(levels):
        heap = 2**level - 1 + node_R
        column_R, bin_R = state["column"][heap].astype(jnp.int32), state["bin"][heap].astype(jnp.int32)
        found_R = jnp.take_along_axis(bins_RC, jnp.maximum(column_R, 0)[:, None], axis=1)[:, 0]
        right_R = ((column_R >= 0) & (found_R > bin_R)).astype(jnp.int32)
        node_R = jnp.where(level < until, 2 * node_R + right_R, node_R)
    return node_R


def workload(name: str, settings: TreeSettings, **facts: Any) -> TrainWorkload:
    """One level of one tree of a table in the shape of Higgs, in the middle of a training: margins are normal."""
    if settings.columns != tables.COLUMNS:
        raise UserError(f"the drawn table has {tables.COLUMNS} columns, not {settings.columns}.")
    return from_sums(
        name=name,
        init=lambda key: init(settings),
        local=functools.partial(local, settings),
        update=functools.partial(update, settings),
        example={"row": Field((settings.columns + 1,), jnp.uint8, classes=BINS, draw=drawn), "margin": Field(())},
        tolerance=1e-3,
        tolerance_reason="float32 sums are in another order; a split must be the same one",
        **facts,
    )


def drawn(key: jax.Array, rows: int) -> jax.Array:
    """`tables.higgs_like` with its columns as bins of equal probability, uint8."""
    table = tables.higgs_like(key, rows)
    bins = jnp.floor(BINS * jax.scipy.special.ndtr(table[:, :-1]))
    return jnp.concatenate([jnp.clip(bins, 0, BINS - 1), table[:, -1:]], axis=1).astype(jnp.uint8)


def edges(columns: np.ndarray) -> np.ndarray:
    """Quantiles of each column of a table that cut it into BINS bins, (columns, BINS - 1)."""
    return np.quantile(columns, np.arange(1, BINS) / BINS, axis=0).T


def binned(columns: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """(rows, columns) as bins, uint8. cuts: of `edges`."""
    bins = [np.searchsorted(cut, column, side="left") for cut, column in zip(cuts, columns.T, strict=True)]
    return np.stack(bins, axis=1).astype(np.uint8)


def fit(settings: TreeSettings, table: np.ndarray, trees: int) -> list[State]:
    """So many trees on one device. table: bins, then the target."""
    return grower(settings, table)(trees)


def grower(settings: TreeSettings, table: np.ndarray) -> Callable[[int], list[State]]:
    """count -> so many trees, grown level by level as the measured step does. table: bins, then the target."""
    rows, count = jnp.asarray(table), len(table)

    @jax.jit
    def grow(rows: jax.Array, margin: jax.Array) -> tuple[State, jax.Array]:
        def level(state: State, _: None) -> tuple[State, None]:
            sums = local(settings, state, {"row": rows, "margin": margin})
            return update(settings, state, {key: sums[key] / count for key in ("first", "second")}), None

        state, _ = jax.lax.scan(level, init(settings), length=settings.depth)
        return state, margin + predicted(settings, state, rows[:, :-1])

    def several(trees: int) -> list[State]:
        margin, grown = jnp.zeros(count), []
        for _ in range(trees):
            tree, margin = grow(rows, margin)
            grown.append(tree)
        return jax.block_until_ready(grown)

    return several


def predicted(settings: TreeSettings, tree: State, bins: jax.Array) -> jax.Array:
    """What a tree that is grown gives to each row, (rows,)."""
    return tree["value"][_node(tree, bins.astype(jnp.int32), levels=settings.depth, until=settings.depth)]


def margins(settings: TreeSettings, grown: list[State], bins: np.ndarray) -> np.ndarray:
    """The sum of all trees for each row."""
    give: Callable[..., jax.Array] = jax.jit(functools.partial(predicted, settings))
    return np.sum([np.asarray(give(tree, jnp.asarray(bins))) for tree in grown], axis=0)
