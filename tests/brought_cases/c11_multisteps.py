# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""optax.MultiSteps: parameters change only in every k-th step (optax 1567)."""

import jax
import jax.numpy as jnp
import optax

from jaxbench.workloads import Field, TrainWorkload, classification, from_functions


def get_config():
    from ml_collections import ConfigDict

    return ConfigDict({"model": {"every": 8}})


def init(key):
    return {"w": jax.random.normal(key, (16, 5)) / 4}


def build(config):
    model = from_functions(init, lambda params, x: x @ params["w"])
    return TrainWorkload(
        name="c11",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.MultiSteps(optax.sgd(0.1), config.model.every).gradient_transformation(),
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
