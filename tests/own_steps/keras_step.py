# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The train step of a compiled Keras model. Packages: keras>=3.15 (3.15.1 tried, jax 0.12.0.1)."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


def network():
    keras.utils.set_random_seed(0)
    layers = [
        keras.Input((16,)),
        keras.layers.Dense(32, "gelu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(4),
    ]
    model = keras.Sequential(layers)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def make(devices, batch):
    names = [f"{d.platform}:{d.id}" for d in devices]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=names))
    x = np.random.default_rng(0).normal(size=(batch, 16)).astype("float32")
    y = (np.arange(batch) % 4).astype("int32")
    data = jax.device_put((x, y), NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec("batch")))

    def fresh():
        model = network()
        model._symbolic_build(data_batch=(x, y))
        return model, model._get_jax_state(
            trainable_variables=True, non_trainable_variables=True, optimizer_variables=True, metrics_variables=True
        )

    model, _ = fresh()
    model.make_train_function()

    def step(state, batch):
        logs, state = model.train_function(state, iter([batch]))
        return state, logs

    return OwnStep(step=step, init=lambda: fresh()[1], batch=data, parameters=lambda state: state[0])


def get_config():
    return ConfigDict({"batch": 8})


def build(config):
    return StepWorkload(name="keras", make=make, batch=config.batch, unit="rows")
