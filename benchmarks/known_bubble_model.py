# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Blocks that wait and hardly compute: an experiment of `benchmarks.known_losses`.

Each block waits for `config.model.wait_s` in its forward and in its backward pass. Waiting needs no core, so stages of
a pipeline do not slow each other, all ticks are equally long, and an idle tick is free: the bubble equals its formula.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from jaxbench.core.workload import CollectiveBounds, Partition, Stages
from jaxbench.workloads import Field, TrainWorkload
from jaxbench.workloads.flops import dense, training

WIDTH, BLOCKS = 64, 2


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.batch, config.accelerator_batch = 32, 0
    config.model = ConfigDict({"wait_s": 0.02})
    return config


def build(config: ConfigDict) -> TrainWorkload:
    stages = Stages(first=first, block=partial(block, config.model.wait_s), last=last)
    return TrainWorkload(
        name="known_bubble_model",
        init=init,
        loss=partial(loss, stages),
        optimizer=optax.sgd(1e-3),
        example={"x": Field((WIDTH,))},
        flops_per_example=training([dense(WIDTH, WIDTH)] * BLOCKS),
        partition=Partition(axes={}, collective_bounds=lambda share: CollectiveBounds(), stages=stages),
    )


def init(key: jax.Array) -> tuple[Any, Any]:
    drawn = jax.random.normal(key, (BLOCKS, WIDTH, WIDTH)) / WIDTH**0.5
    return {"blocks": {str(i): {"kernel": drawn[i]} for i in range(BLOCKS)}, "scale": jnp.ones(())}, {}


def first(outer: Any, nothing: Any, batch: Any, key: jax.Array) -> jax.Array:
    return outer["scale"] * batch["x"]


def block(wait_s: float, params: Any, x_BF: jax.Array, batch: Any, key: jax.Array) -> jax.Array:
    return jnp.tanh(waited(wait_s, x_BF) @ params["kernel"])


def last(outer: Any, x_BF: jax.Array, batch: Any, key: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    return jnp.mean(jnp.square(x_BF - batch["x"])), {}


def loss(stages: Stages, params: Any, state: Any, batch: Any, key: jax.Array) -> Any:
    outer = {name: value for name, value in params.items() if name != stages.blocks}
    x_BF = stages.first(outer, None, batch, key)
    for i in range(BLOCKS):
        x_BF = stages.block(params[stages.blocks][str(i)], x_BF, batch, key)
    value, metrics = stages.last(outer, x_BF, batch, key)
    return value, (state, metrics)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def waited(wait_s: float, x: jax.Array) -> jax.Array:
    """x, after a wait; its gradient waits too."""

    def sleep(_: np.ndarray) -> np.ndarray:
        time.sleep(wait_s)
        return np.float32(0)

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return x + jax.pure_callback(sleep, shape, x.ravel()[0], vmap_method="sequential")


waited.defvjp(lambda wait_s, x: (waited(wait_s, x), None), lambda wait_s, _, grad: (waited(wait_s, grad),))
