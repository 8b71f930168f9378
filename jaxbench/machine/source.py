# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The copy of this package that a process runs, so that no run is planned with one copy and measured with another."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jaxbench.errors import UserError

PACKAGE = Path(__file__).resolve().parents[1]


def _digest(folder: Path) -> str:
    """The sha256 over names and texts of the Python files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        # With the names, so that a moved file makes another copy; not the commit, which says nothing of later edits.
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def of(package: Path) -> dict[str, str]:
    """The identity of a copy: its folder, and the sha256 over the names and current texts of its Python files."""
    return {"folder": str(package), "sha256": _digest(package)}


HERE = of(PACKAGE)  # the copy that this process runs, as it was when the process started


@contextmanager
def alone(copy: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yields the copy as another Python may load it: without the packages that are installed next to it."""
    folder = Path(copy["folder"])
    if folder.parent.name not in ("site-packages", "dist-packages"):
        yield dict(copy)
        return
    with tempfile.TemporaryDirectory(prefix="jaxbench-package-") as scratch:
        Path(scratch, folder.name).symlink_to(folder)
        yield {**copy, "path": scratch}


def environment(copy: Mapping[str, str]) -> dict[str, str]:
    """The variable that makes a child run this copy. `path` of the copy: the folder to find it in, if not its own."""
    first, others = copy.get("path") or str(Path(copy["folder"]).parent), os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([first, others] if others else [first])}


def require_same(child: Mapping[str, str], expected: Mapping[str, str] | None = None) -> None:
    """Raises UserError if a child process runs another copy than expected, or the same copy with later edits.

    expected: as from `of`; None: the copy of this process.
    """
    expected = expected or HERE
    if child["folder"] != expected["folder"]:
        raise UserError(
            f"this run is of jaxbench in '{expected['folder']}', but its worker processes run it from "
            f"'{child['folder']}': start it from another folder, or install this copy."
        )
    if child["sha256"] != expected["sha256"]:
        before, now = expected["sha256"][:12], child["sha256"][:12]
        raise UserError(
            f"the source in '{expected['folder']}' changed during this run (sha256 {before} at its start, {now} in a "
            "worker process): start it again."
        )
