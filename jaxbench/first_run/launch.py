# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Runs one part in a separate process, so that a crash, a hang or a leak does not affect the next part."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FINISH_S = 15.0  # a stopped part has this long to write its records before it is killed


@dataclass(frozen=True)
class Ended:
    """The end of a part. code: the exit code; None: it ran out of time. last_line: the last line of its output."""

    code: int | None
    last_line: str


def run(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
    """Runs `jaxbench` with these words for at most `limit_s` seconds, and appends its output to `log`.

    Ctrl-C interrupts the part, too. It gets time to stop by itself, and then KeyboardInterrupt is raised.
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
    """Terminates the process, and kills it if it does not stop. Its workers end with it."""
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
    """The last line that starts with "jaxbench:", else the last line, such as the error below a stack trace."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", log.read_bytes()[-20000:].decode(errors="replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line.removeprefix("jaxbench: ") for line in lines if line.startswith("jaxbench: ")]
    return next(iter([*own[-1:], *lines[-1:]]), "")
