# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep: prepares every point, then measures all in rounds of random order, so that drift affects all alike."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any

from absl import logging
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.records import schema
from jaxbench.records.schema import FailureRecord, PointRecord, RoundRecord
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner.client import Worker, WorkerError
from jaxbench.runner.plan import Placed, Point, groups, rounds_of
from jaxbench.runner.progress import AGAIN, SweepProgress


@dataclass(frozen=True, kw_only=True)
class Job:
    """The input of a sweep. order: the CPU cores to take first. source: the copy of this package that its processes
    run, as `machine.source.of`; None: that of this process."""

    run: RunFolder
    points: Sequence[Placed]
    config: dict[str, Any]
    experiment: str  # a name or an absolute path
    session: int  # how often this run folder was continued
    order: Sequence[int] = ()
    source: dict[str, str] | None = None

    @property
    def rounds(self) -> int:
        return self.config["measure"]["rounds"]

    @property
    def fresh(self) -> list[int]:
        """The rounds before which processes are replaced, so that several measure each point; not oversubscribed ones,
        whose times claim nothing."""
        processes = self.config["measure"]["processes"]
        return [self.rounds * i // processes for i in range(1, processes)]


def missing_rounds(records: list[schema.Record], points: Sequence[Placed], rounds: int) -> dict[str, list[int]]:
    """The missing rounds of each incomplete point. rounds: of the run."""
    measured: dict[str, set[int]] = {point.point: set() for point in points}
    for record in records:
        if isinstance(record, RoundRecord) and record.point in measured:
            measured[record.point].add(record.round)
    asked = {point.point: range(rounds_of(point, rounds)) for point in points}
    missing = {point: [r for r in asked[point] if r not in done] for point, done in measured.items()}
    return {point: todo for point, todo in missing.items() if todo}


def note_workers(run: RunFolder, workers: Workers) -> None:
    """Writes into the manifest what each process has: its CPUs and its variables."""
    manifest = run.manifest()
    write_json(run.path / MANIFEST, {**manifest, "workers": {**manifest.get("workers", {}), **workers.surroundings}})


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
            "order": list(self._job.order),
            "worker": f"session{self._job.session}/{name}{again}",
            **({"source": self._job.source} if self._job.source else {}),
        }
        return Worker(setup, logs / f"{name}.log")

    def wait_ready(self) -> None:
        """Waits until all workers have started: a starting one takes cores from the first that compiles."""
        for worker in self._workers.values():
            worker.wait_ready()

    @property
    def surroundings(self) -> dict[str, dict[str, Any]]:
        """The CPUs and variables of each process, by the name that records give it."""
        return {worker.name: worker.surroundings for worker in self._workers.values()}

    def name(self, point: str) -> str:
        """Of the process that measures a point, as records give it."""
        return self._workers[self._of[point]].name

    def renew(self, points: Iterable[str]) -> None:
        """Replaces the processes that measure these points, which discards all that they have prepared."""
        names = sorted({self._of[point] for point in points})
        for name in names:
            self._workers[name].close()
            self._workers[name] = self._start(name, self._workers[name].learned)
        self.wait_ready()

    def send_ahead(self, point: str, request: dict[str, Any]) -> None:
        """Lets the process of a point begin with what `ask` is about to ask of it."""
        self._workers[self._of[point]].send_ahead(request)

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
    records = job.run.records()
    todo = missing_rounds(records, job.points, job.rounds)
    points = [point for point in job.points if point.point in todo]
    if not points:
        return
    first = min(min(missing) for missing in todo.values())
    fresh = [number for number in job.fresh if number > first]
    again = [point for point in points if not point.oversubscribed for _ in fresh]
    tasks = [("prepare", point.point) for point in points]
    tasks += [(AGAIN if isinstance(point, Point) else "prepare", point.point) for point in again]
    tasks += [("round", p) for p, missing in todo.items() for _ in missing]
    rounds = [record for record in records if isinstance(record, RoundRecord)]
    steps = {record.point: record.steps for record in rounds}
    with Workers(job, points) as workers, SweepProgress(console, tasks, rounds) as progress:
        workers.wait_ready()
        _Sweep(job, workers, progress, points, todo, steps).run(fresh)


class _Sweep:
    """steps: K of the points that have a round. checked: the newest record of those that this session has checked."""

    def __init__(
        self,
        job: Job,
        workers: Workers,
        progress: SweepProgress,
        points: Sequence[Placed],
        todo: dict[str, list[int]],
        steps: dict[str, int],
    ):
        self.job, self.workers, self.progress, self.todo, self.steps = job, workers, progress, todo, steps
        self.points = {point.point: point for point in points}
        self.ready: set[str] = set()
        self.failed: set[str] = set()
        self.checked: dict[str, PointRecord] = {}
        self.unreported: dict[str, list[str]] = {}  # failed points by reason

    def run(self, fresh: Sequence[int]) -> None:
        """fresh: the rounds that start with new processes."""
        self.prepare_all(self.points)
        random_order = random.Random(f"{self.job.config['seed']}/{self.job.session}")
        for number in range(self.job.rounds):
            if number in fresh:
                again = [name for name, point in self.points.items() if not point.oversubscribed]
                self.ready.difference_update(again)
                self.workers.renew(again)
                self.prepare_all(again)
            names = [name for name in self.points if number in self.todo[name]]
            random_order.shuffle(names)
            for name in names:
                self.measure(name, number)
        if self.job.config.get("profile"):
            for name in sorted(self.ready):
                if not getattr(self.points[name], "explains", ""):
                    self.trace(name)
        self.report_failures()

    def prepare_all(self, names: Iterable[str]) -> None:
        """Processes work at the same time on what was checked before, and on points whose times claim nothing; the
        others are prepared one by one, because finding the length of their blocks times a step."""
        names = [name for name in names if name not in self.failed]
        again = [name for name in names if name in self.checked and name in self.steps]
        for name in again:
            self.workers.send_ahead(name, self.again(name))
        for name in again:
            self.prepare_again(name)
        new = [name for name in names if name not in self.ready and name not in self.failed]
        sharing = [name for name in new if self.points[name].oversubscribed]
        for name in new:
            if name not in sharing:
                self.prepare(name)
        requests = {name: self.new(name) for name in sharing}
        for name, request in requests.items():
            self.workers.send_ahead(name, request)
        for name, request in requests.items():
            self.prepare(name, request)
        self.report_failures()
        note_workers(self.job.run, self.workers)

    def new(self, name: str) -> dict[str, Any]:
        """The request to prepare a point for the first time. Every point has the loss of the first."""
        loss = next((record.loss for record in self.checked.values()), "")
        return {"do": "prepare", "point": self.points[name].to_json(), **({"loss": loss} if loss else {})}

    def again(self, name: str) -> dict[str, Any]:
        """The request to prepare a point that another process has checked."""
        about = {"program_sha256": self.checked[name].program_sha256, "steps": self.steps[name]}
        return {"do": "prepare_again", "point": self.points[name].to_json(), **about}

    def prepare_again(self, name: str) -> None:
        """Another program, as a compiler that tries variants may make, is prepared and checked like a new point."""
        answer = self.attempt(AGAIN, name, f"compile {self.points[name].text} again", self.again(name))
        first = self.checked.pop(name)
        if answer is not None and answer["same"]:
            self.checked[name] = first
            made = first.checked_by or first.worker
            self.job.run.append(dataclasses.replace(first, worker=self.workers.name(name), checked_by=made))
            self.ready.add(name)

    def prepare(self, name: str, request: dict[str, Any] | None = None) -> None:
        """request: that of `new`, if it was sent ahead."""
        answer = self.attempt("prepare", name, f"compile and check {self.points[name].text}", request or self.new(name))
        if answer is not None:
            record = self.append(answer)
            if isinstance(record, PointRecord):
                self.checked[name] = record
            self.ready.add(name)

    def measure(self, name: str, number: int) -> None:
        point = self.points[name]
        if name not in self.ready and name not in self.failed:
            self.prepare(name)  # it was lost with the worker that another point killed
        if name not in self.ready:
            return
        text = f"round {number + 1}/{rounds_of(point, self.job.rounds)}: {point.text}"
        request = {"do": "round", "point": name, "round": number}
        if isinstance(point, Point) and name in self.steps:  # blocks of other lengths would be other samples
            request["steps"] = self.steps[name]
        answer = self.attempt("round", name, text, request)
        if answer is not None:
            record = self.append(answer)
            assert isinstance(record, RoundRecord)
            self.steps[name] = record.steps
            self.progress.measured(record)

    def append(self, answer: dict[str, Any]) -> schema.Record:
        record = schema.from_json(answer["record"])
        self.job.run.append(record)
        return record

    def trace(self, name: str) -> None:
        """Runs last, so that no after-effect of the tracer reaches a measurement."""
        folder = self.job.run.path / "profiles" / name.replace("/", "-")
        request = {"do": "profile", "point": name, "folder": str(folder.resolve())}
        answer = self.attempt("profile", name, f"trace {self.points[name].text}", request)
        if answer is not None:
            self.append(answer)

    def attempt(self, kind: str, name: str, text: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """The worker's answer; None if it fails, which is recorded."""
        self.progress.begin(kind, name, text)
        try:
            answer = self.workers.ask(name, request)
        except WorkerError as error:
            self.fail(self.points[name], error)
            return None
        finally:
            self.ready -= self.workers.lost()
        self.progress.end(kind, name)
        return answer

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
