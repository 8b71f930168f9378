# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether results can be written: room in the working folder, and how fast it takes them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from jaxbench.doctor.finding import Finding

WRITTEN_BYTES = 8 * 2**20
LEAST_BYTES, ENOUGH_BYTES = 100e6, 2e9
SLOW_BYTES_PER_S = 20e6


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next((path for path in (folder, *folder.parents) if path.is_dir()), Path("/"))


def examine(folder: Path) -> list[Finding]:
    folder = existing(folder)
    return [room(shutil.disk_usage(folder).free), speed(folder)]


def room(free: int) -> Finding:
    said = f"{free / 1e9:.1f} GB are free where results are written."
    numbers = {"free_bytes": float(free)}
    if free < LEAST_BYTES:
        return Finding(
            "disk", "bad", said, "Make room (a run writes up to 100 MB), or choose another WORKDIR.", numbers
        )
    if free < ENOUGH_BYTES:
        return Finding("disk", "doubtful", said, "Checkpoints of a training may not fit: make room.", numbers)
    return Finding("disk", "good", said, "", numbers)


def speed(folder: Path) -> Finding:
    """Writes a few MB and waits until they are on the disk: each round of a run ends in such a write."""
    data = os.urandom(WRITTEN_BYTES)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            start = time.perf_counter()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            took = time.perf_counter() - start
    except OSError as error:
        said = f"'{folder}' cannot be written ({error.strerror})."
        return Finding("disk speed", "bad", said, "Choose a WORKDIR that you may write to.")
    return judge_speed(WRITTEN_BYTES / took)


def judge_speed(bytes_per_s: float) -> Finding:
    said = f"The disk takes {bytes_per_s / 1e6:.0f} MB/s ({WRITTEN_BYTES / 1e6:.0f} MB, fsync)."
    numbers = {"write_bytes_per_s": bytes_per_s}
    if bytes_per_s < SLOW_BYTES_PER_S:
        return Finding("disk speed", "doubtful", said, "Choose a WORKDIR on a local disk: checkpoints wait.", numbers)
    return Finding("disk speed", "good", said, "", numbers)
