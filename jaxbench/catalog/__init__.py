# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Facts that others published, as data files with their sources, and the readers of these files."""

from __future__ import annotations

import csv
import functools
from importlib import resources


@functools.cache
def rows(name: str) -> list[dict[str, str]]:
    """The lines of a CSV file of the catalogue."""
    return list(csv.DictReader(resources.files(__name__).joinpath(name).read_text(encoding="utf-8").splitlines()))
