# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The files of the repository, as the tests of the house read them."""

from __future__ import annotations

import ast
import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("jaxbench", "experiments", "configs")
_CACHES = {"__pycache__", "results", "build", "dist"}

Checker = Callable[[str, str], list[str]]


@functools.cache
def files() -> list[Path]:
    """Every file git has or would take, relative to ROOT. Without git: all but hidden folders and caches."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:  # else: a checkout of another owner, which git refuses to read
            names = listed.stdout.split("\0")
            return sorted(Path(name) for name in names if name and (ROOT / name).is_file())
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return sorted(p for p in found if not any(part.startswith(".") or part in _CACHES for part in p.parts))


def python_files(*folders: str) -> list[Path]:
    return [p for p in files() if p.suffix == ".py" and (not folders or p.parts[0] in folders)]


@functools.cache
def parsed(source: str) -> ast.Module:
    """Most tests of the house read all files; each is parsed once."""
    return ast.parse(source)


def findings(check: Checker, paths: list[Path]) -> list[str]:
    """What `check(path, text)` finds in these files. Fails when there is no file to check, which proves nothing."""
    assert paths
    return [finding for path in paths for finding in check(path.as_posix(), (ROOT / path).read_text())]
