# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Keeps the logs of native libraries off the terminal while they load.

XLA's plug-ins write to file descriptor 2, and no variable stops them. `write` puts their output into the logs of a run
folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import IO, Any

FILE = "libraries.log"
# Abseil's information and warnings, on which no reader can act. All other lines are shown.
_NOTICE = re.compile(rb"[IW]\d{4} |WARNING: All log messages before absl")
_files: list[IO[bytes]] = []  # one file if `keep` was called; workers do not call it, because their stderr is a log
_kept: list[bytes] = []


def keep() -> None:
    """From now on, captures what the extension modules of this process write while they load."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # also silences what XLA logs later, as in workers
    _files.append(tempfile.TemporaryFile())  # not a pipe, which would block the library once it is full
    load = ExtensionFileLoader.create_module

    def quietly(loader: ExtensionFileLoader, spec: Any) -> Any:
        with aside():
            return load(loader, spec)

    ExtensionFileLoader.create_module = quietly  # type: ignore


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """A context that captures file descriptor 2, and afterwards shows what was written without notices."""
    if not _files:
        yield
        return
    terminal, file = os.dup(2), _files[0]
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        file.seek(0)
        lines = file.readlines()
        file.seek(0)
        file.truncate()
        _kept.extend(lines)
        os.write(2, b"".join(line for line in lines if not _NOTICE.match(line)))


def write(folder: Path) -> None:
    """Appends the captured output to a file in `folder`, the logs of a run folder, if there is a run folder."""
    if _kept and folder.parent.is_dir():
        folder.mkdir(exist_ok=True)
        with open(folder / FILE, "ab") as log:
            log.writelines(_kept)
