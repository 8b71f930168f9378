# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss that is not a number from the first step on."""

import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads import Field, TrainWorkload


def loss(params, state, batch, key):
    error = batch["x"] @ params["w"]
    return jnp.mean(jnp.sqrt(-1 - error**2)), (state, {"accuracy": jnp.zeros(())})


def build(config):
    x = np.random.default_rng(0).normal(size=(160, 16)).astype(np.float32)
    return TrainWorkload(
        name="nan", init=lambda key: ({"w": jnp.ones(16)}, {}), loss=loss, optimizer=optax.sgd(0.1),
        example={"x": Field((16,))}, data={"x": x},
    )  # fmt: skip
