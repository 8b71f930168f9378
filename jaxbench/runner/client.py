# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker process."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from jaxbench.machine import source

START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 1800.0


class WorkerError(Exception):
    """The worker failed, died or hung. `stage`, `detail` and `unsupported` (the strategy cannot take the model) go into
    the failure record."""

    def __init__(
        self, reason: str, *, stage: str = "measure", detail: str = "", alive: bool = True, unsupported: bool = False
    ):
        super().__init__(reason)
        self.stage, self.detail, self.alive, self.unsupported = stage, detail, alive, unsupported


class Worker:
    """A child process with its own devices. Its stderr goes to `log`.

    setup: its first line; see `worker`. With "source" it runs that copy of this package; see `source.of`.
    """

    def __init__(self, setup: dict[str, Any], log: Path):
        self.log = log
        self.restarts = 0  # on its own request; each discards the prepared points
        self._setup = setup
        self._start()

    def _start(self) -> None:
        self._buffer = b""
        self._start_answer: dict[str, Any] = {}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
        with open(self.log, "ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jaxbench.runner.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **quiet, **self._copy_environment(), **self._setup.get("environment", {})},
            )
        self._send(self._setup)
        self._started = False
        self._start_error: WorkerError | None = None
        self._ahead: list[dict[str, Any]] = []  # sent, and not yet answered

    def _copy_environment(self) -> dict[str, str]:
        return source.environment(self._setup["source"]) if "source" in self._setup else {}

    @property
    def learned(self) -> dict[str, Any]:
        """The part of the setup that the worker found out itself, for the process that replaces it."""
        return {key: value for key, value in self._setup.items() if key == "concurrent_collectives"}

    @property
    def name(self) -> str:
        """As its records name it."""
        return str(self._setup["worker"])

    @property
    def surroundings(self) -> dict[str, Any]:
        """Its CPUs and variables, once it has started; see `worker.surroundings`."""
        return {name: self._start_answer[name] for name in ("cpus", "environment") if name in self._start_answer}

    def wait_ready(self) -> None:
        """Waits until the worker has its devices. If it fails to get them, the first `ask` raises that.

        Raises UserError if the worker runs another copy of this package.
        """
        if not self._started:
            self._started = True
            try:
                self._start_answer = self._receive("start", START_LIMIT_S)
            except WorkerError as error:
                self._start_error = error

    def send_ahead(self, request: dict[str, Any]) -> None:
        """Lets the worker begin with a request that `ask` is about to make. Those of one worker are asked in order."""
        self._send(request)
        self._ahead.append(request)

    def ask(self, request: dict[str, Any], limit_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
        """Sends a request, unless it was sent ahead, and waits `limit_s` for its answer. Raises WorkerError."""
        self.wait_ready()
        if self._start_error is not None:
            raise self._start_error
        if self._ahead:
            assert self._ahead.pop(0) == request
        else:
            self._send(request)
        answer = self._receive("measure" if request["do"] == "round" else "compile", limit_s)
        if "concurrent_collectives" not in answer:
            return answer
        self.close()  # its thread pool is too small for this program
        self._setup = {**self._setup, "concurrent_collectives": answer["concurrent_collectives"]}
        self.restarts += 1
        self._start()
        return self.ask(request, limit_s)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the worker is gone; the next read reports how it ended

    def _receive(self, stage: str, limit_s: float) -> dict[str, Any]:
        answer = json.loads(self._read_line(stage, limit_s))
        if "source" in answer:
            source.require_same(answer["source"], self._setup.get("source"))
        if "failed" in answer:
            raise WorkerError(**answer["failed"])
        return answer

    def _read_line(self, stage: str, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(limit_s):
                    self.kill()
                    raise WorkerError(f"no answer within {limit_s:.0f} s: worker stopped", stage=stage, alive=False)
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    raise WorkerError(self._cause_of_death(), stage=stage, detail=self._log_tail(), alive=False)
                self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _cause_of_death(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"the worker process ended with exit code {code}"
        name = signal.Signals(-code).name
        hint = " (as by the system when memory runs out)" if name == "SIGKILL" else ""
        return f"the worker process was killed by {name}{hint}"

    def _log_tail(self) -> str:
        return self.log.read_bytes()[-4000:].decode(errors="replace")

    def close(self) -> None:
        """Lets the worker finish and waits for it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
