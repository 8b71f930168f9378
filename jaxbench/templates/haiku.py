# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""My model, in Haiku: 32 numbers to one of 5 classes. Measure it with: jaxbench run mine.py"""

from functools import partial

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, evaluation, from_haiku, prediction


def net(x, is_training, width, dropout):
    x = jax.nn.relu(hk.Linear(width)(x))
    if is_training:
        x = hk.dropout(hk.next_rng_key(), dropout, x)
    return hk.Linear(5)(x)


def get_config():
    # Each field is also a flag, such as --config.model.width=512.
    model = {"width": 256, "dropout": 0.1}
    return ConfigDict({"batch": 128, "model": model, "optimizer": {"learning_rate": 1e-3}})


def build(config):
    batch = jax.ShapeDtypeStruct((1, 32), jnp.float32)  # the model is initialized with it
    model = from_haiku(partial(net, width=config.model.width, dropout=config.model.dropout), batch)
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
