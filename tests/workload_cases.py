# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Workloads shared by several test folders."""

from __future__ import annotations

import functools
import types

import jax
import jax.numpy as jnp
import optax

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.measure import reference
from jaxbench.measure.arm import Arms
from jaxbench.workloads import Field, TrainWorkload
from jaxbench.workloads.levers import stateful

KEY = jax.random.PRNGKey(0)
TINY = types.ModuleType("tiny")  # a preset that changes nothing else
TINY.TINY, TINY.get_config = True, lambda config: config  # type: ignore[attr-defined]


@functools.cache  # tests of a model share the traces that JAX keeps of its functions
def experiment_workload(name: str, *, tiny: bool = True, **changes: object) -> TrainWorkload:
    """A discovered experiment, tiny or unchanged, with dotted config changes such as ``**{"model.width": 4}``."""
    config = config_lib.compose(name, discovery.load_experiment(name), TINY, tiny=tiny)
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return Arms(config, name, jax.devices()[0]).workload(levers.arms(config.lever)[0].levers)


def one_device(workload: TrainWorkload, batch: dict[str, jax.Array], parts: int = 1) -> reference.Reference:
    """The reference for every strategy. parts: number of devices, which affects statistics of a device's examples."""
    device = jax.devices()[0]
    state = reference.initial_state(workload, KEY, device=device)
    parts = parts if stateful(state.model_state) else 1
    return reference.reference(workload, state, batch, device=device, layout=reference.BatchLayout(parts))


def linear_workload(optimizer: optax.GradientTransformation | None = None) -> TrainWorkload:
    """Least squares with 3 inputs and 2 outputs: the smallest thing that trains; 8 parameters, 32 gradient bytes."""

    def init(key):
        return {"w": jax.random.normal(key, (3, 2)), "b": jnp.zeros(2)}, {}

    def loss(params, model_state, batch, key):
        error = batch["x"] @ params["w"] + params["b"] - batch["y"]
        return jnp.mean(error**2), (model_state, {"worst": jnp.max(error)})

    optimizer, example = optimizer or optax.sgd(0.1), {"x": Field((3,)), "y": Field((2,))}
    return TrainWorkload(name="linear", init=init, loss=loss, optimizer=optimizer, example=example)
