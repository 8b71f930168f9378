# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parent's side of a worker: one process, or a process group that runs the same requests together."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxbench.machine import source, start
from jaxbench.processes.child import Child, ready
from jaxbench.processes.launch import Followers, Remote
from jaxbench.processes.server import IDLE

START_LIMIT_S = 300.0
ANSWER_LIMIT_S = 1800.0
FAILED_LIMIT_S = 20.0  # how long to wait for the other processes of a group after one has failed

# The time of a block of all processes is that of the slowest.
SLOWEST = ("block_s", "double_block_s", "warmup_block_s", "loop_s", "double_loop_s", "probe_s")
ADDED = ("cpu_s", "switches")


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

    setup: the first line on stdin; see `server`. With "source" they run that copy of this package; see `source.of`.
    With "processes" they form a process group; see `setups`. followers: the other processes of a launch; each starts
    one process of the group. None: all are started here.
    """

    def __init__(self, setup: dict[str, Any], log: Path, followers: Followers | None = None):
        self.log = log
        self._followers = followers
        self.restarts = 0  # at its own request; each discards the prepared points
        self._setup = setup
        self._start()

    def _start(self) -> None:
        self._start_answer: dict[str, Any] = {}
        each_setup = self._followers.setups(self._setup) if self._followers else setups(self._setup)
        self._cpus: list[Any] = []
        self._children: list[Child | Remote] = [self._child(i, setup) for i, setup in enumerate(each_setup)]
        self._started = False
        self._start_error: WorkerError | None = None
        self._ahead: list[dict[str, Any]] = []  # sent, and not yet answered

    def _child(self, number: int, setup: dict[str, Any]) -> Child | Remote:
        if self._followers and number:
            return self._followers.start(number, setup)
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
        hosts = self._followers.hosts[: about.get("processes", 1)] if self._followers else []
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
        if self._followers and stage == "start":
            cpus = [tuple(each.get("cpus") or ()) for each in results]
            self._cpus = list(zip(self._followers.hosts[: len(results)], cpus, strict=True))
        return merged(results, self._cpus)

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
        where = f" (on {self._followers.hosts[number]})" if self._followers else ""
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


def setups(setup: dict[str, Any]) -> list[dict[str, Any]]:
    """The setup of each process. setup: that of the worker; "processes": the number of its processes.

    Each process has an equal share of the devices; of accelerators, it has one. Instead, "trainings" is the number of
    processes that train at the same time, each on all devices.
    """
    if "trainings" in setup:
        beside = {"address": start.free_address(), "processes": setup["trainings"]}
        return [{**setup, "beside": {**beside, "process": i}} for i in range(setup["trainings"])]
    count = setup.get("processes", 1)
    if count == 1:
        return [setup]
    common = {"address": start.free_address(), "processes": count}
    device = setup["platform"] != "cpu"
    places = [{**common, "process": i, **({"device": i} if device else {})} for i in range(count)]
    return [{**setup, "world": place} for place in places]


def merged(answers: Sequence[dict[str, Any]], cpus: Sequence[Any] = ()) -> dict[str, Any]:
    """The answer of a process group to one request. answers: of its processes, in order.

    cpus: for each process, its host and the CPUs that it may use; processes with equal entries share their CPUs. ():
    all processes share them.
    """
    cpus = [cpu for cpu, answer in zip(cpus, answers, strict=True) if answer != IDLE] if cpus else ()
    answers = [answer for answer in answers if answer != IDLE]
    first = answers[0]
    if len(answers) == 1:
        return first
    # All restart with the same number of threads, the largest that one of them needs.
    if asked := [answer["concurrent_collectives"] for answer in answers if "concurrent_collectives" in answer]:
        return {"concurrent_collectives": max(asked)}
    if "same" in first:
        return {"same": all(answer["same"] for answer in answers)}
    if "cpus" in first:
        return {**first, "processes": len(answers)}
    if "record" in first:
        return {**first, "record": _record([answer["record"] for answer in answers], cpus)}
    return first


def _record(records: Sequence[dict[str, Any]], cpus: Sequence[Any]) -> dict[str, Any]:
    """The leader's record, with the contributions of the other processes."""
    record = dict(records[0])
    if "checks" in record:
        record["checks"] = _checks([each["checks"] for each in records])
    if record.get("wrong") is not None:  # each process counts on its own devices
        record["wrong"] = sum(each["wrong"] for each in records)
    if record["kind"] == "round":
        record["process_block_s"] = [each["block_s"] for each in records]
        record |= {name: _by_block(max, records, name) for name in SLOWEST}
        record |= {name: _by_block(sum, records, name) for name in ADDED}
        sharing = _sharing(records, cpus)
        record["steal_s"] = _added([_by_block(statistics.mean, those, "steal_s") for those in sharing])
        record["others_s"] = _added([_others_s(those) for those in sharing])
        record["cpus"] = sum(those[0]["cpus"] for those in sharing)
        record["compilations"] = max(each["compilations"] for each in records)
    return record


def _by_block(together: Callable[[Sequence[Any]], Any], records: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """One number for each block, over all processes; [] if a process has none."""
    of_each = [each[name] for each in records]
    return [together(block) for block in zip(*of_each, strict=True)] if all(of_each) else []


def _sharing(records: Sequence[dict[str, Any]], cpus: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The records, grouped by processes that share their CPUs."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record, cpu in zip(records, cpus or [None] * len(records), strict=True):
        groups.setdefault(cpu, []).append(record)
    return list(groups.values())


def _added(of_each: Sequence[list[float]]) -> list[float]:
    """The sum over processes for each block; [] if a process reports nothing."""
    return [sum(block) for block in zip(*of_each, strict=True)] if all(of_each) else []


def _others_s(records: Sequence[dict[str, Any]]) -> list[float]:
    """The CPU time of other programs on the shared CPUs: the mean reading of the processes minus their own time."""
    others, own = (_by_block(statistics.mean, records, name) for name in ("others_s", "cpu_s"))
    return [busy - (len(records) - 1) * one for busy, one in zip(others, own, strict=True)] if others and own else []


def _checks(of_each: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The leader's verdicts, replaced by those of another process that found a fault: each sees only its own shards."""
    verdicts = {verdict["name"]: verdict for verdict in of_each[0]}
    for process, checks in enumerate(of_each):
        for verdict in checks:
            if not verdict["ok"] and verdicts.get(verdict["name"], {"ok": True})["ok"]:
                verdicts[verdict["name"]] = {**verdict, "reason": f"process {process}: {verdict['reason']}"}
    return list(verdicts.values())
