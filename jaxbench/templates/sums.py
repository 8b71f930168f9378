# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""My algorithm, as sums over rows: the largest spread of 32 numbers. Measure it with: jaxbench run mine.py"""

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxbench.workloads import Field, from_sums

COLUMNS = 32


def init(key):
    # The state is a tree of float arrays, whole on every device.
    return {"mean": jnp.zeros(COLUMNS), "direction": jax.random.normal(key, (COLUMNS,)) / COLUMNS**0.5}


def local(state, rows):
    # Sums over the rows that one device has. "loss" should fall: here, the spread that the direction does not explain.
    centered = rows["x"] - state["mean"]
    along = centered @ state["direction"]
    return {
        "x": jnp.sum(rows["x"], axis=0),
        "along": along @ centered,
        "loss": jnp.sum(centered**2) - jnp.sum(along**2),
    }


def update(state, sums):
    # The sums over the rows of all devices, divided by the number of rows: one step of the power method.
    return {"mean": sums["x"], "direction": sums["along"] / (jnp.linalg.norm(sums["along"]) + 1e-12)}


def draw(key, rows):
    return jax.random.normal(key, (rows, COLUMNS)) * jnp.linspace(1.0, 2.0, COLUMNS)


def get_config():
    return ConfigDict({"batch": 65536})


def build(config):
    return from_sums(
        name="mine",
        init=init,
        local=local,
        update=update,
        # One row, without the axis of rows. `draw` makes the rows with which speed is measured.
        example={"x": Field((COLUMNS,), draw=draw)},
        # The largest relative difference from one device's state and sums after three steps.
        tolerance=1e-4,
        tolerance_reason="float32 sums in another order",
    )
