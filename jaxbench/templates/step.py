# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""My own train step, with its own mesh and optimizer. Explain it with: jaxbench try mine.py"""

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from jaxbench import OwnStep, StepWorkload

# Replace this part by your trainer: import it, and leave its code as it is.
optimizer = optax.adam(1e-3)


def new_state(key, width):
    up, down = jax.random.split(key)
    params = {
        "up": jax.random.normal(up, (32, width)) / 32**0.5,
        "down": jax.random.normal(down, (width, 5)) / width**0.5,
    }
    return {"params": params, "opt_state": optimizer.init(params)}


@jax.jit
def train_step(state, batch):
    def loss_of(params):
        logits = jax.nn.relu(batch["x"] @ params["up"]) @ params["down"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(state["params"])
    updates, opt_state = optimizer.update(grads, state["opt_state"])
    return {"params": optax.apply_updates(state["params"], updates), "opt_state": opt_state}, {"loss": loss}


def make(devices, batch, width):
    """Called once for each device count, in a process that sees exactly these devices."""
    mesh = Mesh(np.array(devices), ("data",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    # The same examples on any number of devices, placed as your input pipeline places them.
    random = np.random.default_rng(0)
    data = {"x": random.normal(size=(batch, 32)).astype(np.float32), "y": random.integers(0, 5, batch, np.int32)}
    return OwnStep(
        step=train_step,  # (state, batch) -> (state, metrics); for another order of arguments, wrap it in a function
        init=lambda: jax.device_put(new_state(jax.random.key(0), width), whole),  # the same values at each call
        batch=jax.device_put(data, split),  # or a function of the step number, if each step shall load another batch
        parameters=lambda state: state["params"],  # what is compared with one device
        # context=lambda: jax.set_mesh(mesh),  # if your trainer needs it
    )


def get_config():
    # Each field is also a flag, such as --config.model.width=512.
    return ConfigDict({"batch": 128, "model": {"width": 256}})


def build(config):
    return StepWorkload(
        name="mine",
        make=lambda devices, batch: make(devices, batch, config.model.width),
        batch=config.batch,  # of all devices in strong scaling, of each device in weak scaling
        unit="rows",  # throughput is shown in rows/s
        # flops_per_example=...,  # if you know it: the default counts the products in the compiled program
    )
