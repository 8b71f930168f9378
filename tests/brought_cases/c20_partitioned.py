# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Linen with partition names on parameters and constraints on activations (flax guide; TransformerEngine 1772)."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from jaxbench.workloads import Field, TrainWorkload, classification, from_linen


def get_config():
    from ml_collections import ConfigDict

    return ConfigDict({"model": {"logical": True}})


class Net(nn.Module):
    logical: bool

    @nn.compact
    def __call__(self, x):
        named = nn.with_logical_partitioning if self.logical else nn.with_partitioning
        start = nn.initializers.lecun_normal()
        x = nn.Dense(32, kernel_init=named(start, ("embed", "mlp")))(x)
        if self.logical:
            x = nn.with_logical_constraint(x, ("batch", "mlp"))
        return nn.Dense(5, kernel_init=named(start, ("mlp", None)))(nn.relu(x))


def build(config):
    model = from_linen(Net(config.model.logical), jax.ShapeDtypeStruct((1, 16), jnp.float32))
    return TrainWorkload(
        name="c20",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.1),
        data={"x": np.ones((160, 16), np.float32), "y": np.zeros(160, np.int32)},
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
