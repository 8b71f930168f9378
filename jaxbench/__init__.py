# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does training scale from device to device? Measured, checked, and drawn."""

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names by the module that defines them. They load on first use, because importing jaxbench must not import jax:
# a worker chooses its devices before that.
_PUBLIC = {
    "OwnStep": "jaxbench.workloads.own_step",
    "StepWorkload": "jaxbench.workloads.own_step",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'jaxbench' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
