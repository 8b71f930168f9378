# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A user's step that does something else than its name says: `workload(how)`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench import OwnStep, StepWorkload

BATCH, INPUTS, CLASSES = 16, 6, 3
FORMULA = 2 * 2 * INPUTS * CLASSES  # forward, and backward for the weights
RATE = optax.sgd(0.05)


def rows(count: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {"x": random.normal(size=(count, INPUTS)).astype("float32"), "y": random.integers(0, CLASSES, count)}


def update(state: Any, batch: Any, dtype: Any = jnp.float32) -> tuple[Any, Any]:
    def loss(w: Any) -> Any:
        scores = (batch["x"].astype(dtype) @ w.astype(dtype)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(scores, batch["y"]).mean()

    value, grad = jax.value_and_grad(loss)(state["w"])
    return {**state, "w": state["w"] - 0.05 * grad, "n": state["n"] + 1}, {"loss": value}


def every_second(state: Any, batch: Any) -> tuple[Any, Any]:
    rest = lambda state: ({**state, "n": state["n"] + 1}, {"loss": jnp.float32(0)})  # noqa: E731
    return jax.lax.cond(state["n"] % 2 == 0, lambda state: update(state, batch), rest, state)


def half_of_the_weights(state: Any, batch: Any) -> tuple[Any, Any]:
    new, metrics = update(state, batch)
    return {**new, "still": state["still"]}, metrics


DATA = rows(BATCH)  # closed over, as a notebook does
STEPS = {
    "right": update,
    "closed": lambda state, batch: update(state, jax.tree.map(jnp.asarray, DATA)),
    "every_second": every_second,
    "bfloat16": lambda state, batch: update(state, batch, jnp.bfloat16),
    "still": half_of_the_weights,
    "labels_alone": lambda state, batch: update(state, {**batch, "x": 0 * batch["x"] + 1}),
}


def workload(how: str = "right", flops: float | None = FORMULA) -> StepWorkload:
    def make(devices: list[jax.Device], batch: int) -> OwnStep:
        mesh = Mesh(np.array(devices), ("data",))
        whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))

        def init() -> Any:
            w = jax.random.normal(jax.random.key(0), (INPUTS, CLASSES))
            state = {"w": w, "n": jnp.zeros((), jnp.int32), "still": jnp.ones((40, 2))}
            return jax.device_put(state, whole)

        def parameters(state: Any) -> Any:
            return {"w": state["w"], **({"still": state["still"]} if how == "still" else {})}

        placed = jax.device_put(rows(batch), split)
        return OwnStep(step=jax.jit(STEPS[how]), init=init, batch=placed, parameters=parameters)

    return StepWorkload(name="lies", make=make, batch=BATCH, unit="rows", flops_per_example=flops)
