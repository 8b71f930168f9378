# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Asks a child process that may crash or hang. It answers with one line of JSON; otherwise a clause says why not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """value: the JSON object on the last line of the output, or None. reason: why there is none, as a clause."""

    value: dict[str, Any] | None = None
    reason: str = ""


def python(*words: str) -> list[str]:
    """A command of this Python. -P: it does not import modules from the current folder."""
    return [sys.executable, "-P", *words]


def ask(command: Sequence[str], *, limit_s: float, **environment: str) -> Answer:
    """Runs `command` as the leader of a process group, which is killed at the end, and reads its answer."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    pipes |= {"text": True, "errors": "replace", "start_new_session": True, "env": {**os.environ, **environment}}
    # Not "with", which would wait for the pipes: a hanging grandchild keeps them open.
    child = subprocess.Popen(command, **pipes)
    try:
        output, errors = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Answer(reason=f"it hung for more than {limit_s:g} s")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in filter(None, (child.stdout, child.stderr)):
            stream.close()
    last_line = f": {errors.split(chr(10))[-1][:200]}" if (errors := errors.strip()) else ""
    if child.returncode < 0:
        return Answer(reason=f"it was killed by {signal.Signals(-child.returncode).name}{last_line}")
    if child.returncode:
        return Answer(reason=f"it ended with code {child.returncode}{last_line}")
    with contextlib.suppress(ValueError, IndexError):
        value = json.loads(output.splitlines()[-1])
        if isinstance(value, dict):
            return Answer(value)
    return Answer(reason=f"it gave no answer{last_line}")
