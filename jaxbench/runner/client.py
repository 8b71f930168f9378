# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker: one process, or a world of several processes that run the same requests together."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from jaxbench.machine import source
from jaxbench.runner import members
from jaxbench.runner.child import Child, ready
from jaxbench.runner.crew import Crew, Remote

START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 1800.0
FAILED_LIMIT_S = 20.0  # how long to wait for the other processes of a world after one has failed


class WorkerError(Exception):
    """The worker failed, died or hung.

    `stage`, `detail` and `unsupported` (the strategy cannot take the model) go into the failure record. refused: the
    message refuses the request; it is not an exception of a model or a library.
    """

    def __init__(self, reason: str, *, stage: str = "measure", detail: str = "", alive: bool = True, **kinds: bool):
        super().__init__(reason)
        self.stage, self.detail, self.alive = stage, detail, alive
        self.unsupported, self.refused = kinds.get("unsupported", False), kinds.get("refused", False)


class Worker:
    """Child processes with devices of their own. Their stderr goes to `log` and, from the second on, to "log.1", ...

    All get the same requests. If one child fails, dies or hangs, all are killed; the rest would block in a collective.

    setup: the first line on stdin; see `worker`. With "source" they run that copy of this package; see `source.of`.
    With "processes" they form a world; see `members.setups`. crew: the processes of a launch; each starts one process
    of the world. None: all are started here.
    """

    def __init__(self, setup: dict[str, Any], log: Path, crew: Crew | None = None):
        self.log = log
        self._crew = crew
        self.restarts = 0  # at its own request; each discards the prepared points
        self._setup = setup
        self._start()

    def _start(self) -> None:
        self._start_answer: dict[str, Any] = {}
        setups = self._crew.setups(self._setup) if self._crew else members.setups(self._setup)
        self._cpus: list[Any] = []
        self._children: list[Child | Remote] = [self._child(i, setup) for i, setup in enumerate(setups)]
        self._started = False
        self._start_error: WorkerError | None = None
        self._ahead: list[dict[str, Any]] = []  # sent, and not yet answered

    def _child(self, number: int, setup: dict[str, Any]) -> Child | Remote:
        if self._crew and number:
            return self._crew.start(number, setup)
        return Child(setup, self.log.with_name(f"{self.log.name}.{number}") if number else self.log)

    @property
    def learned(self) -> dict[str, Any]:
        """The part of the setup that the worker found itself. The process that replaces it gets it at the start."""
        return {key: value for key, value in self._setup.items() if key == "concurrent_collectives"}

    @property
    def name(self) -> str:
        """The name of the worker in its records."""
        return str(self._setup["worker"])

    @property
    def pids(self) -> list[int]:
        """The ids of its processes, in order."""
        return [child.pid for child in self._children]

    @property
    def surroundings(self) -> dict[str, Any]:
        """Its CPUs and variables, once it has started (see `worker.surroundings`); on several hosts, those of each
        process."""
        names = ("cpus", "environment", "processes")
        about = {name: self._start_answer[name] for name in names if name in self._start_answer}
        hosts = self._crew.hosts[: about.get("processes", 1)] if self._crew else []
        return {**about, "hosts": hosts} if len(set(hosts)) > 1 else about

    def wait_ready(self) -> None:
        """Waits until the worker has its devices. If it fails to get them, the first `ask` raises the error.

        Raises UserError if the worker runs another copy of this package.
        """
        if not self._started:
            self._started = True
            try:
                self._start_answer = self._receive("start", START_LIMIT_S)
            except WorkerError as error:
                self._start_error = error

    def send_ahead(self, request: dict[str, Any]) -> None:
        """Lets the worker begin a request before `ask` makes it. Requests to one worker are asked in this order."""
        self._send(request)
        self._ahead.append(request)

    def ask(self, request: dict[str, Any], limit_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
        """Sends a request, unless it was sent ahead, and waits `limit_s` for its answer. Raises WorkerError."""
        self.wait_ready()
        if self._start_error is not None:
            raise self._start_error
        if self._ahead:  # this request is already on its way
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
        for child in self._children:
            child.send(message)

    def _receive(self, stage: str, limit_s: float) -> dict[str, Any]:
        """The merged answer of all processes. Raises WorkerError for the first process that failed or died."""
        answers: dict[Child | Remote, dict[str, Any]] = {}
        failed: Child | Remote | None = None
        deadline = time.monotonic() + limit_s
        while len(answers) < len(self._children):
            silent = [child for child in self._children if child not in answers]
            heard = ready(silent, deadline - time.monotonic())
            for child in heard:
                # A closed pipe without an answer is a death: the others can no longer finish their collectives.
                if (answer := child.read()) is None:
                    raise self._death(child, stage)
                answers[child] = answer
                if "source" in answer:
                    source.require_same(answer["source"], self._setup.get("source"))
                # After a failure the others get a short time: they may fail too, or block in a collective forever.
                if "failed" in answer and failed is None:
                    failed, deadline = child, min(deadline, time.monotonic() + FAILED_LIMIT_S)
            if not heard:
                break
        silent = [child for child in self._children if child not in answers]
        if failed is not None:
            raise self._failure(answers, failed)
        if silent:
            raise self._silence(silent, stage, limit_s)
        results = [answers[child] for child in self._children]
        if self._crew and stage == "start":
            cpus = [tuple(each.get("cpus") or ()) for each in results]
            self._cpus = list(zip(self._crew.hosts[: len(results)], cpus, strict=True))
        return members.merged(results, self._cpus)

    def _failure(self, answers: dict[Child | Remote, dict[str, Any]], first: Child | Remote) -> WorkerError:
        """The error of the first process that failed. The processes live on only if all failed and so still agree."""
        about = answers[first]["failed"]
        if all("failed" in answers.get(child, ()) for child in self._children):
            return WorkerError(**about)
        silent = [self._called(child) for child in self._children if child not in answers]
        about["reason"] = f"{self._called(first)}: {about['reason']}{self._stopped()}" + (
            f" ({', '.join(silent)} gave no answer)" if silent else ""
        )
        self.kill()
        return WorkerError(**about, alive=False)

    def _death(self, gone: Child | Remote, stage: str) -> WorkerError:
        """The reason for the end of a process. JAX aborts the other processes once they miss it."""
        self._hear_ends()
        ended = [child for child in self._children if child.ended or child is gone]
        stopped = self._stopped()
        gone.end()
        self.kill()
        # SIGABRT is JAX's reaction to the loss of another process, so a process that ended otherwise is the cause.
        first = min(ended, key=lambda child: child.end()[0] == -signal.SIGABRT)
        reason = f"{self._called(first)} {first.end()[1]}{stopped}"
        return WorkerError(reason, stage=stage, detail=first.log_tail(), alive=False)

    def _hear_ends(self) -> None:
        """Waits until the processes on other hosts have ended, because that news arrives later than from this host."""
        deadline = time.monotonic() + FAILED_LIMIT_S
        while left := [child for child in self._children if isinstance(child, Remote) and not child.ended]:
            heard = ready(left, deadline - time.monotonic())
            for child in heard:
                child.read()
            if not heard:
                return

    def _silence(self, silent: list[Child | Remote], stage: str, limit_s: float) -> WorkerError:
        some = f" from {self._called(silent[0])}" if len(silent) < len(self._children) else ""
        reason = f"no answer within {limit_s:.0f} s{some}: worker stopped{self._stopped()}"
        self.kill()
        return WorkerError(reason, stage=stage, alive=False)

    def _stopped(self) -> str:
        """A clause that names a stopped process; "" if there is none."""
        stopped = [self._called(child) for child in self._children if child.stopped]
        return f" ({stopped[0]} does not run: it was stopped, as by SIGSTOP)" if stopped else ""

    def _called(self, child: Child | Remote) -> str:
        if len(self._children) == 1:
            return "the worker process"
        number = self._children.index(child)
        where = f" (on {self._crew.hosts[number]})" if self._crew else ""
        return f"process {number} of {len(self._children)}{where}"

    def let_go(self) -> None:
        """Lets the worker finish: all processes at once, because a remaining one would report the others as lost."""
        for child in self._children:
            child.let_go()

    def close(self) -> None:
        """Lets the worker finish and waits for it."""
        self.let_go()
        for child in self._children:
            child.close()

    def kill(self) -> None:
        for child in self._children:
            child.kill()
