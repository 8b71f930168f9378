# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The copy of this package that a process runs, so that no run is planned with one copy and measured with another."""

from __future__ import annotations

import hashlib
from pathlib import Path

from jaxbench.errors import UserError

PACKAGE = Path(__file__).resolve().parents[1]


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


# The folder of this process's copy, and the sha256 over the names and texts of its Python files at the process's start.
HERE = {"folder": str(PACKAGE), "sha256": _digest(PACKAGE)}


def require_same(child: dict[str, str]) -> None:
    """Raises UserError if a child process runs another copy than this process, or the same copy with later edits."""
    if child["folder"] != HERE["folder"]:
        raise UserError(
            f"this process runs jaxbench from '{HERE['folder']}', but its worker processes run it from "
            f"'{child['folder']}': start it from another folder, or install this copy."
        )
    if child["sha256"] != HERE["sha256"]:
        before, now = HERE["sha256"][:12], child["sha256"][:12]
        raise UserError(
            f"the source in '{HERE['folder']}' changed during this run (sha256 {before} at its start, {now} in a "
            "worker process): start it again."
        )
