# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees by histograms: a step grows one level of one tree (Chen and Guestrin, arXiv:1603.02754).

The values of a column are divided into BINS bins. A row of the table is its bins, its target, and its margin: the sum
of the values of the earlier trees. `local` sums the first and second derivatives of the loss by node, column and bin.
`update` splits each node where the gain is largest. Devices exchange only these sums, whatever the number of rows.

The gain of a split into L and R is G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2), and a leaf's value is
-rate x G / (H + l2) (equations 5 to 7 there, without their factor 1/2 and the cost of a leaf). Sums are per row of the
table, and so is l2. After its last level a tree starts again, so every step does the same work.

In a whole training of boosted trees (`training`) the state holds every tree, and a step grows one level of the newest
trees. The margin is computed from the trees that are already grown, so a row needs no further data. Any batch of rows
makes a step (Friedman, "Stochastic gradient boosting", 2002), and a checkpoint needs only the state. With more than two
classes, each class has a tree in every round, and the loss is the cross-entropy of their softmax, with the diagonal of
its second derivatives.

Axes: R rows, C columns, N nodes, O outputs (1 for two classes, otherwise one for each class), T rounds of trees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Dataset, Field, Metrics, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.workloads import sharding_context
from jaxbench.workloads.sums import adapt
from jaxbench.workloads.sums.adapt import from_sums

SAME_SPLITS: dict[str, Any] = {
    "tolerance": 1e-3,
    "tolerance_reason": "float32 sums are in another order; a split must be the same one",
}
BINS = 256  # one byte for each value, as in XGBoost's and LightGBM's histograms
LOSSES = ("logistic", "squared")

State = dict[str, jax.Array]
KEPT = ("column", "bin", "value")  # the arrays kept of a grown tree


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """The settings of a tree. min_hessian: the least sum, per row of the table, on each side of a split. l2: per row
    too."""

    columns: int
    depth: int = 6
    rate: float = 0.1
    l2: float = 1e-5
    min_hessian: float = 1e-4
    loss: str = "logistic"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise UserError(f"--config.model.loss={self.loss} is unknown: use {' or '.join(LOSSES)}.")
        if not 1 <= self.depth <= 10:  # sums have 2^(depth - 1) x columns x 512 numbers at every level
            raise UserError(f"--config.model.depth={self.depth} is not a depth of 1 to 10: use 6.")


def init(settings: TreeSettings) -> State:
    """A tree without splits: column -1 sends every row to the left.

    Nodes are numbered as in a heap. "level" is the next to grow.
    """
    nodes = 2**settings.depth
    return {
        # Floats, although most are whole numbers: the state takes the place of parameters, which an optimizer adds to.
        "column": -jnp.ones(nodes - 1),
        "bin": jnp.zeros(nodes - 1),
        "value": jnp.zeros(nodes),
        "level": jnp.zeros(()),
    }


def local(settings: TreeSettings, state: State, rows: Batch, weight: jax.Array | None = None) -> dict[str, jax.Array]:
    """The `histograms` of this level, and the loss. weight: that of each row, (rows,); None: each row counts once."""
    bins_RC, target_R = rows["row"][:, :-1], rows["row"][:, -1].astype(jnp.float32)  # the class is the last
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
    # Always in the shape of the last level, so that one program grows every level and every step does the same work.
    node_R = _node(state, bins_RC, levels=settings.depth - 1, until=state["level"])
    both_R2 = jnp.stack([first_R, second_R], axis=1) * (1.0 if weight is None else weight[:, None])
    sum_up: Callable[..., jax.Array] = functools.partial(summed, 2 ** (settings.depth - 1))
    if (parts := sharding_context.current().parts) == 1:
        sums_CS2 = sum_up(node_R, bins_RC, both_R2)
    else:  # each device sums its own rows; otherwise the compiler would reduce every column separately over devices
        each = [array.reshape(parts, -1, *array.shape[1:]) for array in (node_R, bins_RC, both_R2)]
        sums_CS2 = jnp.sum(jax.vmap(sum_up)(*each), axis=0)
    return by_node(sums_CS2)


def summed(nodes: int, node_R: jax.Array, bins_RC: jax.Array, both_R2: jax.Array) -> jax.Array:
    """The sums of both values of each row by its column, node and bin, (columns, nodes x BINS, 2).

    A column should have one byte per row, because columns are transposed here.
    """

    def of_column(bins_R: jax.Array) -> jax.Array:
        cell_R = node_R * BINS + bins_R.astype(jnp.int32)
        # Cells are in bounds by construction; XLA would otherwise clip every index.
        return jnp.zeros((nodes * BINS, 2)).at[cell_R].add(both_R2, mode="promise_in_bounds")

    # One column after the other: the cache of a processor holds the sums of one, which makes XLA's scatter on a CPU
    # several times as fast.
    return jax.lax.map(of_column, bins_RC.T)


def by_node(sums_CS2: jax.Array) -> dict[str, jax.Array]:
    """The result of `summed` as the "first" and "second" sums of each node, (nodes, columns, BINS)."""
    sums_NCB2 = sums_CS2.reshape(len(sums_CS2), -1, BINS, 2).swapaxes(0, 1)
    return {"first": sums_NCB2[..., 0], "second": sums_NCB2[..., 1]}


def derivatives(loss: str, margin: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The loss of each row, and its first and second derivatives with respect to the margin."""
    if loss == "squared":
        return (margin - target) ** 2 / 2, margin - target, jnp.ones_like(margin)
    odds = jax.nn.sigmoid(margin)
    return jax.nn.softplus(margin) - target * margin, odds - target, odds * (1 - odds)


def update(settings: TreeSettings, state: State, sums: dict[str, jax.Array], allowed: jax.Array | None = None) -> State:
    """Splits each node of this level where the gain is largest, or sends all its rows to the left.

    allowed: the columns that may split a node, bool (nodes, columns); None: all.
    """
    level, split = state["level"].astype(jnp.int32), best_splits(settings, sums, allowed)
    places = jnp.arange(len(split.column_N))
    heap = jnp.where(places < 2**level, 2**level - 1 + places, len(state["column"]))  # the others are dropped
    last, first = level == settings.depth - 1, level == 0
    # The last level completes the tree: it gives the leaves their values, and the next update starts a new tree.
    return {
        "column": jnp.where(first, -1.0, state["column"]).at[heap].set(split.column_N, mode="drop"),
        "bin": jnp.where(first, 0.0, state["bin"]).at[heap].set(split.bin_N, mode="drop"),
        "value": jnp.where(last, split.values_N2.reshape(-1), 0.0),
        "level": jnp.where(last, 0.0, state["level"] + 1),
    }


class NodeSplits(NamedTuple):
    """The split of each node: its column and its bin, float32, and the values of leaves made of its two sides.

    Rows up to the bin go to the left; column -1 sends all rows to the left.
    """

    column_N: jax.Array
    bin_N: jax.Array
    values_N2: jax.Array


def best_splits(settings: TreeSettings, sums: dict[str, jax.Array], allowed: jax.Array | None = None) -> NodeSplits:
    """The split with the largest gain for each node of `sums`. A node without a gain sends all its rows to the left."""
    # (G, H) of the left side of each split, of the right side, and of the whole node, (nodes, columns, BINS or 1).
    left = cumulated(sums["first"]), cumulated(sums["second"])
    whole = left[0][:, :, -1:], left[1][:, :, -1:]
    right = whole[0] - left[0], whole[1] - left[1]
    # Twice the fall of the loss, to second order: G^2 / (H + l2) of both sides, minus that of the node.
    gain_NCB = sum(g**2 / (h + settings.l2) for g, h in (left, right)) - whole[0] ** 2 / (whole[1] + settings.l2)
    legal = jnp.minimum(left[1], right[1]) >= settings.min_hessian
    legal &= True if allowed is None else allowed[:, :, None]
    gain_NCB = jnp.where(legal, gain_NCB, -jnp.inf)  # a side without rows is illegal too: its sum is 0
    column_N = jnp.argmax(jnp.max(gain_NCB, axis=2), axis=1)  # in two stages: a maximum is faster than its index

    def of_column(each_NCB: jax.Array) -> jax.Array:
        return jnp.take_along_axis(each_NCB, column_N[:, None, None], axis=1)[:, 0]

    bin_N = jnp.argmax(of_column(gain_NCB), axis=1)

    def there(each_NCB: jax.Array) -> jax.Array:
        return jnp.take_along_axis(of_column(each_NCB), bin_N[:, None], axis=1)[:, 0]

    splits_N = there(gain_NCB) > 0
    whole_N = _value(settings, *(each[:, 0, 0] for each in whole))
    values = [jnp.where(splits_N, _value(settings, there(g), there(h)), whole_N) for g, h in (left, right)]
    return NodeSplits(
        column_N=jnp.where(splits_N, column_N, -1).astype(jnp.float32),
        bin_N=jnp.where(splits_N, bin_N, 0).astype(jnp.float32),
        values_N2=jnp.stack(values, axis=1),
    )


def cumulated(sums_NCB: jax.Array) -> jax.Array:
    """The cumulative sums over bins."""
    # By a product within groups of 16 bins, then over the groups: on a CPU this takes less time than `jnp.cumsum`.
    blocks = sums_NCB.reshape(*sums_NCB.shape[:-1], -1, 16)
    # HIGHEST, because an accelerator would round the sums to TF32 or bfloat16, and choose other splits.
    within = jnp.matmul(blocks, jnp.triu(jnp.ones((16, 16))), precision=jax.lax.Precision.HIGHEST)
    before = jnp.cumsum(within[..., -1], axis=-1) - within[..., -1]
    return (within + before[..., None]).reshape(sums_NCB.shape)


def _value(settings: TreeSettings, g: jax.Array, h: jax.Array) -> jax.Array:
    """The value of a leaf: a Newton step of `rate`."""
    return -settings.rate * g / (h + settings.l2)


def _node(state: State, bins_RC: jax.Array, *, levels: int, until: jax.Array | int) -> jax.Array:
    """The node of each row after the first `until` of `levels` levels, counted from the left of its level."""
    node_R = jnp.zeros(len(bins_RC), jnp.int32)
    for level in range(levels):
        own = slice(2**level - 1, 2 ** (level + 1) - 1)
        below_R = descended(state["column"][own], state["bin"][own], node_R, bins_RC)
        node_R = jnp.where(level < until, below_R, node_R)
    return node_R


def descended(column_N: jax.Array, bin_N: jax.Array, node_R: jax.Array, bins_RC: jax.Array) -> jax.Array:
    """The node of each row one level below `node_R`, according to the splits of these nodes."""
    column_R, bin_R = column_N[node_R].astype(jnp.int32), bin_N[node_R].astype(jnp.int32)
    # Column -1 (no split) reads column 0, and the mask below ignores what it found.
    found_R = jnp.take_along_axis(bins_RC, jnp.maximum(column_R, 0)[:, None], axis=1)[:, 0].astype(jnp.int32)
    return 2 * node_R + ((column_R >= 0) & (found_R > bin_R)).astype(jnp.int32)


def workload(name: str, settings: TreeSettings, **facts: Any) -> TrainWorkload:
    """The workload of one level of one tree, for a table in the shape of Higgs."""
    # Margins are normally distributed (a Field's default), as in the middle of a training.
    return from_sums(
        name=name,
        init=lambda key: init(settings),
        local=functools.partial(local, settings),
        update=functools.partial(update, settings),
        example={"row": Field((settings.columns + 1,), jnp.uint8, classes=BINS, draw=drawn), "margin": Field(())},
        **SAME_SPLITS,
        **facts,
    )


def drawn(key: jax.Array, rows: int) -> jax.Array:
    """`tables.higgs_like` with its columns as bins of equal probability, uint8."""
    table = adapt.higgs_like(key, rows)
    bins = jnp.floor(BINS * jax.scipy.special.ndtr(table[:, :-1]))
    return jnp.concatenate([jnp.clip(bins, 0, BINS - 1), table[:, -1:]], axis=1).astype(jnp.uint8)


def edges(columns: np.ndarray) -> np.ndarray:
    """The quantiles that cut each column of a table into BINS bins, (columns, BINS - 1)."""
    return np.quantile(columns, np.arange(1, BINS) / BINS, axis=0).T


def binned(columns: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """(rows, columns) as bins, uint8. cuts: of `edges`."""
    bins = [np.searchsorted(cut, column, side="left") for cut, column in zip(cuts, columns.T, strict=True)]
    return np.stack(bins, axis=1).astype(np.uint8)


def predicted(settings: TreeSettings, tree: State, bins: jax.Array) -> jax.Array:
    """The value of a grown tree for each row, (rows,)."""
    return tree["value"][_node(tree, bins, levels=settings.depth, until=settings.depth)]


EnsembleState = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """tree: the settings of each tree. rounds: the number of trees for every output. classes: those of the target."""

    tree: TreeSettings
    rounds: int
    classes: int = 2

    def __post_init__(self) -> None:
        if self.tree.loss != "logistic":
            raise UserError(
                f"--config.model.loss={self.tree.loss} is not for training to an accuracy: use logistic, which is the "
                "softmax's for more than two classes."
            )

    @property
    def outputs(self) -> int:
        return 1 if self.classes == 2 else self.classes


def init_ensemble(tree: TreeSettings, rounds: int, at_once: int) -> EnsembleState:
    """The state before the first step: room for `rounds` rounds of `at_once` trees, none grown yet."""
    one = init(tree)
    grown = {name: one[name] for name in KEPT}
    return {
        "growing": jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (at_once, *leaf.shape)), one),
        "grown": jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rounds, at_once, *leaf.shape)), grown),
        "count": jnp.zeros(()),
    }


def ensemble_margins(of: Ensemble, grown: EnsembleState, bins_RC: jax.Array) -> jax.Array:
    """The sum of all grown trees for each row, (R, O). A tree that is not grown yet contributes 0."""
    given = functools.partial(predicted, of.tree)

    # Round after round: a `vmap` over all trees would hold a value of each row for each of them.
    def add(sum_OR: jax.Array, round_: EnsembleState) -> tuple[jax.Array, None]:
        return sum_OR + jax.vmap(given, in_axes=(0, None))(round_, bins_RC), None

    return jax.lax.scan(add, jnp.zeros((of.outputs, len(bins_RC))), grown)[0].T


def output_derivatives(margin_RO: jax.Array, target_R: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The loss of each row, and its first and second derivatives with respect to each output, (R, O)."""
    if margin_RO.shape[1] == 1:
        loss, first, second = derivatives("logistic", margin_RO[:, 0], target_R.astype(jnp.float32))
        return loss, first[:, None], second[:, None]
    is_class = jax.nn.one_hot(target_R, margin_RO.shape[1])
    share = jax.nn.softmax(margin_RO)
    loss = -jnp.sum(is_class * jax.nn.log_softmax(margin_RO), axis=1)
    return loss, share - is_class, share * (1 - share)


def ensemble_local(of: Ensemble, state: EnsembleState, rows: Batch) -> dict[str, jax.Array]:
    bins_RC, target_R = rows["row"][:, :-1], rows["row"][:, -1].astype(jnp.int32)
    loss_R, first_RO, second_RO = output_derivatives(ensemble_margins(of, state["grown"], bins_RC), target_R)

    def of_output(tree: State, first_R: jax.Array, second_R: jax.Array) -> dict[str, jax.Array]:
        return histograms(of.tree, tree, bins_RC, first_R, second_R)

    return {**jax.vmap(of_output)(state["growing"], first_RO.T, second_RO.T), "loss": jnp.sum(loss_R)}


def ensemble_update(of: Ensemble, state: EnsembleState, sums: dict[str, jax.Array]) -> EnsembleState:
    """Grows a level of the newest trees. After their last level they join the others, until all rounds are grown."""
    growing = jax.vmap(functools.partial(update, of.tree))(state["growing"], sums)
    return joined_ensemble(state, growing, of.rounds)


def joined_ensemble(state: EnsembleState, growing: EnsembleState, rounds: int) -> EnsembleState:
    """The next state: trees that have all their levels join those that are grown, up to `rounds` rounds."""
    is_grown = growing["level"][0] == 0
    # Outside means dropped: an unfinished round, and one after the last. A step has one program for all cases.
    place = jnp.where(is_grown, state["count"], rounds).astype(jnp.int32)
    grown = {name: state["grown"][name].at[place].set(growing[name], mode="drop") for name in KEPT}
    return {"growing": growing, "grown": grown, "count": jnp.minimum(state["count"] + is_grown, rounds)}


def ensemble_evaluate(of: Ensemble, params: dict[str, EnsembleState], model_state: ArrayTree, rows: Batch) -> Metrics:
    margin_RO = ensemble_margins(of, params["state"]["grown"], rows["row"][:, :-1])
    target_R = rows["row"][:, -1].astype(jnp.int32)
    found_R = jnp.argmax(margin_RO, axis=1) if of.outputs > 1 else (margin_RO[:, 0] > 0).astype(jnp.int32)
    loss_R, _, _ = output_derivatives(margin_RO, target_R)
    return {"loss": jnp.mean(loss_R), "accuracy": jnp.mean((found_R == target_R).astype(jnp.float32))}


def training(name: str, table: adapt.Table, *, rounds: int, seed: int, **tree: Any) -> TrainWorkload:
    """The training of boosted trees on a table.

    tree: fields of `trees.TreeSettings`, without its columns. seed: of the split. Raises UserError for wrong settings.
    """
    columns = table.rows.shape[1] - 1
    of = Ensemble(tree=TreeSettings(columns=columns, **tree), rounds=rounds, classes=table.classes)
    return from_sums(
        name=name,
        init=lambda key: init_ensemble(of.tree, of.rounds, of.outputs),
        local=functools.partial(ensemble_local, of),
        update=functools.partial(ensemble_update, of),
        evaluate=functools.partial(ensemble_evaluate, of),
        data=lambda: split_table(table, seed),
        example={"row": row_field(table)},
        **SAME_SPLITS,
    )


def split_table(table: adapt.Table, seed: int) -> Dataset:
    """The table as bins, with the edges of the training rows. A fifth of the rows is for testing."""
    train, test = adapt.divided(table, seed)
    cuts = edges(train[:, :-1])
    return Dataset(_binned_rows(train, cuts), _binned_rows(test, cuts), table.name)


def _binned_rows(rows: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    return {"row": np.column_stack([binned(rows[:, :-1], edges), rows[:, -1].astype(np.uint8)])}


def row_field(table: adapt.Table) -> Field:
    """The field of a row: its bins and its class."""
    # For compiling and checks rows are drawn: uniform bins, and a class that follows the first column.
    columns = table.rows.shape[1] - 1

    def drawn(key: jax.Array, rows: int) -> jax.Array:
        bins = jax.random.randint(key, (rows, columns), 0, BINS)
        target = bins[:, :1] * table.classes // BINS
        return jnp.concatenate([bins, target], axis=1).astype(jnp.uint8)

    return Field((columns + 1,), jnp.uint8, classes=BINS, draw=drawn)
