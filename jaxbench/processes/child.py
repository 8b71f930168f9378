# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parent's side of one child process: JSON lines through its pipes, and how it ended."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TypeVar

from jaxbench.errors import UserError, present
from jaxbench.machine import source
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Fields, Setup, line_of
from jaxbench.records.documents import decode

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}

Lines = TypeVar("Lines", bound="JsonLines")


class JsonLines:
    """The data from a file descriptor, as JSON lines."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.buffer = b""

    def read(self) -> Fields | None:
        """The next line; None if the descriptor ended before it. Waits, unless `ready` returned this object."""
        while b"\n" not in self.buffer:
            data = os.read(self.descriptor, 1 << 16)
            if not data:
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return decode(Fields, json.loads(line))


class Child(JsonLines):
    """A process that runs the module of `setup`.

    Its first line on stdin is `setup`, and its stderr goes to `log`. Raises UserError for a log that cannot be written,
    as on a full disk. forks: forks it, where that is safe; None: it starts as a new program.
    """

    def __init__(self, setup: Setup, log: Path, forks: ForkServers | None = None):
        self.log = log
        copy = source.environment(setup.source) if setup.source else {}
        environment = {**os.environ, **QUIET, **copy, **setup.environment}
        with _open_log(log) as stderr:
            # Only where a fork is known to be safe: on CPUs of this host, and not in a world of JAX. Co-runners are
            # strangers to JAX; they meet at a service that each of them starts or joins after the fork.
            alone = setup.platform == "cpu" and not (setup.target or setup.world or setup.python)
            forked = forks.start(setup.module, environment, stderr) if forks and alone else None
            command = [setup.python or sys.executable, "-P", "-m", setup.module]  # -P: no file here hides a module
            pipe = subprocess.PIPE
            self._process = forked or subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, env=environment)
        self.pid = self._process.pid
        self._stdin, self._stdout = present(self._process.stdin), present(self._process.stdout)
        super().__init__(self._stdout.fileno())
        self.send(line_of(dataclasses.replace(setup, python="")))  # an older commit's worker does not know it

    @property
    def stopped(self) -> bool:
        """Whether it is alive but stopped, as after SIGSTOP. Only Linux reports this; False on other systems."""
        try:
            # proc(5): the state follows the name, which is in parentheses and may contain any character.
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
        except OSError:
            return False

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, message: Fields) -> None:
        with contextlib.suppress(BrokenPipeError):  # the process is gone; the next read finds its end
            self._stdin.write(json.dumps(message).encode() + b"\n")
            self._stdin.flush()

    def end(self) -> tuple[int, str]:
        """(the exit code, a clause that says how it ended). Waits for the end."""
        code = self._process.wait()
        if code >= 0:
            return code, f"ended with exit code {code}"
        name = signal.Signals(-code).name
        hint = " (as by the system when memory runs out)" if name == "SIGKILL" else ""
        return code, f"was killed by {name}{hint}"

    def log_tail(self) -> str:
        return self.log.read_bytes()[-4000:].decode(errors="replace")

    def let_go(self) -> None:
        """Closes its stdin, so that it ends."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        """Lets it end and waits for it."""
        self.let_go()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._stdout.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _open_log(log: Path) -> IO[bytes]:
    try:
        log.parent.mkdir(exist_ok=True)
        return open(log, "ab")
    except OSError as error:
        raise UserError(f"cannot write '{log}' ({error.strerror}): make room and continue.") from error


def ready(children: Sequence[Lines], limit_s: float) -> list[Lines]:
    """The children that have an answer or have ended, as soon as there is one; [] after `limit_s` seconds."""
    # A line that was read along with an earlier one is no longer in the pipe, so the selector would not report it.
    if waiting := [child for child in children if b"\n" in child.buffer]:
        return waiting
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.descriptor, selectors.EVENT_READ, child)
        return [key.data for key, _ in selector.select(max(0.0, limit_s))]
