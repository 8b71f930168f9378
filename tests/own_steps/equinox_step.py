# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A train step in the style of the Equinox guide: several state arguments, filter_jit. Packages: equinox>=0.13.8."""

import equinox as eqx
import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload

optimizer = optax.adam(1e-2)


@eqx.filter_jit(donate="all-except-first")
def train_step(data, model, opt_state):
    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(data[0]), data[1]).mean()

    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, opt_state = optimizer.update(grads, opt_state, model)
    return eqx.apply_updates(model, updates), opt_state, value


def make(devices, batch):
    mesh = Mesh(np.array(devices), ("batch",))
    rows = np.random.default_rng(0).normal(size=(batch, 16)).astype("float32")
    data = jax.device_put((rows, (np.arange(batch) % 4).astype("int32")), NamedSharding(mesh, PartitionSpec("batch")))

    def init():
        model = eqx.nn.MLP(16, 4, 32, 2, key=jax.random.key(0))
        return eqx.filter_shard(
            (model, optimizer.init(eqx.filter(model, eqx.is_array))), NamedSharding(mesh, PartitionSpec())
        )

    def step(state, batch):
        model, opt_state, loss = train_step(batch, *state)
        return (model, opt_state), {"loss": loss}

    return OwnStep(step=step, init=init, batch=data, parameters=lambda state: eqx.filter(state[0], eqx.is_array))


def get_config():
    return ConfigDict({"batch": 8})


def build(config):
    return StepWorkload(name="equinox", make=make, batch=config.batch, unit="rows")
