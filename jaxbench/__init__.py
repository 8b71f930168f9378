# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How does training scale from device to device? Measured, checked, and drawn. docs/PYTHON.md has the Python API."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # typing takes milliseconds, in which a command does not yet listen to Ctrl-C
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# The Python API: each name and the module that has it, which is imported at the first use. None of them starts JAX.
_API = {
    "JaxbenchError": "jaxbench.errors",
    "OwnStep": "jaxbench.workloads.own_step",
    "Run": "jaxbench.api.results",
    "StepWorkload": "jaxbench.workloads.own_step",
    "compare": "jaxbench.api.calls",
    "export": "jaxbench.api.exports",
    "forecast": "jaxbench.api.calls",
    "load": "jaxbench.api.load",
    "log": "jaxbench.api.exports",
    "machine": "jaxbench.api.calls",
    "run": "jaxbench.api.calls",
    "try_model": "jaxbench.api.calls",
}
__all__ = ["__version__", *_API]


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module 'jaxbench' has no attribute '{name}'")
    return getattr(importlib.import_module(_API[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})


class _Package(type(sys)):  # type: ignore[misc]  # types.ModuleType
    """Keeps `jaxbench.machine` the function, where importing the folder of this name would replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _API or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
