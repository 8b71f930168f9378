# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A train step of Flax Linen: a TrainState with a copy for each device, and `pmap` with a mean of the gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(32)(x)))


def train_step(state, batch):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    loss, grads = jax.lax.pmean((loss, grads), axis_name="batch")
    return state.apply_gradients(grads=grads), {"loss": loss}


def make(devices, batch):
    count = len(devices)
    model, tx = Net(), optax.adam(1e-2)
    each = NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec("batch"))
    x = np.random.default_rng(0).normal(size=(batch, 16)).astype("float32")
    data = {"x": x, "y": (np.arange(batch) % 4).astype("int32")}

    def init():
        params = model.init(jax.random.key(0), x[:1])["params"]
        state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)
        return jax.device_put(jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * count), state), each)

    step = jax.pmap(train_step, axis_name="batch", devices=devices, donate_argnums=0)
    shards = jax.tree.map(lambda x: x.reshape(count, batch // count, *x.shape[1:]), data)
    return OwnStep(
        step=step,
        init=init,
        batch=jax.device_put(shards, each),
        parameters=lambda state: state.params,
    )


def get_config():
    return ConfigDict({"batch": 8})


def build(config):
    return StepWorkload(name="linen", make=make, batch=config.batch, unit="rows")
