# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The folder of a training: one config, one process at a time, continued only by what gives the same result."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.records.store import CONFIG, RECORDS, RunFolder, flatten, write_json

CHECKPOINTS = "checkpoints"
LOCK = ".lock"

# Where and how often, which do not change what is learnt beyond the order of sums.
FREE = ("mesh.", "strategy", "train.checkpoint_every", "train.keep", "train.tensorboard")
MAY_GROW = ("train.epochs", "train.target")


@contextlib.contextmanager
def hold(folder: Path, config: dict[str, Any]) -> Iterator[Path]:
    """Creates `folder` or continues it, and keeps other processes out of it; yields where checkpoints go.

    Raises:
      UserError: it cannot be written, is in use, holds measurements, or holds a training of another config.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / LOCK, "a")
    except OSError as error:
        raise UserError(f"cannot write to '{folder}' ({error.strerror}): choose another WORKDIR.") from error
    with lock:
        _take(lock.fileno(), folder)  # the system gives it back however this process ends
        _claim(folder, json.loads(json.dumps(config, default=str)))
        yield folder / CHECKPOINTS


def _take(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"another training is running in '{folder}': wait for it or choose a new WORKDIR.") from error


def _claim(folder: Path, config: dict[str, Any]) -> None:
    if (folder / RECORDS).exists():
        raise UserError(f"'{folder}' holds measurements ({RECORDS}): choose a new WORKDIR for a training.")
    if any((folder / CHECKPOINTS).glob("*")):  # before the first, nothing is learnt and any config may begin
        if not (folder / CONFIG).exists():
            raise UserError(f"'{folder}' has checkpoints but no {CONFIG}: choose a new WORKDIR.")
        _require_continuation(folder, flatten(RunFolder(folder).config()), flatten(config))
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write to '{folder}': choose another WORKDIR.")
    write_json(folder / CONFIG, config)


def _require_continuation(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    wrong = []
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if before == now or name.startswith(FREE):
            continue
        if name in MAY_GROW and before is not None and now is not None and now > before:
            continue
        wrong.append(f"{name} was {before!r} and is now {now!r}" + (", it may only grow" if name in MAY_GROW else ""))
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UserError(
            f"'{folder}' holds a training of another config ({'; '.join(wrong[:3])}{more}): choose a new WORKDIR."
        )
