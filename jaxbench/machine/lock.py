# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One measurement at a time on a machine: two at once slow each other down, and neither can tell.

The lock is the system's, on one file in the temporary folder (`JAXBENCH_LOCK_DIR` names another), which says who holds
it. The system releases the lock when the holder ends, however it ends. A process that the holder starts knows the
holder's number from the environment, and measures under the same lock.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from jaxbench.errors import UserError

FILE = "jaxbench-measuring.lock"
FOLDER = "JAXBENCH_LOCK_DIR"
PARENT = "JAXBENCH_LOCK_HOLDER"  # the number of the process whose lock this one measures under
SHARED = "JAXBENCH_SHARED_WITH"  # what `shared_with` returns, also in the processes that this one starts


class Busy(UserError):
    """Another process measures."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who measures. since: ISO 8601, UTC. command: the verb and its argument. workdir: its run folder. launch: the
    address of the launch that it is a process of."""

    pid: int
    since: str
    command: str
    workdir: str
    launch: str = ""


def shared_with() -> str:
    """The measurement beside which this process measures, for the manifest; "" where it is alone."""
    return os.environ.get(SHARED, "")


@contextlib.contextmanager
def measuring(command: str, workdir: Path, *, share: bool = False, launch: str = "") -> Iterator[None]:
    """Holds the machine for a measurement.

    share: go on beside another measurement, which `shared_with` then names. launch: the address of the launch of this
    process, whose processes on this machine measure together.

    Raises:
      Busy: another process measures.
    """
    path = Path(os.environ.get(FOLDER) or tempfile.gettempdir()) / FILE
    with _opened(path) as file:
        if _locked(file):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            _write(file, Holder(pid=os.getpid(), since=now, command=command, workdir=str(workdir), launch=launch))
            with _variable(PARENT, str(os.getpid())):
                yield
            return
    holder = _holder_with(launch, path) if launch else _holder(path)
    if holder is not None and (os.environ.get(PARENT) == str(holder.pid) or (launch and launch == holder.launch)):
        yield
    elif not (share or shared_with()):
        raise Busy(_sentence(holder))
    else:
        with _variable(SHARED, f"{holder.command}, since {holder.since}" if holder else "another measurement"):
            yield


def _opened(path: Path) -> TextIO:
    """Other users may have made the file: whoever can write it may hold it. Raises UserError if this one cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
            path.chmod(0o666)
        return open(path, "r+", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot open '{path}' ({error.strerror}), by which measurements on this machine wait for each other: "
            f"set {FOLDER} to a folder that you may write, such as {FOLDER}=$HOME."
        ) from error


def _locked(file: TextIO) -> bool:
    """Locks the file until it is closed or this process ends. False: another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: TextIO, holder: Holder) -> None:
    file.seek(0)
    file.truncate()
    file.write(json.dumps(asdict(holder)))
    file.flush()


def _holder(path: Path) -> Holder | None:
    """Who holds the lock; None in the moment before it has said so."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _holder_with(launch: str, path: Path, limit_s: float = 3.0) -> Holder | None:
    """Who holds the lock. Another process of this launch may have locked it just now, and not have said so yet."""
    deadline = time.monotonic() + limit_s
    while (holder := _holder(path)) is None or holder.launch != launch:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return holder


def _sentence(holder: Holder | None) -> str:
    who = "another process measures on this machine"
    if holder is not None:
        who += f" (process {holder.pid}, {holder.command}, since {holder.since}, into '{holder.workdir}')"
    return f"{who}: wait for it, or add --share_machine to measure beside it, which slows both down."


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Sets an environment variable, for this process and those that it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
