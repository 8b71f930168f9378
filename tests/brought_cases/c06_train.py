# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""c06 with data, for training with a strategy that `try` refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxbench.workloads import Field, TrainWorkload, classification, evaluation, from_functions


def init(key):
    a, b = jax.random.split(key)
    params = {"w": jax.random.normal(a, (16, 32)) / 4, "scale": jnp.ones(32), "v": jax.random.normal(b, (32, 5)) / 6}
    return params, {"mean": jnp.zeros(32), "var": jnp.ones(32)}


def apply(params, state, x, key, train):
    h = x @ params["w"]
    mean, var = (h.mean(0), h.var(0)) if train else (state["mean"], state["var"])
    if train:
        state = {"mean": 0.9 * state["mean"] + 0.1 * mean, "var": 0.9 * state["var"] + 0.1 * var}
    return jax.nn.relu((h - mean) / jnp.sqrt(var + 1e-5) * params["scale"]) @ params["v"], state


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 16)).astype(np.float32)
    return {"x": x, "y": np.argmax(x[:, :5], -1).astype(np.int32)}


def build(config):
    model = from_functions(init, apply)
    return TrainWorkload(
        name="c06t",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
        evaluate=evaluation(model, inputs="x", labels="y"),
        data=data,
    )
