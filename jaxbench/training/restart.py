# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Replaces this process by a new one that runs the same command with more threads.

The number of threads follows from the compiled step, but XLA sizes its thread pool when the backend starts.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from jaxbench.machine import start

VARIABLE = "JAXBENCH_CONCURRENT_COLLECTIVES"  # passes the number of collectives to the new process


def concurrent_collectives() -> int:
    """The number of collectives of one program for which this process must have threads."""
    return int(os.environ.get(VARIABLE, start.CONCURRENT_COLLECTIVES))


def _affinity() -> set[int] | None:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


@dataclass(frozen=True)
class Before:
    """This process before it starts devices, which pins it to cores and sets environment variables of XLA."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cores: set[int] | None = field(default_factory=_affinity)

    def restart(self, collectives: int, workdir: Path, console: Console) -> NoReturn:
        """Runs the same command again in `workdir`, with threads for `collectives` collectives. Does not return."""
        text = f"{collectives} collectives of the step can wait at once: starting again with threads for them."
        console.print(text, highlight=False, soft_wrap=True)
        console.file.flush()
        if self.cores is not None:
            os.sched_setaffinity(0, self.cores)
        command = [sys.executable, *sys.orig_argv[1:]]
        if f"--workdir={workdir}" not in command:  # the default is named by the time
            command.append(f"--workdir={workdir}")
        os.execve(sys.executable, command, {**self.environment, VARIABLE: str(collectives)})
