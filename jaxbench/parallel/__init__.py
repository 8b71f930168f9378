# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How a workload is spread over devices: one file a strategy, found by its file name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import jax

from jaxbench.errors import UserError, did_you_mean
from jaxbench.parallel.program import Program
from jaxbench.workloads.base import TrainWorkload

_NOT_A_STRATEGY = {
    *("program", "parts", "reduction"),
    *("axes", "flat", "layout", "split", "zero", "schedule", "stacked", "stage", "halves"),
    *("chain", "collectives", "collective_answers"),
}
# Those that need to know how the model can be split (`workloads.base.Partition`), or what mesh is meant.
OF_SOME_MODELS = {"tensor", "context", "pipeline", "expert", "hybrid"}


def strategies() -> list[str]:
    """The names of all strategies: the files of this folder that define `build`."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_A_STRATEGY)


def of_any_model() -> list[str]:
    """The strategies that every workload can be spread by: what "all" means."""
    return [name for name in strategies() if name not in OF_SOME_MODELS]


def load(strategy: str) -> Any:
    """Returns the strategy's module. Raises UserError for an unknown name."""
    if strategy not in strategies():
        raise UserError(f"there is no strategy '{strategy}': {did_you_mean(strategy, strategies())}")
    return importlib.import_module(f"{__name__}.{strategy}")


def build(strategy: str, workload: TrainWorkload, devices: list[jax.Device]) -> Program:
    """Spreads `workload` over `devices` by the named strategy."""
    return load(strategy).build(workload, devices)
