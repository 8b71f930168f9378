# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A question to a child process that may crash or hang: it answers with one line of JSON, or a clause says why not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What the child said.

    Attributes:
      value: the JSON object on the last line of its output; None when there is none.
      reason: why there is none, as a clause ("it hung for more than 60 s"), else "".
      stderr: the lines of its standard error.
    """

    value: dict[str, Any] | None = None
    reason: str = ""
    stderr: Sequence[str] = field(default_factory=tuple)


def module(name: str, *words: str) -> list[str]:
    """The command that runs a module of this package as a child."""
    return [sys.executable, "-P", "-m", name, *words]


def ask(command: Sequence[str], *, limit_s: float, environment: Mapping[str, str] | None = None) -> Answer:
    """Runs `command` and reads its answer. What it started dies with it: it leads a process group of its own."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Answer(reason=f"it hung for more than {limit_s:g} s")
    finally:
        _end(child)
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    value = _last_object(output)
    if child.returncode == 0 and value is not None:
        return Answer(value=value, stderr=lines)
    return Answer(reason=_how_it_ended(child.returncode, lines), stderr=lines)


def _end(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _last_object(output: str) -> dict[str, Any] | None:
    lines = output.splitlines()
    try:
        value = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _how_it_ended(code: int, errors: Sequence[str]) -> str:
    last = f": {errors[-1][:200]}" if errors else ""
    if code < 0:
        try:
            return f"it was killed by {signal.Signals(-code).name}{last}"
        except ValueError:
            return f"it was killed by signal {-code}{last}"
    return f"it ended with code {code}{last}" if code else "it gave no answer"
