# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One folder for each thing that jaxbench can do besides measuring a step: its measuring, analysis and page.

A feature imports the core and the shared folders, and no other feature (`tests/house/test_floors.py` names the
exceptions). These files are found by their names, so that nothing outside the folder lists features:

settle.py   `settle(config, experiment)`: the strategies, if the feature measures this experiment; it then settles the
            config. Else ()
figures.py  figures (`report.drawing.plot`), added to those of `report/figures/`
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from types import ModuleType


@functools.cache
def providing(name: str) -> tuple[ModuleType, ...]:
    """The modules `name` of all features that have one, in the order of the features' names."""
    files = sorted(Path(__file__).parent.glob(f"*/{name}.py"))
    return tuple(importlib.import_module(f"{__name__}.{file.parent.name}.{name}") for file in files)
