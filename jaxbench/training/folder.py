# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The folder of a training: one config, and one process at a time. It is continued only with equivalent settings."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError
from jaxbench.levers import LEVERS
from jaxbench.processes.group import ProcessGroup
from jaxbench.records import store, trainings
from jaxbench.records.documents import flatten
from jaxbench.records.store import CONFIG, RECORDS, RunFolder, write_json

CHECKPOINTS = "checkpoints"
SEEN_LIMIT_S = 5.0  # for a file system of several hosts to show a new file on all of them
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Fields that change the result at most by the order of sums, and fields that only measurements read. They may change.
FREE = (
    *("train.strategy", "train.checkpoint_every", "train.keep", "train.tensorboard"),
    *("batch", "accelerator_batch", "scaling", "strategy", "explain"),
    *(f"lever.{name}" for name, lever in LEVERS.items() if lever.changes == "program"),
)
FREE_GROUPS = ("mesh.", "measure.", "report.")
# Fields that the config of an older jaxbench lacks, with the value that it used.
ADDED = {"train.warmup": 0, "train.evaluate_every": 0, "train.noise_examples": 0}
ADDED_WORDS = {"train.metric": trainings.ACCURACY, "train.mode": trainings.AUTO}
MAY_GROW = ("train.epochs", "train.target")  # the target of a loss may only fall


@contextlib.contextmanager
def locked_folder(folder: Path, config: dict[str, Any], members: ProcessGroup = ProcessGroup()) -> Iterator[Path]:  # noqa: B008
    """Creates `folder` or continues it, locks it against other processes, and yields the folder of its checkpoints.

    members: the process group that trains together; its first process locks the folder.

    Raises:
      UserError: the folder cannot be written, is in use, holds measurements or a training with another config, or is
        not on a file system that all processes see.
    """

    def begin() -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(store.lock_folder(folder))
        _claim(folder, json.loads(json.dumps(config, default=str)))

    with contextlib.ExitStack() as stack:
        members.on_leader(begin)
        _require_shared(folder, members)
        yield folder / CHECKPOINTS


def _require_shared(folder: Path, members: ProcessGroup) -> None:
    """Raises UserError in all processes if one of them does not see what the first one writes into `folder`."""

    def write() -> str:
        name = f"seen-{uuid.uuid4().hex}"
        with writing(folder):
            (folder / name).touch()
        return name

    if members.alone:
        return
    token, deadline = folder / members.on_leader(write), time.monotonic() + SEEN_LIMIT_S
    # Network file systems show new files late, so one look is not enough.
    while not (seen := token.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    all_seen = members.all_gather(seen)
    if members.leads:
        token.unlink()
    if not all(all_seen):
        raise UserError(
            f"process {members.processes[all_seen.index(False)]} does not see what process 0 wrote into '{folder}': "
            "choose a --workdir on a file system that all hosts share, because all of them write the checkpoints."
        )


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A context for writes into `folder` that turns a disk error, such as a full disk, into a UserError."""
    try:
        yield
    except OSError as error:
        advice = "choose another --workdir"
        if error.errno in NO_ROOM:
            advice = "free some space, and the same command continues from the newest checkpoint"
        raise UserError(f"cannot write to '{folder}' ({error.strerror}): {advice}.") from error


def _claim(folder: Path, config: dict[str, Any]) -> None:
    if (folder / RECORDS).exists():
        raise UserError(f"'{folder}' holds measurements ({RECORDS}): choose a new --workdir for a training.")
    if any((folder / CHECKPOINTS).glob("*")):  # before the first checkpoint any config may start
        if not (folder / CONFIG).exists():
            raise UserError(f"'{folder}' has checkpoints but no {CONFIG}: choose a new --workdir.")
        _require_continuation(folder, flatten(RunFolder(folder).config()), flatten(config))
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write to '{folder}': choose another --workdir.")
    with writing(folder):
        write_json(folder / CONFIG, config)


def _require_continuation(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    wrong = []
    for name in sorted(old.keys() | new.keys()):
        before, now = (fields.get(name, {**ADDED, **ADDED_WORDS}.get(name)) for fields in (old, new))
        if before == now or name in FREE or name.startswith(FREE_GROUPS):
            continue
        falls = name == "train.target" and trainings.minimised(*({**ADDED_WORDS, **new}[word] for word in ADDED_WORDS))
        if name in MAY_GROW and before is not None and now is not None and (now < before if falls else now > before):
            continue
        only = f", but may only {'fall' if falls else 'grow'}" if name in MAY_GROW else ""
        wrong.append(f"{name} was {before!r} and is now {now!r}{only}")
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UserError(
            f"'{folder}' holds a training with another config ({'; '.join(wrong[:3])}{more}): choose a new --workdir."
        )
