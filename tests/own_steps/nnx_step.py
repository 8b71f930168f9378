# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A train step of Flax NNX: it changes the model and the optimizer in place, and returns the loss."""

import jax
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.out = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, image):
        x = nnx.relu(self.norm(self.conv(image)))
        return self.out(x.mean((1, 2)))


@nnx.jit
def train_step(model, optimizer, batch):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(batch["image"]), batch["label"]).mean()

    loss, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return loss


def make(devices, batch):
    mesh = Mesh(np.array(devices), ("data",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    image = np.random.default_rng(0).normal(size=(batch, 8, 8, 1)).astype("float32")
    data = jax.device_put({"image": image, "label": (np.arange(batch) % 4).astype("int32")}, split)

    def fresh():
        model = Net(nnx.Rngs(0))
        return nnx.split((model, nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)))

    graph, _ = fresh()

    def step(state, batch):
        model, optimizer = nnx.merge(graph, state)
        loss = train_step(model, optimizer, batch)
        return nnx.state((model, optimizer)), {"loss": loss}

    return OwnStep(
        step=step,
        init=lambda: jax.device_put(fresh()[1], whole),
        batch=data,
        parameters=lambda state: nnx.filter_state(state, nnx.Param),
    )


def get_config():
    return ConfigDict({"batch": 8})


def build(config):
    return StepWorkload(name="nnx", make=make, batch=config.batch, unit="images")
