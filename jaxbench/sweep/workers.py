# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The worker processes of a sweep: sets of them that take turns, and how one process replaces another."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jaxbench.core.point import Point
from jaxbench.core.schema import FailureRecord
from jaxbench.core.store import RunFolder, write_manifest
from jaxbench.machine import allocator
from jaxbench.measure import memory
from jaxbench.processes.client import Spend, Worker, WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Answer, Request, Setup
from jaxbench.records.manifest import Preparation
from jaxbench.sweep.job import SweepJob
from jaxbench.sweep.plan import groups, worker_of

PROCESS_BYTES = 4.2e8  # of an idle process, before it has a model
SHARE = 0.5  # of the free memory, for all sets: the rest is for their models, which have no known size yet


def note_preparation(run: RunFolder, preparation: Preparation) -> None:
    """Writes the ledger of this start into the manifest."""
    write_manifest(run.path, {**run.manifest(), "preparation": preparation})


def note_workers(run: RunFolder, sets: Sequence[Workers], preparation: Preparation) -> None:
    """Writes the CPUs and variables of each process into the manifest, the number of sets, and the ledger."""
    manifest = run.manifest()
    about = {name: each for workers in sets for name, each in workers.surroundings.items()}
    if "plan" in manifest:
        # Sets follow each other on an accelerator, and a continued run may need fewer: the largest number counts.
        most = max(workers.number for workers in sets) + 1
        manifest["plan"]["sets"] = max(most, manifest["plan"].get("sets", 1))
    all_ = {**manifest.get("workers", {}), **about}
    write_manifest(run.path, {**manifest, "workers": all_, "preparation": preparation})


def processes_of(points: Sequence[Point]) -> int:
    """The number of processes in a set."""
    return sum(max(setup.processes, setup.trainings) for _, setup in groups(points).values())


def affordable(sets: Sequence[Sequence[Point]], memory_bytes: float) -> int:
    """The number of sets that may live at the same time, at least 1. sets: the points of each set, in order.

    memory_bytes: of the machine.
    """
    free = min(memory.available(), memory_bytes)  # infinite if nobody knows it
    taken = itertools.accumulate(PROCESS_BYTES * processes_of(points) for points in sets)
    return max(1, sum(bytes_ <= SHARE * free for bytes_ in taken))


def failure_of(point: Point, experiment: str, error: WorkerError) -> FailureRecord:
    """The record of a point that failed."""
    return FailureRecord(
        point=point.point,
        devices=point.devices,
        strategy=point.strategy,
        scaling=point.scaling,
        global_batch=point.global_batch,
        arm=point.arm,
        experiment=experiment,
        stage=error.stage,
        reason=str(error),
        detail=error.detail,
        unsupported=error.unsupported,
    )


class Workers:
    """A set of worker processes, one for each group of points; a dead one is replaced."""

    def __init__(
        self,
        job: SweepJob,
        points: Sequence[Point],
        *,
        number: int = 0,
        programs: Mapping[str, str] | None = None,
        forks: ForkServers | None = None,
        lose: Callable[[str], None] = lambda point: None,
        spend: Spend = lambda point, spent: None,
    ):
        """number: of the set; it is part of the names of its processes. programs: variables that say where
        its compiled programs are kept (`program_cache.variables`). forks: see `Child`. lose: told each point of a
        process that died: what it had prepared is gone. spend: see `Worker`."""
        self._job, self.number, self._programs, self._forks, self._lose = job, number, programs or {}, forks, lose
        self._spend = spend
        self._groups = groups(points)
        self._of = {point: name for name, (members, _) in self._groups.items() for point in members}
        self._died: Counter[str] = Counter()
        self._workers = {name: self._start(name) for name in self._groups}

    def _start(self, name: str) -> Worker:
        """Starts a new process for a group. One that replaces a dead one has its own log."""
        suffix = f"#{self.number}" if self.number or self._died[name] else ""
        log = self._job.run.path / "logs" / f"{name}{suffix}.log"
        suffix += f".{self._died[name]}" if self._died[name] else ""
        setup = self._groups[name][1]
        environment = {**self._programs, **allocator.variables(self._job.allocator)}
        setup = dataclasses.replace(
            setup,
            environment={**setup.environment, **environment},
            experiment=self._job.experiment,
            config=self._job.config,
            order=self._order(setup),
            source=self._job.source,
            python=self._job.python,
            worker=f"session{self._job.session}/{name}{suffix}",  # new for each process: intervals compare processes
        )
        return Worker(setup, log, self._job.followers, self._forks, self._spend)

    def _order(self, setup: Setup) -> tuple[int, ...]:
        """The cores that a process takes first. One device takes another core in each set: core k mod n in set k.

        The points on n devices use the first n cores. Cores may differ in speed, and a base that always had the fastest
        (or the slowest) of them would make every efficiency too low (or too high).
        """
        order = tuple(self._job.order)
        counts = [each.devices for _, each in self._groups.values() if each.devices <= len(order)]
        used = max(counts, default=1)
        if setup.platform != "cpu" or setup.trainings > 1 or (setup.cores or setup.devices) != 1:
            return order
        first = self.number % used
        return (*order[first:used], *order[:first], *order[used:])

    def wait_ready(self) -> None:
        """Waits until all workers have started."""
        for worker in self._workers.values():
            worker.wait_ready()

    @property
    def surroundings(self) -> dict[str, dict[str, object]]:
        """The CPUs and variables of each process, by the name that records give it."""
        return {worker.name: worker.surroundings for worker in self._workers.values()}

    @property
    def bytes(self) -> float:
        """The resident memory of its processes on this machine, as far as the system reports it."""
        files = [Path(f"/proc/{pid}/status") for worker in self._workers.values() for pid in worker.pids if pid]
        texts = [file.read_text() for file in files if file.exists()]
        return 1024.0 * sum(int(kib) for text in texts for kib in re.findall(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE))

    def name(self, point: str) -> str:
        """The name in records of the process that measures a point."""
        return self._workers[self._of[point]].name

    def send_ahead(self, point: str, request: Request) -> None:
        """Lets the process of a point begin a request that `ask` makes later."""
        self._workers[self._of[point]].send_ahead(request)

    def ask(self, point: str, request: Request[Answer]) -> Answer:
        """Raises WorkerError; if the worker died, a new one is started for the group's other points."""
        return self._ask(self._of[point], request)

    def ask_for(self, point: Point, request: Request[Answer]) -> Answer:
        """As `ask`, about a point that need not be measured. Without a process for it, one lives for this request."""
        name, setup = worker_of(point)
        if name in self._workers:
            return self._ask(name, request)
        self._groups[name] = [], setup  # `_start` reads the setup from here
        worker = self._start(name)
        try:
            return worker.ask(request)
        finally:
            worker.close()
            del self._groups[name]

    def _ask(self, name: str, request: Request[Answer]) -> Answer:
        """Asks a worker. If it died or cannot start, replaces it and raises WorkerError."""
        worker = self._workers[name]
        try:
            return worker.ask(request)
        except WorkerError as error:
            if not error.alive or error.stage in ("start", "model"):
                worker.close()
                self._died[name] += 1
                self._workers[name] = self._start(name)
                for lost in self._groups[name][0]:
                    self._lose(lost)
            raise

    def close(self) -> None:
        """Lets the workers finish."""
        for worker in self._workers.values():
            worker.let_go()  # all of them end at the same time
        for worker in self._workers.values():
            worker.close()

    def kill(self) -> None:
        for worker in self._workers.values():
            worker.kill()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Lets the workers finish; after an exception, such as an interrupt, kills them."""
        self.close() if kind is None else self.kill()
