# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Boosted trees and forests grown in memory, to compare them with other libraries.

The trees are those of the step in `sums.trees`, which gets only the bins, the target and the margin of each row. Here
the margins and nodes of all rows stay on their devices from level to level, and the arrays of a level have only its
nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxbench.workloads.sums import forest, trees
from jaxbench.workloads.sums.trees import State, TreeSettings

AXIS = "data"


def fit(settings: TreeSettings, table: np.ndarray, count: int) -> list[State]:
    """`count` trees, grown on one device. table: bins, then the target."""
    return grower(settings, table)(count)


def grower(settings: TreeSettings, table: np.ndarray, devices: int = 1) -> Callable[[int], list[State]]:
    """The function from a number of trees to these trees, with the rows split over `devices` devices.

    table: uint8 bins, then the target.
    """
    mesh = jax.make_mesh((devices,), (AXIS,), devices=jax.devices()[:devices])
    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    place = functools.partial(jax.device_put, device=NamedSharding(mesh, split))
    padding = -len(table) % devices
    rows = place(np.pad(table, ((0, padding), (0, 0))))
    share = place(np.pad(np.full(len(table), 1 / len(table), np.float32), (0, padding)))
    grow = jax.jit(
        jax.shard_map(
            functools.partial(_tree, settings), mesh=mesh, in_specs=split, out_specs=(whole, split), check_vma=False
        ),
        donate_argnums=2,
    )

    def several(count: int) -> list[State]:
        margin, grown = place(np.zeros(len(table) + padding, np.float32)), []
        for _ in range(count):  # one after the other: two at once would wait for each other's threads
            tree, margin = jax.block_until_ready(grow(rows, share, margin))
            grown.append(tree)
        return grown

    return several


def _tree(settings: TreeSettings, rows: jax.Array, share_R: jax.Array, margin_R: jax.Array) -> tuple[State, jax.Array]:
    """(one tree, the margins with it). rows, margin: of this device. share: the weight of each row, as a share of the
    table."""
    bins_RC, target_R = rows[:, :-1], rows[:, -1].astype(jnp.float32)
    _, first_R, second_R = trees.derivatives(settings.loss, margin_R, target_R)
    both_R2 = jnp.stack([first_R, second_R], axis=1) * share_R[:, None]
    node_R, levels = jnp.zeros(len(rows), jnp.int32), []
    for level in range(settings.depth):
        sums_CS2 = jax.lax.psum(trees.summed(2**level, node_R, bins_RC, both_R2), AXIS)
        levels.append(trees.best_splits(settings, trees.by_node(sums_CS2)))
        node_R = trees.descended(levels[-1].column_N, levels[-1].bin_N, node_R, bins_RC)
    tree = {
        "column": jnp.concatenate([each.column_N for each in levels]),
        "bin": jnp.concatenate([each.bin_N for each in levels]),
        "value": levels[-1].values_N2.reshape(-1),
        "level": jnp.zeros(()),
    }
    return tree, margin_R + tree["value"][node_R]


def margins(settings: TreeSettings, grown: list[State], bins: np.ndarray) -> np.ndarray:
    """The sum of all trees for each row."""
    give: Callable[..., jax.Array] = jax.jit(functools.partial(trees.predicted, settings))
    return np.sum([np.asarray(give(tree, jnp.asarray(bins))) for tree in grown], axis=0)


def fit_forest(of: TreeSettings, table: np.ndarray, *, count: int, tried: int, seed: int = 0) -> State:
    """All trees, grown on one device like in the measured step. table: bins, then the target."""
    rows = {"row": jnp.asarray(table), "drawn": forest.counts(jax.random.PRNGKey(seed), len(table), count)}

    @jax.jit
    def level(state: State) -> State:
        sums = forest.local(of, state, rows)
        return forest.update(of, tried, state, {key: sums[key] / len(table) for key in ("first", "second")})

    state = forest.init(of, count)
    for _ in range(of.depth):
        state = level(state)
    return state
