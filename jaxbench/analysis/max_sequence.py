# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads `longest.json`, by `runner/studies/max_sequence.py`: the longest sequence that fits, by number of devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError

FILE = "longest.json"


def read(folder: Path) -> dict[str, Any] | None:
    """{"limit_bytes", "limit_source", "rows": [{"devices", "longest", "tried": [[length, peak bytes], ...]}]}; None
    where the folder has none. Raises UserError for a damaged one."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text())
        rows = [
            {"devices": int(r["devices"]), "longest": int(r["longest"]), "tried": r["tried"]} for r in found["rows"]
        ]
        return {"limit_bytes": int(found["limit_bytes"]), "limit_source": str(found["limit_source"]), "rows": rows}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}): delete it, and the run searches again.") from error
