# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads ``longest.json``: the longest sequence that fits, by number of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jaxbench.records.store import read_json

FILE = "longest.json"


def read(folder: Path) -> dict[str, Any] | None:
    """{"limit_bytes", "limit_source", "rows": [{"devices", "longest", "tried": [[length, peak bytes], ...]}]}, or None
    if the run has no such file. Raises UserError if the file is damaged."""
    path, advice = folder / FILE, "delete it and continue the run to make it again."
    return read_json(path, _parse, advice) if path.is_file() else None


def _parse(file: dict[str, Any]) -> dict[str, Any]:
    rows = [{"devices": int(r["devices"]), "longest": int(r["longest"]), "tried": r["tried"]} for r in file["rows"]]
    return {"limit_bytes": int(file["limit_bytes"]), "limit_source": str(file["limit_source"]), "rows": rows}
