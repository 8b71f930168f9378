# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep: prepares every point, then measures all in rounds of random order, so that drift affects all alike."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Sequence
from typing import Any

from absl import logging
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.records import schema
from jaxbench.records.schema import FailureRecord, PointRecord, RoundRecord
from jaxbench.runner.client import WorkerError
from jaxbench.runner.job import SweepJob
from jaxbench.runner.plan import Placed, Point, rounds_of
from jaxbench.runner.progress import AGAIN, PACE, SweepProgress
from jaxbench.runner.workers import Workers, note_workers


def missing_rounds(records: list[schema.Record], points: Sequence[Placed], rounds: int) -> dict[str, list[int]]:
    """The missing rounds of each incomplete point. rounds: of the run."""
    measured: dict[str, set[int]] = {point.point: set() for point in points}
    for record in records:
        if isinstance(record, RoundRecord) and record.point in measured:
            measured[record.point].add(record.round)
    asked = {point.point: range(rounds_of(point, rounds)) for point in points}
    missing = {point: [r for r in asked[point] if r not in done] for point, done in measured.items()}
    return {point: todo for point, todo in missing.items() if todo}


def run(job: SweepJob, console: Console) -> None:
    """Measures what the run folder lacks. Failures are recorded and the other points go on; Ctrl-C loses nothing."""
    records = job.run.records()
    todo = missing_rounds(records, job.points, job.rounds)
    while not todo and job.more():  # it was interrupted before it looked
        todo = missing_rounds(records, job.points, job.rounds)
    if not todo:
        return
    later = job.automatic is not None  # further rounds are of all points but the oversubscribed ones
    points = [point for point in job.points if point.point in todo or (later and not point.oversubscribed)]
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


# Fewer rounds than an interval needs claim no speed, so nothing is lost when those of a point follow its preparation at
# once: a run that is interrupted keeps the points that it has finished.
FEW = 5


class _Sweep:
    """steps: K of the points that have a round. checked: the newest record of those that this session has checked."""

    def __init__(
        self,
        job: SweepJob,
        workers: Workers,
        progress: SweepProgress,
        points: Sequence[Placed],
        todo: dict[str, list[int]],
        steps: dict[str, int],
    ):
        self.job, self.workers, self.progress, self.steps = job, workers, progress, steps
        self.todo = {point.point: todo.get(point.point, []) for point in points}
        self.points = {point.point: point for point in points}
        self.random_order = random.Random(f"{job.config['seed']}/{job.session}")
        self.ready: set[str] = set()
        self.failed: set[str] = set()
        self.checked: dict[str, PointRecord] = {}
        self.unreported: dict[str, list[str]] = {}  # failed points by reason

    def run(self, fresh: Sequence[int]) -> None:
        """fresh: the rounds that start with new processes."""
        rounds, names = self.job.rounds, [name for name, missing in self.todo.items() if missing]
        alternately = rounds < FEW and not fresh
        for some in [[name] for name in names] if alternately else [names]:
            self.prepare_all(some)
            if not alternately:  # else one after the other: a reason that many points have is said once, at the end
                self.report_failures()
            self.measure_all(range(rounds), fresh, some)
        while self.job.more():
            new = range(rounds, rounds := self.job.rounds)
            for name in self.alone():
                self.todo[name] = [*self.todo[name], *new]
            self.measure_all(new, [new.start], list(self.points))
        if self.job.config.get("profile"):
            for name in sorted(self.ready):
                if not getattr(self.points[name], "explains", ""):
                    self.trace(name)
        self.report_failures()

    def alone(self) -> list[str]:
        """The points whose devices share no cores."""
        return [name for name, point in self.points.items() if not point.oversubscribed]

    def measure_all(self, rounds: Iterable[int], fresh: Sequence[int], among: Sequence[str]) -> None:
        """Measures what these points lack of these rounds, each in random order."""
        for number in rounds:
            if number in fresh:
                self.ready.difference_update(self.alone())
                self.workers.renew(self.alone())
                self.prepare_all(self.alone())
            names = [name for name in among if number in self.todo[name]]
            self.random_order.shuffle(names)
            for name in names:
                self.measure(name, number)

    def prepare_all(self, names: Iterable[str]) -> None:
        """Processes work at the same time on what was checked before, on points that only explain others, and on
        points whose times claim nothing. The others are prepared one by one, because their compile times are recorded
        and finding the length of their blocks times a step."""
        names = [name for name in names if name not in self.failed]
        again = [name for name in names if name in self.checked and name in self.steps]
        for name in again:
            self.workers.send_ahead(name, self.again(name))
        for name in again:
            self.prepare_again(name)
        new = [name for name in names if name not in self.ready and name not in self.failed]
        together = [name for name in new if self.points[name].oversubscribed or self.unpaced(name)]
        for name in new:
            if name not in together:
                self.prepare(name)
        requests = {name: self.new(name) | self.unpaced(name) for name in together}
        for name, request in requests.items():
            self.workers.send_ahead(name, request)
        for name, request in requests.items():
            self.prepare(name, request)
        for name in together:
            lost = name not in self.ready  # with its process: it will be prepared by itself
            if self.unpaced(name) and not lost and name not in self.steps:
                self.attempt(PACE, name, f"time {self.points[name].text}", {"do": "pace", "point": name})
        note_workers(self.job.run, self.workers)

    def unpaced(self, name: str) -> dict[str, Any]:
        """What asks to prepare a point without timing its steps, which is done later, alone; {} unless it only
        explains another."""
        explains = getattr(self.points[name], "explains", "") and not self.points[name].oversubscribed
        return {"paced": False} if explains else {}

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
        if self.job.crew and self.job.crew.missing:
            raise UserError(
                f"{self.job.crew.missing}, and nobody can start it again but its launcher: what was measured is kept, "
                "and the same command continues."
            ) from error
