# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does the trainer next to this file scale? jaxbench run examples/linen_pmap/scaling.py"""

import jax
import jax.numpy as jnp
import numpy as np
import trainer
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload


def make(devices, batch):
    count = len(devices)
    each = NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec("batch"))

    def init():  # a copy of the state for each device, as pmap takes it
        copies = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * count), trainer.create_state())
        return jax.device_put(copies, each)

    shards = jax.tree.map(lambda x: x.reshape(count, batch // count, *x.shape[1:]), trainer.examples(batch))
    return OwnStep(
        step=trainer.p_train_step(tuple(devices)),
        init=init,
        batch=jax.device_put(shards, each),
        parameters=lambda state: state.params,
    )


def get_config():
    return ConfigDict({"batch": 64})


def build(config):
    return StepWorkload(name="linen_pmap", make=make, batch=config.batch, unit="rows")
