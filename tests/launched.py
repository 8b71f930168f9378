# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A launch by hand: real processes of the same command, and helpers to wait for and inspect them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from doorway import QUICK_MLP, environment, sketching

WORDS = (*QUICK_MLP, "--config.measure.rounds=2", "--config.measure.processes=1", "--config.mesh.devices=1,2")


def started(
    folder: Path, address: str, process: int, *words: str, before: Sequence[str] = (), **variables: str
) -> subprocess.Popen[str]:
    """`jaxbench run mlp` as one of two processes. Each has its own folder, as on hosts without a common file system.

    before: arguments in front of the command. variables: of its environment.
    """
    place = (f"--coordinator={address}", "--processes=2", f"--process={process}")
    command = sketching("run", "mlp", f"--workdir={folder / f'run{process}'}", *WORDS)
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [*before, *command, *place, *words], env={**environment(), **variables}, cwd=folder, **output
    )


def ended(process: subprocess.Popen[str], limit_s: float = 90) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=limit_s)
    finally:
        process.kill()
    return process.returncode, out, err


def children_of(pid: int) -> list[int]:
    """Of a process, and their children."""
    own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return own + [one for each in own for one in children_of(each)]


def alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def is_measuring(process: subprocess.Popen[str]) -> bool:
    return len(children_of(process.pid)) > 0  # the processes that it started


def until(reached: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)
