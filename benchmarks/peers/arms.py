# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Both ends of the pipe between the parent and an arm, which is a separate process.

The arm sends {"what": ..., "losses": [...]}. It then answers each line "run K" with the seconds of K steps, after
K // 4 + 1 warm-up steps from the initial weights. Between lines it blocks, at no cost. Every arm keeps the memory that
it frees, as the workers of `jaxbench run` do, so that no page faults are timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxbench.processes.messages import KEEP_MEMORY

STEPS_CHECKED = 4  # losses before the first and after each of three updates


class Arm:
    """The parent's side of an arm. Raises SystemExit if it does not start; its error is on stderr."""

    def __init__(self, name: str, module: str, *words: str, ready: bool = True):
        """ready: waits until the arm has started. False: `hello` waits, so that several arms can start together."""
        command = [sys.executable, "-m", f"benchmarks.{module}", *words]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **KEEP_MEMORY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.name = name
        self.steps = 1
        if ready:
            self.hello()

    def hello(self) -> None:
        """Waits until the arm has started."""
        about = self._answer()
        self.what: str = about["what"]
        self.losses: list[float] = about["losses"]

    def block_s(self) -> float:
        """Seconds per step, over `steps` steps."""
        self.begin()
        return self.end()

    def begin(self) -> None:
        """Starts a block and does not wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"run {self.steps}\n")
        self._process.stdin.flush()

    def end(self) -> float:
        """Waits for the block that was started. Returns its seconds per step."""
        return self._answer()["seconds"] / self.steps

    def calibrate(self, least_s: float) -> None:
        """Doubles the number of steps until a block lasts `least_s`."""
        while self.block_s() * self.steps < least_s and self.steps < 2**14:
            self.steps *= 2

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The arm {self.name} ended with code {self._process.wait()}.")
        return json.loads(line)


def serve(what: str, losses: list[float], run: Callable[[int], float]) -> None:
    """The arm's side. run: steps -> seconds, as in the module's docstring."""
    answers = _own_stdout()
    answers.write(json.dumps({"what": what, "losses": losses}) + "\n")
    for line in sys.stdin:
        _, steps = line.split()
        answers.write(json.dumps({"seconds": run(int(steps))}) + "\n")


def _own_stdout() -> Any:
    """The pipe to the parent; what a library prints goes to stderr from here on."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers
