# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The names of collectives and transfers, and payload sizes taken from the gradients of a real model."""

from __future__ import annotations

import math

import jax

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.workloads.base import KEY, TrainWorkload

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "ppermute")
TRANSFERS = ("host_to_device", "device_to_host", "device_to_device")


def gradient_sizes(experiment: str) -> list[int]:
    """The distinct sizes in bytes of a model's gradients (one for each parameter array) and their sum, ascending.

    Only shapes are computed: no device is used and no backend is started.

    Args:
      experiment: name or path of a training experiment, which is built with its default config.

    Raises:
      UserError: there is no such experiment, or it trains nothing.
    """
    module = discovery.load_experiment(experiment)
    config = config_lib.compose(experiment, module, discovery.load_preset("auto"))
    # Building cases with sizes_from would recurse.
    workload = None if "measures" in config else module.build(config)
    if not isinstance(workload, TrainWorkload):
        *names, last = config_lib.training_experiments()
        choices = f"{', '.join(names)} or {last}" if names else last
        raise UserError(f"--config.sizes_from={experiment} is not a training experiment: choose {choices}.")
    params, _ = jax.eval_shape(workload.init, KEY)
    sizes = [math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(params)]
    return sorted({*sizes, sum(sizes)})
