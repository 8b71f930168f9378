# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The engines that start jobs: one file each, found by its name.

A file has `OPTIONS`, what --options holds, in words; `check(job)`, which raises UserError for options that it cannot
take; `text(job)`, exactly what would be submitted, for --dry_run; `require_here()`, which raises UserError where the
machine or an optional package is missing; and `submit(job) -> Submitted`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from jaxbench.errors import UserError, did_you_mean


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> ModuleType:
    """Raises UserError for an engine that does not exist."""
    if name not in names():
        raise UserError(f"there is no engine '{name}' to launch with: {did_you_mean(name, names())}")
    return importlib.import_module(f"{__name__}.{name}")
