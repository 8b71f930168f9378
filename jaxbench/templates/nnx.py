# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""My model, in Flax NNX: 32 numbers to one of 5 classes. Measure it with: jaxbench run mine.py"""

import jax.numpy as jnp
import optax
from flax import nnx
from ml_collections import ConfigDict

from jaxbench.workloads import Field, TrainWorkload, classification, evaluation, from_nnx, prediction


class Net(nnx.Module):
    def __init__(self, width, dropout, rngs):
        self.hidden = nnx.Linear(32, width, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.logits = nnx.Linear(width, 5, rngs=rngs)

    def __call__(self, x):
        return self.logits(self.dropout(nnx.relu(self.hidden(x))))


def get_config():
    # Each field is also a flag, such as --config.model.width=512.
    model = {"width": 256, "dropout": 0.1}
    return ConfigDict({"batch": 128, "model": model, "optimizer": {"learning_rate": 1e-3}})


def build(config):
    model = from_nnx(lambda rngs: Net(config.model.width, config.model.dropout, rngs))
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
