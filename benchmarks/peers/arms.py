# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Both ends of the pipe between the parent and an arm, which is a separate process.

The arm sends {"what": ..., "losses": [...]}. It then answers each line "run K" with the seconds of K steps, after
K // 4 + 1 warm-up steps from the initial weights. Between lines it blocks, at no cost. Every arm keeps the memory that
it frees, as the workers of `jaxbench run` do, so that no page faults are timed, unless its parent asks for other
variables.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jaxbench.processes.messages import KEEP_MEMORY

STEPS_CHECKED = 4  # losses before the first and after each of three updates


@dataclass(frozen=True, kw_only=True)
class Block:
    """What an arm says of a block. cpu_s: of all threads. waits, switches: voluntary and involuntary context switches.
    An arm of another framework only says the seconds."""

    seconds: float
    cpu_s: float = 0.0
    waits: int = 0
    switches: int = 0


class Lost(SystemExit):
    """An arm has ended without an answer, or did not answer in time and was killed."""


class Arm:
    """The parent's side of an arm. Raises `Lost`, which ends the program, if it does not start or answer; its error is
    on stderr."""

    def __init__(
        self, name: str, module: str, *words: str, ready: bool = True,
        variables: Mapping[str, str] = KEEP_MEMORY, limit_s: float | None = None,
    ):  # fmt: skip
        """ready: waits until the arm has started. False: `hello` waits, so that several arms can start together.

        variables: added to the environment. limit_s: how long an answer may take; None: any time.
        """
        command = [sys.executable, "-m", f"benchmarks.{module}", *words]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.name = name
        self.steps = 1
        self._limit_s = limit_s
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
        try:
            self._process.stdin.write(f"run {self.steps}\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Lost(f"The arm {self.name} has ended.") from error

    def end(self) -> float:
        """Waits for the block that was started. Returns its seconds per step."""
        return self.block().seconds / self.steps

    def block(self) -> Block:
        """Waits for the block that was started."""
        return Block(**self._answer())

    def calibrate(self, least_s: float) -> None:
        """Doubles the number of steps until a block lasts `least_s`."""
        while self.block_s() * self.steps < least_s and self.steps < 2**14:
            self.steps *= 2

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._limit_s):
                self._process.kill()
                raise Lost(f"The arm {self.name} did not answer within {self._limit_s:g} s.")
        line = self._process.stdout.readline()
        if not line:
            raise Lost(f"The arm {self.name} ended with code {self._process.wait()}.")
        return json.loads(line)


def measured(block: Callable[[], float]) -> Block:
    """Runs a block in this process. block: () -> seconds."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = block()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return Block(
        seconds=seconds,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        waits=after.ru_nvcsw - before.ru_nvcsw,
        switches=after.ru_nivcsw - before.ru_nivcsw,
    )


def serve(what: str, losses: list[float], run: Callable[[int], float | Block]) -> None:
    """The arm's side. run: steps -> seconds or a `Block`, as in the module's docstring."""
    answers = _own_stdout()
    answers.write(json.dumps({"what": what, "losses": losses}) + "\n")
    for line in sys.stdin:
        _, steps = line.split()
        answer = run(int(steps))
        answers.write(json.dumps(asdict(answer) if isinstance(answer, Block) else {"seconds": answer}) + "\n")


def _own_stdout() -> Any:
    """The pipe to the parent; what a library prints goes to stderr from here on."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers
