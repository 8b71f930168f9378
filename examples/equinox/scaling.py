# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does the trainer next to this file scale? jaxbench run examples/equinox/scaling.py"""

import equinox as eqx
import jax
import numpy as np
import trainer
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


def make(devices, batch):
    mesh = Mesh(np.array(devices), ("batch",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))

    def step(state, batch):
        loss, *state = trainer.make_step(*state, *batch)
        return tuple(state), {"loss": loss}

    return OwnStep(
        step=step,
        init=lambda: eqx.filter_shard(trainer.create(), whole),
        batch=jax.device_put(trainer.examples(batch), split),
        parameters=lambda state: eqx.filter(state[0], eqx.is_array),
    )


def get_config():
    return ConfigDict({"batch": 64})


def build(config):
    return StepWorkload(name="equinox", make=make, batch=config.batch, unit="rows")
