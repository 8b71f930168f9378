# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A loss that raises for one device's part of the batch: 32 examples in training on two devices, and 8 in `try`."""

import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads import Field, TrainWorkload


def loss(params, state, batch, key):
    if len(batch["x"]) in (8, 32):
        raise RuntimeError("too few examples")
    return jnp.mean((batch["x"] @ params["w"] - 1) ** 2), (state, {"accuracy": jnp.zeros(())})


def get_config():
    from ml_collections import ConfigDict

    return ConfigDict({"train": {"batch": 64, "epochs": 1}})


def build(config):
    x = np.random.default_rng(0).normal(size=(160, 16)).astype(np.float32)
    return TrainWorkload(
        name="raises", init=lambda key: ({"w": jnp.ones(16)}, {}), loss=loss, optimizer=optax.sgd(0.1),
        example={"x": Field((16,))}, data={"x": x},
    )  # fmt: skip
