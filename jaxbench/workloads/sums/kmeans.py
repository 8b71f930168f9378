# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""k-means by Lloyd's iteration: each row belongs to the nearest center, and a center moves to the mean of its rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbench.workloads.base import Batch, Field, TrainWorkload
from jaxbench.workloads.sums.adapt import from_sums

SPREAD = 4.0  # standard deviation of the drawn clusters' centers; that of their rows is 1


def local(state: dict[str, jax.Array], rows: Batch) -> dict[str, jax.Array]:
    """Sums over the rows of each center: "rows" (k, columns), "count" (k,), and the squared distances as "loss"."""
    x_RC, centers_KC = rows["row"], state["centers"]
    squared_RK = jnp.sum(centers_KC**2, axis=1) - 2 * x_RC @ centers_KC.T  # without |x|^2, which all centers share
    nearest_RK = jax.nn.one_hot(jnp.argmin(squared_RK, axis=1), len(centers_KC), dtype=x_RC.dtype)
    loss = jnp.sum(jnp.min(squared_RK, axis=1) + jnp.sum(x_RC**2, axis=1))
    return {"rows": nearest_RK.T @ x_RC, "count": jnp.sum(nearest_RK, axis=0), "loss": loss}


def update(state: dict[str, jax.Array], sums: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Each center at the mean of its rows; one without rows stays where it is."""
    count_K1 = sums["count"][:, None]
    means_KC = sums["rows"] / jnp.where(count_K1 > 0, count_K1, 1)
    return {"centers": jnp.where(count_K1 > 0, means_KC, state["centers"])}


def drawn(key: jax.Array, rows: int, *, clusters: int, columns: int) -> jax.Array:
    """Rows around so many centers, (rows, columns). The centers are the same for every key."""
    centers_KC = SPREAD * jax.random.normal(jax.random.PRNGKey(7), (clusters, columns))
    which, noise = jax.random.split(key)
    return centers_KC[jax.random.randint(which, (rows,), 0, clusters)] + jax.random.normal(noise, (rows, columns))


def workload(name: str, *, clusters: int, columns: int, **facts: Any) -> TrainWorkload:
    """k-means with `clusters` centers. Two products of 2 k columns FLOPs a row: distances and sums."""
    return from_sums(
        name=name,
        init=lambda key: {"centers": SPREAD * jax.random.normal(key, (clusters, columns))},
        local=local,
        update=update,
        example={"row": Field((columns,), draw=lambda key, n: drawn(key, n, clusters=clusters, columns=columns))},
        flops_per_example=4.0 * clusters * columns,
        tolerance=1e-3,
        tolerance_reason="a row as near to two centers may go to either, and float32 sums are in another order",
        **facts,
    )
