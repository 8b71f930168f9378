# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The papers: one file each, found by its name. A file defines `PAPER`; its id is the file's name."""

from __future__ import annotations

import importlib
from pathlib import Path

from jaxbench.errors import UserError, did_you_mean
from jaxbench.papers.paper import Paper

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The ids of all papers, sorted."""
    return sorted(file.stem for file in _FOLDER.glob("*.py") if not file.stem.startswith("_"))


def load(id: str) -> Paper:
    """Raises UserError for an unknown id."""
    if id not in names():
        raise UserError(f"there is no paper '{id}': {did_you_mean(id, names())}")
    paper: Paper = importlib.import_module(f"{__name__}.{id}").PAPER
    return paper
