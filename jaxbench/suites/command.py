# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One command of a suite: a `jaxbench` process with a time limit and a log, its outcome, and the suite's JSON file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.features.cards.card import redact_text

FINISH_S = 15.0  # a stopped command has this long to write its records before it is killed
# The outcome by exit code. None means that the time ran out; other codes mean BROKEN.
DONE, AMISS, REFUSED, BROKEN = "done", "amiss", "refused", "broken"
STOPPED, SKIPPED, ASKED = "stopped", "skipped", "not yet"
OUTCOMES = {0: DONE, 1: AMISS, 2: REFUSED, None: STOPPED}
CONTINUES = "The same command continues with it."
Document = dict[str, Any]  # the JSON file of a suite


@dataclass(frozen=True)
class Ended:
    """The end of a command. code: the exit code; None: its time ran out. last_line: the last line of its output."""

    code: int | None
    last_line: str


Launch = Callable[[tuple[str, ...], Path, float], Ended]


def launch(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
    """Runs `jaxbench` with these words for at most `limit_s` seconds, and appends its output to `log`.

    After Ctrl-C the command gets time to stop by itself, and then KeyboardInterrupt is raised.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        # -P, or a jaxbench.py in the current folder would be imported instead.
        command = [sys.executable, "-P", "-m", "jaxbench", *words]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        except KeyboardInterrupt:  # the terminal sent it to the command, too
            _waited(process)
            raise
        finally:
            if process.poll() is None:
                process.terminate()  # its workers end with it
                if not _waited(process):
                    process.kill()
                    process.wait()
    return Ended(code, last_line(log))


def _waited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process ended in time."""
    try:
        process.wait(FINISH_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def last_line(log: Path) -> str:
    """The last line that starts with "jaxbench:", else the last line, such as the error below a stack trace."""
    # Without the colours that a library may have printed although its output is a file.
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", log.read_bytes()[-20000:].decode(errors="replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line.removeprefix("jaxbench: ") for line in lines if line.startswith("jaxbench: ")]
    return next(iter([*own[-1:], *lines[-1:]]), "")


def measure(
    words: tuple[str, ...],
    folder: Path,
    run: str,
    limit_s: float,
    *,
    late: str = "",
    launch: Launch,
    clock: Callable[[], float],
    record: Callable[[str, str, float], None],
) -> None:
    """Runs a command into `folder / run`, and passes its (outcome, message, seconds) to `record`, also if interrupted.

    late: the message if its time runs out; "": the last line of its output.
    """
    start = clock()
    try:
        ended = launch((*words, f"--workdir={folder / run}"), folder / "logs" / f"{run}.txt", limit_s)
    except KeyboardInterrupt:
        record(STOPPED, f"Interrupted. {CONTINUES}", clock() - start)
        raise
    message = late if ended.code is None and late else ended.last_line
    record(OUTCOMES.get(ended.code, BROKEN), message, clock() - start)


def add(about: Document, outcome: str, message: str, seconds: float) -> None:
    """Adds the end of a command to its entry in the document. seconds: of this start; the entry has their sum."""
    # The message may name a folder or the host, which a suite's page must not.
    about |= {"outcome": outcome, "seconds": about["seconds"] + seconds, "said": redact_text(message, private=True)}
