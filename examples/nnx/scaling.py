# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does the trainer next to this file scale? jaxbench run examples/nnx/scaling.py"""

import jax
import numpy as np
import trainer
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


def make(devices, batch):
    mesh = Mesh(np.array(devices), ("data",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    graph, _ = nnx.split(trainer.create())

    def step(state, batch):  # the trainer changes model and optimizer in place; jaxbench passes the state along
        model, optimizer = nnx.merge(graph, state)
        loss = trainer.train_step(model, optimizer, batch)
        return nnx.state((model, optimizer)), {"loss": loss}

    return OwnStep(
        step=step,
        init=lambda: jax.device_put(nnx.split(trainer.create())[1], whole),
        batch=jax.device_put(trainer.examples(batch), split),
        parameters=lambda state: nnx.filter_state(state, nnx.Param),
    )


def get_config():
    return ConfigDict({"batch": 64})


def build(config):
    return StepWorkload(name="nnx", make=make, batch=config.batch, unit="images")
