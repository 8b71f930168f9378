# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One measurement at a time on a machine: two at once slow each other down, and neither can detect it.

The lock is a file lock of the system, on one file in the temporary folder (`JAXBENCH_LOCK_DIR` names another folder).
The file names the holder. The system releases the lock when the holder ends, even if it is killed. A process that the
holder starts gets the holder's id from the environment, and measures under the same lock.
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
PARENT = "JAXBENCH_LOCK_HOLDER"  # the id of the process that holds the lock for this one
SHARED = "JAXBENCH_SHARED_WITH"  # the value of `shared_with`, passed on to the processes that this one starts


class Busy(UserError):
    """Another process measures."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The process that measures. since: ISO 8601, UTC. command: the verb and its argument. workdir: its run folder.
    launch: the address of its launch."""

    pid: int
    since: str
    command: str
    workdir: str
    launch: str = ""


def shared_with() -> str:
    """The other measurement that runs at the same time as this one, for the manifest; "" if there is none."""
    return os.environ.get(SHARED, "")


@contextlib.contextmanager
def measuring(command: str, workdir: Path, *, share: bool = False, launch: str = "") -> Iterator[None]:
    """Holds the machine for a measurement.

    share: continue during another measurement, which `shared_with` then names. launch: the address of the launch of
    this process; the processes of a launch on this machine measure together.

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
    # The file is locked. It may be locked for this process: by the parent that started it, or by its launch.
    holder = _holder_with(launch, path) if launch else _holder(path)
    if holder is not None and (os.environ.get(PARENT) == str(holder.pid) or (launch and launch == holder.launch)):
        yield
    elif not (share or shared_with()):
        raise Busy(_sentence(holder))
    else:
        with _variable(SHARED, f"{holder.command}, since {holder.since}" if holder else "another measurement"):
            yield


def _opened(path: Path) -> TextIO:
    """Opens the lock file. Another user may have made it. Raises UserError if this user may not write it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Exclusively, because only the owner may change the mode, and only of a file that is new.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
            path.chmod(0o666)  # other users must be able to lock it; the umask would forbid that
        return open(path, "r+", encoding="utf-8")  # not "w", which would erase the holder's name
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
    """The holder of the lock; None in the moment before it has written its name."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _holder_with(launch: str, path: Path, limit_s: float = 3.0) -> Holder | None:
    """The holder of the lock. Waits a moment: another process of this launch may have locked it but not written yet."""
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
    return f"{who}: wait for it, or add --share_machine to measure at the same time, which slows both down."


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Sets an environment variable, for this process and those that it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})
