# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads the files that `runner.studies` leaves in a run folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from jaxbench.errors import UserError

T = TypeVar("T")


def read(path: Path, parse: Callable[[Any], T]) -> T | None:
    """The file's JSON, parsed by `parse`; None without a file. Raises UserError if it is damaged."""
    if not path.is_file():
        return None
    try:
        return parse(json.loads(path.read_text()))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): delete it and continue the run to make it again.") from error
