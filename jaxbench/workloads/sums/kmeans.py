# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""k-means by Lloyd's iteration: each row belongs to the nearest center, and a center moves to the mean of its rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import Batch, Dataset, Field, Metrics, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.machine.start import traced_for
from jaxbench.workloads.data.input import permutation, words
from jaxbench.workloads.sums import adapt
from jaxbench.workloads.sums.adapt import Params, from_sums

Pair = tuple[jax.Array, jax.Array]
SPREAD = 4.0  # standard deviation of the drawn clusters' centers; that of their rows is 1


def local(state: dict[str, jax.Array], rows: Batch) -> dict[str, jax.Array]:
    """Sums over the rows of each center: "rows" (k, columns), "count" (k,), and the squared distances as "loss"."""
    x_RC, centers_KC = rows["row"], state["centers"]
    squared_R, nearest_R = nearest(centers_KC, x_RC)
    is_nearest_KR = (nearest_R == jnp.arange(len(centers_KC))[:, None]).astype(x_RC.dtype)
    return {"rows": is_nearest_KR @ x_RC, "count": jnp.sum(is_nearest_KR, axis=1), "loss": jnp.sum(squared_R)}


def nearest(centers_KC: jax.Array, x_RC: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(the squared distance of each row to its nearest center, the index of that center: the first of equals)."""
    squared_KR = jnp.sum(centers_KC**2, axis=1)[:, None] - 2 * centers_KC @ x_RC.T  # without |x|^2, which all share
    if traced_for() == "cpu":  # center by center: XLA's argmin takes far longer there
        smallest_R, which_R = _smallest(squared_KR)
    else:
        smallest_R, which_R = jnp.min(squared_KR, axis=0), jnp.argmin(squared_KR, axis=0)
    return smallest_R + jnp.sum(x_RC**2, axis=1), which_R


def _smallest(squared_KR: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The squared distance to the nearest center, and the number of that center."""

    def closer(best: Pair, center: Pair) -> tuple[Pair, None]:
        (smallest_R, which_R), (number, squared_R) = best, center
        is_closer_R = squared_R < smallest_R
        return (jnp.where(is_closer_R, squared_R, smallest_R), jnp.where(is_closer_R, number, which_R)), None

    # Made from the distances: inside `shard_map` a carry must vary over the same devices at the start as later.
    none = jnp.full_like(squared_KR[0], jnp.inf), jnp.zeros_like(squared_KR[0], jnp.int32)
    best, _ = jax.lax.scan(closer, none, (jnp.arange(len(squared_KR)), squared_KR))
    return best


def update(state: dict[str, jax.Array], sums: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Each center at the mean of its rows. A center without rows does not move."""
    # `sums` are per row, and so is the count: the quotient is the mean.
    count_K1 = sums["count"][:, None]
    means_KC = sums["rows"] / jnp.where(count_K1 > 0, count_K1, 1)
    return {"centers": jnp.where(count_K1 > 0, means_KC, state["centers"])}


def drawn(key: jax.Array, rows: int, *, clusters: int, columns: int) -> jax.Array:
    """Rows around `clusters` centers, (rows, columns)."""
    # The same centers for every key, or each batch would have clusters of its own.
    centers_KC = SPREAD * jax.random.normal(jax.random.PRNGKey(7), (clusters, columns))
    which, noise = jax.random.split(key)
    return centers_KC[jax.random.randint(which, (rows,), 0, clusters)] + jax.random.normal(noise, (rows, columns))


def workload(name: str, *, clusters: int, columns: int, **facts: Any) -> TrainWorkload:
    """k-means with `clusters` centers, of drawn rows unless `facts` replace them.

    FLOPs per row: two products of 2 k columns, for distances and sums.
    """
    drawing = {
        "init": lambda key: {"centers": SPREAD * jax.random.normal(key, (clusters, columns))},
        "example": {"row": Field((columns,), draw=lambda key, n: drawn(key, n, clusters=clusters, columns=columns))},
    }
    return from_sums(
        name=name,
        local=local,
        update=update,
        flops_per_example=4.0 * clusters * columns,
        tolerance=1e-3,
        tolerance_reason="a row as near to two centers may go to either, and float32 sums are in another order",
        **{**drawing, **facts},
    )


def training(name: str, table: adapt.Table, *, clusters: int, seed: int) -> TrainWorkload:
    """k-means of a table's columns, its classes left out, from centers by `spread_out`.

    Its "accuracy" is the share of the columns' variance that the centers explain: 1 - inertia / (squared distances to
    the mean). Raises UserError for more centers than rows.
    """
    rows = table.rows[:, :-1]
    if not 1 <= clusters <= len(rows):
        raise UserError(
            f"--config.model.clusters={clusters} is not a number of 1 to {len(rows)}, the rows of {table.name}: use "
            f"{min(10, len(rows))}."
        )
    mean_C = rows.mean(axis=0)
    variance = float(np.mean(np.sum((rows - mean_C) ** 2, axis=1, dtype=np.float64)))

    def evaluate(params: Params, model_state: ArrayTree, batch: Batch) -> Metrics:
        inertia = jnp.mean(nearest(params["state"]["centers"], batch["row"])[0])
        return {"loss": inertia, "accuracy": 1 - inertia / variance}

    return workload(
        name,
        clusters=clusters,
        columns=rows.shape[1],
        init=lambda key: {"centers": jnp.asarray(spread_out(rows, clusters, seed))},
        example={"row": Field((rows.shape[1],))},
        evaluate=evaluate,
        data=Dataset({"row": rows}, {"row": rows}, table.name),  # tested on the same rows: k-means predicts nothing
    )


def spread_out(rows: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    """Initial centers, (clusters, columns), by k-means++ (Arthur and Vassilvitskii 2007).

    Each center is the best of a few rows that are drawn with the squared distance to the previous centers.
    """
    candidates = 4  # the paper's variant with several trials; scikit-learn takes 2 + ln(clusters)
    chosen = [rows[permutation(len(rows), seed)[0]]]
    squared_R = np.sum((rows - chosen[0]) ** 2, axis=1, dtype=np.float64)  # their sum has many terms
    for number in range(1, clusters):
        # A place in the sum of all squared distances hits each row as often as its distance is large.
        places = words(candidates, seed, number) / 2**64 * squared_R.sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(squared_R), places), len(rows) - 1)
        nearer = [np.minimum(squared_R, np.sum((rows - rows[i]) ** 2, axis=1)) for i in drawn]
        best = min(range(candidates), key=lambda i: nearer[i].sum())
        chosen.append(rows[drawn[best]])
        squared_R = nearer[best]
    return np.stack(chosen)
