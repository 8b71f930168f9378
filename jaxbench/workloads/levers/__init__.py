# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Levers that transform a TrainWorkload into one that trains in another way, invisible to strategies.

One file per lever, with the name of its declaration in `jaxbench.levers`. It has `apply(workload, value)` and, where
not every model and device supports the lever, `require(workload, value, platform, device_kind)`, which raises
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
    """`workload` with its levers, in the order of `LEVERS`; an absent one is at its default.

    Freezing wraps precision, so that frozen parameters, merged with the others, are cast too.

    Args:
      workload: built from a config with the same lever `remat` as `levers`.
      platform, device_kind: of the devices it will run on, as `jax.Device` has them.

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
