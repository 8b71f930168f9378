# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers that transform a TrainWorkload so that it trains in another way. Strategies do not see them.

There is one file for each lever, with the name of its declaration in `jaxbench.levers`. It has `apply(workload, value)`
and, if not every model and device supports the lever, `require(workload, value, platform, device_kind)`, which raises
UserError.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from jaxbench.levers import LEVERS
from jaxbench.workloads.base import TrainWorkload

_FILES = {module.name for module in pkgutil.iter_modules(__path__)}
# The levers that a workload depends on: those that transform it, and those that the model reads itself.
CHANGES = tuple(name for name, lever in LEVERS.items() if name in _FILES or lever.changes == "workload")


def apply(workload: TrainWorkload, levers: Mapping[str, str], *, platform: str, device_kind: str) -> TrainWorkload:
    """`workload` with its levers applied in the order of `LEVERS`; an absent lever has its default.

    Freezing is applied after precision, so frozen parameters, merged with the others, are cast too.

    Args:
      workload: built from a config with the same lever `remat` as `levers`.
      platform, device_kind: those of the devices that it will run on, as in `jax.Device`.

    Raises:
      UserError: this model or these devices do not support a lever.
    """
    for name in (name for name in CHANGES if name in _FILES):
        module: Any = importlib.import_module(f"{__name__}.{name}")
        value = LEVERS[name].of(levers)
        if hasattr(module, "require"):
            module.require(workload, value, platform, device_kind)
        if hasattr(module, "apply"):
            workload = module.apply(workload, value)
    return workload
