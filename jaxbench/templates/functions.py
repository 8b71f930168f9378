# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""My model, in plain functions: 32 numbers to one of 5 classes. Measure it with: jaxbench run mine.py"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, evaluation, from_functions, prediction


def init(key, width):
    up, down = jax.random.split(key)
    return {
        "hidden": {"kernel": jax.random.normal(up, (32, width)) / 32**0.5, "bias": jnp.zeros(width)},
        "logits": {"kernel": jax.random.normal(down, (width, 5)) / width**0.5, "bias": jnp.zeros(5)},
    }


def apply(params, x, key, train, dropout):
    x = jax.nn.relu(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    if train:
        kept = jax.random.bernoulli(key, 1 - dropout, x.shape)
        x = jnp.where(kept, x / (1 - dropout), 0)
    return x @ params["logits"]["kernel"] + params["logits"]["bias"]


def get_config():
    # Each field is also a flag, such as --config.model.width=512.
    model = {"width": 256, "dropout": 0.1}
    return ConfigDict({"batch": 128, "model": model, "optimizer": {"learning_rate": 1e-3}})


def build(config):
    model = from_functions(partial(init, width=config.model.width), partial(apply, dropout=config.model.dropout))
    return TrainWorkload(
        name="mine",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(config.optimizer.learning_rate)),
        # One example, without the batch axis. Speed is measured on random values and needs no data.
        example={"x": Field((32,)), "y": Field((), jnp.int32, classes=5)},
        unit="rows",  # throughput is shown in rows/s
        # The largest relative difference from one device's parameters after three updates.
        tolerance=1e-3,
        tolerance_reason="adamw divides by a root of squares: last-bit differences near 0 grow",
        predict=prediction(model, inputs="x"),
        evaluate=evaluation(model, inputs="x", labels="y"),
        # `jaxbench train mine.py` needs data, such as NumPy arrays with the fields of an example:
        # data={"x": x, "y": y},
    )
