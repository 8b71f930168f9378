# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Baselines: finished runs stored under a name. Each is an ordinary run folder without its report."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import CONFIG, MANIFEST, RECORDS
from jaxbench.verdicts import comparable
from jaxbench.verdicts.calibration import FOLDER

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # also the name of a folder


def path_of(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the baseline `name`. Raises UserError for an invalid name, so no path can leave `folder`."""
    if not _NAME.fullmatch(name):
        legal = "use at most 100 letters, digits, dots and dashes, such as main-cnn"
        raise UserError(f"'{name[:120]}' is not a valid name for a baseline: {legal}.")
    return folder / name


def keep(run: Path, name: str, folder: Path = FOLDER) -> Path:
    """Copies the run folder `run` to the baseline `name`. Returns its folder.

    Raises UserError if the run is incomplete or incorrect, or if the name is taken.
    """
    target, source = path_of(name, folder), comparable.read(run)
    faults = [f"{point.point} ({point.reason or 'never checked'})" for point in source.points if not _whole(point)]
    if faults:
        raise UserError(f"'{run}' cannot be a baseline, because it is incomplete or incorrect: {'; '.join(faults)}.")
    if target.exists():
        raise UserError(f"there is a baseline '{name}' already: choose another NAME, or delete '{target}'.")
    folder.mkdir(parents=True, exist_ok=True)
    # Copied to a temporary folder, then renamed: an interrupted copy never looks like a baseline.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        part = Path(scratch) / name
        part.mkdir()
        for file in (CONFIG, MANIFEST, RECORDS):
            shutil.copyfile(run / file, part / file)
        part.rename(target)
    return target


def _whole(point: object) -> bool:
    return getattr(point, "status", "") == "ok" and getattr(point, "check_ok", None) is True


def find(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the baseline `name`. Raises UserError with similar names if there is none."""
    path = path_of(name, folder)
    if not (path / RECORDS).is_file():
        known = sorted(each.parent.name for each in folder.glob(f"*/{RECORDS}"))
        hint = did_you_mean(name, known) if known else "keep one with jaxbench baseline --run=DIR --name=NAME."
        raise UserError(f"there is no baseline '{name}': {hint}")
    return path
