# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The numbers of earlier runs of the same machine, from folders next to a run folder: the roofline's background."""

from __future__ import annotations

import contextlib
import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbench.records import identity
from jaxbench.records.store import MANIFEST
from jaxbench.report.drawing.marks import exact
from jaxbench.report.drawing.roofline_points import Spot

LIMIT = 40  # read at most this many folders, newest first


def spots(path: Path) -> list[Spot]:
    """One spot for each valid number in the ``summary.csv`` of the folders next to `path`, by experiment.

    Runs of `jaxbench machine`, one folder deeper, count, too. A folder is skipped if it is not a run, is of another
    machine or cannot be read, because these spots are only background.
    """
    this_machine = _manifest(path)
    if this_machine is None:
        return []
    here = path.resolve()
    folders = [file.parent for pattern in ("*", "*/*") for file in here.parent.glob(f"{pattern}/summary.csv")]
    runs = [folder for folder in folders if folder != here and (folder / MANIFEST).is_file()]
    newest = sorted(runs, key=lambda folder: ((folder / MANIFEST).stat().st_mtime, folder.name), reverse=True)[:LIMIT]
    return [spot for folder in sorted(newest) for spot in _of_folder(folder, this_machine)]


def _of_folder(folder: Path, this_machine: dict[str, Any]) -> Iterator[Spot]:
    manifest = _manifest(folder)
    if manifest is None or identity.hardware(manifest, this_machine):
        return
    with contextlib.suppress(OSError, ValueError, csv.Error):
        with open(folder / "summary.csv", newline="", encoding="utf-8") as file:
            yield from filter(None, map(_spot, list(csv.DictReader(file))))


def _spot(line: dict[str, str]) -> Spot | None:
    """The spot of a row; None if it is wrong, oversubscribed or refused, or has no FLOPs or bytes."""
    good = line.get("status") == "ok" and line.get("check_ok") == "true" and line.get("oversubscribed") == "false"
    flops = _number(line.get("flops")) or _number(line.get("flops_per_step"))
    moved, rate = _number(line.get("bytes_moved")), _number(line.get("flop_per_s"))
    if not good or line.get("gate") == "refused" or not (flops > 0 and moved > 0 and rate > 0):
        return None
    platform = line.get("platform") or ""
    share = 1 if platform == "cpu" or line.get("op") else max(1.0, _number(line.get("devices")))
    return Spot(
        label=line.get("experiment") or "", at=flops / moved, value=exact(rate / share), platform=platform,
        kind="earlier",
    )  # fmt: skip


def _number(text: str | None) -> float:
    """The number; 0 if the text is not a finite number."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        value = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
