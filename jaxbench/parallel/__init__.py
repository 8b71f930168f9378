# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How a workload is spread over devices: one file a strategy."""

from __future__ import annotations

import importlib
from typing import Any

import jax

from jaxbench.errors import UserError, did_you_mean
from jaxbench.parallel import axes
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload

# By file name. A new strategy is a file with `build` and its name here.
OF_ANY_MODEL = ("fsdp", "jit_auto", "jit_explicit", "pmap", "shard_map", "zero1", "zero2")
# Those that need to know how the model can be split (`workloads.base.Partition`), or what mesh is meant.
OF_SOME_MODELS = ("context", "expert", "hybrid", "pipeline", "tensor")


def strategies() -> list[str]:
    """The names of all strategies."""
    return sorted((*OF_ANY_MODEL, *OF_SOME_MODELS))


def of_any_model() -> list[str]:
    """The strategies that every workload can be spread by: what "all" means."""
    return [*OF_ANY_MODEL]


def of_model(workload: TrainWorkload) -> list[str]:
    """The strategies that this model can be spread by, apart from `hybrid`, which needs to be told its mesh."""
    partition = workload.partition
    if partition is None:
        return of_any_model()
    axes_of = {axes.LIES_ON[name] for table in partition.axes.values() for name in table if name}
    more = {
        "tensor": "tensor" in axes_of,
        "context": partition.positions > 0,
        "pipeline": partition.stages is not None,
        "expert": "expert" in axes_of,
    }
    return sorted((*OF_ANY_MODEL, *(name for name, can in more.items() if can)))


def load(strategy: str) -> Any:
    """Returns the strategy's module. Raises UserError for an unknown name."""
    if strategy not in strategies():
        raise UserError(f"there is no strategy '{strategy}': {did_you_mean(strategy, strategies())}")
    return importlib.import_module(f"{__name__}.{strategy}")


def build(strategy: str, workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Spreads `workload` over `devices` by the named strategy."""
    return load(strategy).build(workload, devices)
