# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One measurement at a time on a machine: two at once slow each other down, and neither can detect it.

The lock is a file lock of the system, on one file in a folder that only this user can write: XDG_RUNTIME_DIR, or a
folder of mode 0700 in the temporary folder. `JAXBENCH_LOCK_DIR` names another folder. The file names the holder. It is
never opened through a link: where others can write, a link would let this process empty another file. The system
releases the lock when the holder ends, even if it is killed. A process that the holder starts gets the holder's id from
the environment, and measures under the same lock.

Users of one machine exclude each other by the name of a socket, which on Linux is in no folder. Elsewhere, and with
`JAXBENCH_LOCK_DIR`, only processes with the same folder exclude each other.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import pwd
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from jaxbench.errors import UserError

FILE = "jaxbench-measuring.lock"
FOLDER = "JAXBENCH_LOCK_DIR"
SOCKET = "\0jaxbench-measuring"  # a name that is in no folder
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
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_opened(_folder() / FILE))
        if _locked(file):
            if who := _of_another_folder(stack):
                _share(who, share, stack)
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            _write(file, Holder(pid=os.getpid(), since=now, command=command, workdir=str(workdir), launch=launch))
            stack.enter_context(_variable(PARENT, str(os.getpid())))
            yield
            return
        # The file is locked. It may be locked for this process: by the parent that started it, or by its launch.
        holder = _holder_with(launch, file) if launch else _holder(file)
        if holder is None or not (os.environ.get(PARENT) == str(holder.pid) or (launch and launch == holder.launch)):
            _share(holder or "", share, stack)
        yield


def _share(who: Holder | str, share: bool, stack: contextlib.ExitStack) -> None:
    """Measures at the same time as `who`, if that is wanted. Raises Busy otherwise."""
    if not (share or shared_with()):
        raise Busy(_sentence(who))
    text = f"{who.command}, since {who.since}" if isinstance(who, Holder) else who
    stack.enter_context(_variable(SHARED, text or "another measurement"))


def _folder() -> Path:
    """The folder of the lock file. Raises UserError if another user could write to it."""
    if named := os.environ.get(FOLDER):
        return Path(named)
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    if _private(runtime):
        return runtime
    own = Path(tempfile.gettempdir()) / f"jaxbench-{os.getuid()}"
    with contextlib.suppress(OSError):  # it exists, or `_opened` says why it cannot be made
        own.mkdir(mode=0o700)
    if os.path.lexists(own) and not _private(own):
        raise UserError(
            f"'{own}', in which measurements wait for each other, is not a folder of mode 0700 that belongs to you: "
            f"remove it, or set {FOLDER} to a folder of yours, such as {FOLDER}=$HOME."
        )
    return own


def _private(folder: Path) -> bool:
    """Whether this is a folder, and no link, that belongs to this user and that nobody else can use."""
    try:
        about = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077


def _opened(path: Path) -> TextIO:
    """Opens the lock file. In a folder that was named, another user may have made it. Raises UserError if this user may
    not write it, or if it is a link or no ordinary file."""
    safely = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not block, before it is refused
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Exclusively, because only the owner may change the mode, and only of a file that is new.
        with contextlib.suppress(FileExistsError):
            new = os.open(path, safely | os.O_CREAT | os.O_EXCL, 0o600)
            if os.environ.get(FOLDER):
                os.fchmod(new, 0o666)  # other users must be able to lock it; the umask would forbid that
            os.close(new)
        found = os.open(path, safely)
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise UserError(
            f"cannot open '{path}' ({why}), by which measurements on this machine wait for each other: "
            f"set {FOLDER} to a folder that you may write, such as {FOLDER}=$HOME."
        ) from error
    about = os.fstat(found)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:  # a second name may be that of a file of this user
        os.close(found)
        raise UserError(
            f"'{path}' is not an ordinary file with one name: remove it, or set {FOLDER} to another folder."
        )
    return open(found, "r+", encoding="utf-8")  # not "w", which would erase the holder's name


def _of_another_folder(stack: contextlib.ExitStack) -> str:
    """The process that measures with another lock file, as another user's does; "" if there is none. Otherwise this
    process keeps those out until the end of `stack`."""
    if os.environ.get(FOLDER) or not sys.platform.startswith("linux"):
        return ""
    held = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    try:
        held.bind(SOCKET)
        held.listen()
        return ""
    except OSError as error:
        if error.errno != errno.EADDRINUSE:  # a sandbox without such sockets; its other users are not known
            return ""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking, contextlib.suppress(OSError):
        asking.settimeout(1.0)
        asking.connect(SOCKET)
        pid, user, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return "" if str(pid) == os.environ.get(PARENT) else f"process {pid} of the user {_user_name(user)}"
    return "a process of another user"


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _locked(file: TextIO) -> bool:
    """Locks the file until it is closed or this process ends. False: another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: TextIO, holder: Holder) -> None:
    """Writes who holds the lock into its file."""
    file.seek(0)
    file.truncate()
    file.write(json.dumps(asdict(holder)))
    file.flush()


def _holder(file: TextIO) -> Holder | None:
    """The holder of the lock; None in the moment before it has written its name."""
    try:
        file.seek(0)
        return Holder(**json.loads(file.read()))
    except (OSError, ValueError, TypeError):
        return None


def _holder_with(launch: str, file: TextIO, limit_s: float = 3.0) -> Holder | None:
    """The holder of the lock. Waits a moment: another process of this launch may have locked it but not written yet."""
    deadline = time.monotonic() + limit_s
    while (holder := _holder(file)) is None or holder.launch != launch:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return holder


def _sentence(holder: Holder | str) -> str:
    """Who holds the lock, and what to do."""
    if isinstance(holder, Holder):
        holder = f"process {holder.pid}, {holder.command}, since {holder.since}, into '{holder.workdir}'"
    who = f"another process measures on this machine{holder and f' ({holder})'}"
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
