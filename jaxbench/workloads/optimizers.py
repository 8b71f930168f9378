# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Optimizers by name, as the ``config.optimizer`` block of an experiment names them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax

from jaxbench.core.workload import TrainWorkload
from jaxbench.errors import UserError, did_you_mean

# Adam divides by the root of a running mean of squares. Near a zero gradient, a difference in the last bit becomes a
# difference of the order of the learning rate, so correct programs agree less closely than under SGD.
ADAPTIVE = {"adam", "adamw"}

_MAKERS: dict[str, Callable[[Any], optax.GradientTransformation]] = {
    "sgd": lambda c: optax.sgd(c.learning_rate),
    "momentum": lambda c: optax.sgd(c.learning_rate, momentum=0.9),  # as Krizhevsky 2012, He 2016 and Goyal 2017
    "adam": lambda c: optax.adam(c.learning_rate),
    "adamw": lambda c: optax.adamw(c.learning_rate),
}


def make_optimizer(config: Any) -> optax.GradientTransformation:
    """`config`: has `name` and `learning_rate`. Raises UserError for an unknown name."""
    if config.name not in _MAKERS:
        raise UserError(f"there is no optimizer '{config.name}': {did_you_mean(config.name, _MAKERS)}")
    return _MAKERS[config.name](config)


def warmed(workload: TrainWorkload, steps: int) -> TrainWorkload:
    """The workload with updates that grow linearly to their full size in the first `steps` steps.

    Source: Goyal et al. 2017, section 2.2.
    """
    if not steps:
        return workload
    # All optimizers of `make_optimizer` multiply by the learning rate last, so this is a warm-up of the rate.
    ramp = optax.scale_by_schedule(lambda count: jnp.minimum(1.0, (count + 1) / steps))
    return dataclasses.replace(workload, optimizer=optax.chain(workload.optimizer, ramp))


def tolerance(optimizer: str) -> dict[str, Any]:
    """The correctness tolerance and its reason, as TrainWorkload takes them (relative L2 of the parameters)."""
    if optimizer not in ADAPTIVE:
        return {}  # the defaults of a TrainWorkload
    return {
        "tolerance": 1e-3,
        "tolerance_reason": f"{optimizer} divides by a root of squares: last-bit differences near 0 grow",
    }
