# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep: prepares every point, then measures all in rounds of random order, so that drift affects all alike."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any

from absl import logging
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.records import schema
from jaxbench.records.schema import FailureRecord
from jaxbench.records.store import RunFolder
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Placed, groups
from jaxbench.runner.progress import SweepProgress


@dataclass(frozen=True, kw_only=True)
class Job:
    """The input of a sweep."""

    run: RunFolder
    points: Sequence[Placed]
    config: dict[str, Any]
    experiment: str  # a name or an absolute path
    session: int  # how often this run folder was continued

    @property
    def rounds(self) -> int:
        return self.config["measure"]["rounds"]

    @property
    def fresh(self) -> list[int]:
        """The rounds before which every process is replaced, so that each point is measured by several."""
        processes = self.config["measure"]["processes"]
        return [self.rounds * i // processes for i in range(1, processes)]


def missing_rounds(records: list[schema.Record], points: Sequence[Placed], rounds: int) -> dict[str, list[int]]:
    """The missing rounds of each incomplete point."""
    measured: dict[str, set[int]] = {point.point: set() for point in points}
    for record in records:
        if isinstance(record, schema.RoundRecord) and record.point in measured:
            measured[record.point].add(record.round)
    missing = {point: [r for r in range(rounds) if r not in done] for point, done in measured.items()}
    return {point: todo for point, todo in missing.items() if todo}


class Workers:
    """The worker processes of a sweep, by group; a dead one is restarted."""

    def __init__(self, job: Job, points: Sequence[Placed], *, begun: int = 0):
        """begun: the number of processes that each group has already had."""
        self._job = job
        self._groups = groups(points)
        self._started: Counter[str] = Counter(dict.fromkeys(self._groups, begun))
        self._of = {point: name for name, (members, _) in self._groups.items() for point in members}
        self._workers = {name: self._start(name) for name in self._groups}
        self._lost: set[str] = set()

    def _start(self, name: str, learned: Mapping[str, Any] = MappingProxyType({})) -> Worker:
        logs = self._job.run.path / "logs"
        logs.mkdir(exist_ok=True)
        again = f"#{self._started[name]}" if self._started[name] else ""
        self._started[name] += 1
        setup = {
            **self._groups[name][1],
            **learned,
            "experiment": self._job.experiment,
            "config": self._job.config,
            "worker": f"session{self._job.session}/{name}{again}",
        }
        return Worker(setup, logs / f"{name}.log")

    def wait_ready(self) -> None:
        """Waits until all workers have started: a starting one takes cores from the first that compiles."""
        for worker in self._workers.values():
            worker.wait_ready()

    def renew(self) -> None:
        """Replaces every process, which discards all prepared points."""
        for name, worker in self._workers.items():
            worker.close()
            self._workers[name] = self._start(name, worker.learned)
        self.wait_ready()

    def ask(self, point: str, request: dict[str, Any]) -> dict[str, Any]:
        """Raises WorkerError; if the worker died, a new one is started for the group's other points."""
        name = self._of[point]
        worker, restarts = self._workers[name], self._workers[name].restarts
        try:
            return worker.ask(request)
        except WorkerError as error:
            if not error.alive or error.stage in ("start", "model"):
                worker.close()
                self._workers[name] = self._start(name)
                self._lose(point)
            raise
        finally:
            if worker.restarts > restarts:
                self._lose(point)

    def lost(self) -> set[str]:
        """The points whose preparation was lost with a process since the last call."""
        lost, self._lost = self._lost, set()
        return lost

    def _lose(self, point: str) -> None:
        """The process that was working on this point is gone, and with it the group's other points."""
        self._lost.update(other for other in self._groups[self._of[point]][0] if other != point)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the workers finish; after an exception, such as an interrupt, kills them."""
        for worker in self._workers.values():
            worker.close() if kind is None else worker.kill()


def run(job: Job, console: Console) -> None:
    """Measures what the run folder lacks. Failures are recorded and the other points go on; Ctrl-C loses nothing."""
    todo = missing_rounds(job.run.records(), job.points, job.rounds)
    points = [point for point in job.points if point.point in todo]
    if not points:
        return
    first = min(min(missing) for missing in todo.values())
    fresh = [number for number in job.fresh if number > first]
    tasks = [("prepare", p.point) for p in points for _ in range(1 + len(fresh))]
    tasks += [("round", p) for p, missing in todo.items() for _ in missing]
    with Workers(job, points) as workers, SweepProgress(console, tasks) as progress:
        workers.wait_ready()
        _Sweep(job, workers, progress, points, todo).run(fresh)


class _Sweep:
    def __init__(
        self, job: Job, workers: Workers, progress: SweepProgress, points: Sequence[Placed], todo: dict[str, list[int]]
    ):
        self.job, self.workers, self.progress, self.todo = job, workers, progress, todo
        self.points = {point.point: point for point in points}
        self.ready: set[str] = set()
        self.failed: set[str] = set()
        self.unreported: dict[str, list[str]] = {}  # failed points by reason

    def run(self, fresh: Sequence[int]) -> None:
        """fresh: the rounds that start with new processes."""
        self.prepare_all()
        random_order = random.Random(f"{self.job.config['seed']}/{self.job.session}")
        for number in range(self.job.rounds):
            if number in fresh:
                self.ready.clear()
                self.workers.renew()
                self.prepare_all()
            names = [name for name in self.points if number in self.todo[name]]
            random_order.shuffle(names)
            for name in names:
                self.measure(name, number)
        if self.job.config.get("profile"):
            for name in sorted(self.ready):
                self.trace(name)
        self.report_failures()

    def prepare_all(self) -> None:
        for name, point in self.points.items():
            if name not in self.failed:
                self.prepare(point)
        self.report_failures()

    def prepare(self, point: Placed) -> None:
        text = f"compile and check {point.text}"
        if self.attempt("prepare", point, text, {"do": "prepare", "point": point.to_json()}):
            self.ready.add(point.point)

    def measure(self, name: str, number: int) -> None:
        point = self.points[name]
        if name not in self.ready and name not in self.failed:
            self.progress.add("prepare", name)  # it was lost with the worker that another point killed
            self.prepare(point)
        if name in self.ready:
            text = f"round {number + 1}/{self.job.rounds}: {point.text}"
            self.attempt("round", point, text, {"do": "round", "point": name, "round": number})

    def trace(self, name: str) -> None:
        """Runs last, so that no after-effect of the tracer reaches a measurement."""
        folder = self.job.run.path / "profiles" / name.replace("/", "-")
        self.progress.add("profile", name)
        request = {"do": "profile", "point": name, "folder": str(folder.resolve())}
        self.attempt("profile", self.points[name], f"trace {self.points[name].text}", request)

    def attempt(self, kind: str, point: Placed, text: str, request: dict[str, Any]) -> bool:
        self.progress.begin(kind, point.point, text)
        try:
            answer = self.workers.ask(point.point, request)
        except WorkerError as error:
            self.fail(point, error)
            return False
        finally:
            self.ready -= self.workers.lost()
        self.job.run.append(schema.from_json(answer["record"]))
        self.progress.end(kind, point.point)
        return True

    def report_failures(self) -> None:
        """Warns of each reason once, with the points that failed for it."""
        for reason, names in self.unreported.items():
            first, more = names[0], len(names) - 1
            subject = first if not more else f"{first} and {more} more point{'s' if more > 1 else ''}"
            logging.warning("%s failed: %s", subject, reason)
        self.unreported.clear()

    def fail(self, point: Placed, error: WorkerError) -> None:
        if error.stage == "model":  # the model itself cannot be built: no point can be measured
            raise UserError(str(error)) from error
        if not error.unsupported:  # the report shows these once per strategy
            self.unreported.setdefault(str(error), []).append(point.point)
        self.job.run.append(
            FailureRecord(
                **point.failure(),
                experiment=self.job.config["experiment"],
                stage=error.stage,
                reason=str(error),
                detail=error.detail,
                unsupported=error.unsupported,
            )
        )
        self.failed.add(point.point)
        self.ready.discard(point.point)
        self.progress.drop(point.point)
