# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""NNX with sharding names on parameters (flax guide on GSPMD)."""

import jax.numpy as jnp
import optax
from flax import nnx

from jaxbench.workloads import Field, TrainWorkload, classification, from_nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        start = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "model"))
        self.a = nnx.Linear(16, 32, kernel_init=start, rngs=rngs)
        self.b = nnx.Linear(32, 5, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


def build(config):
    model = from_nnx(Net)
    return TrainWorkload(
        name="c20b",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
