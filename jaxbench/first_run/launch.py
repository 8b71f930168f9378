# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One part as a process of its own: what breaks, hangs or leaks in it does not reach the next."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FINISH_S = 15.0  # what a stopped part has for writing down where it was, before it is asked harder


@dataclass(frozen=True)
class Ended:
    """code: the exit code; None: its time was used up. said: the last line that it printed."""

    code: int | None
    said: str


def run(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
    """Runs `jaxbench` with these words, its output into `log`, for at most `limit_s` seconds.

    On an interrupt the part is given time to stop by itself, for it was interrupted as well. KeyboardInterrupt goes on.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        command = [sys.executable, "-P", "-m", "jaxbench", *words]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        except KeyboardInterrupt:
            _waited(process)
            raise
        finally:
            end(process)
    return Ended(code, last_line(log))


def end(process: subprocess.Popen[bytes]) -> None:
    """Sees to it that the process is gone: asked first, made to then. Its workers end with it."""
    if process.poll() is None:
        process.terminate()
        if not _waited(process):
            process.kill()
            process.wait()


def _waited(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(FINISH_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def last_line(log: Path) -> str:
    """The last sentence of the app, else the last line of all, such as an error's after its stack trace."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", log.read_bytes()[-20000:].decode(errors="replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line.removeprefix("jaxbench: ") for line in lines if line.startswith("jaxbench: ")]
    return next(iter([*own[-1:], *lines[-1:]]), "")
