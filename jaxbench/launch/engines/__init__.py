# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The engines that start jobs: one file each, found by its name.

A file has `OPTIONS`, a description of --options; `check(job)`, which raises UserError for illegal options; `text(job)`,
the exact text that would be submitted, for --dry_run; `require_here()`, which raises UserError if the cluster or an
optional package is missing; and `submit(job) -> Submitted`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from jaxbench.errors import UserError, did_you_mean


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> ModuleType:
    """The module of an engine. Raises UserError for an engine that does not exist."""
    if name not in names():
        raise UserError(f"there is no engine '{name}' to launch with: {did_you_mean(name, names())}")
    return importlib.import_module(f"{__name__}.{name}")
