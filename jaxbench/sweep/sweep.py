# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep: sets of processes take turns in short rounds, and a round visits points in random order.

On CPUs all sets live at the same time, and only one of them runs. The first set compiles and checks; the others load
the programs that it compiled. An accelerator belongs to one process, so there the sets follow each other, in waves.
Oversubscribed points support no claim about speed: they are checked after all others are measured, and visited once.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import logging
from rich.console import Console

from jaxbench.catalog.jax_settings import CACHE_FOLDER
from jaxbench.core import schema
from jaxbench.core.schema import PointRecord, RoundRecord
from jaxbench.errors import UserError, of_kind
from jaxbench.levers import INPUT
from jaxbench.measure import memory
from jaxbench.measure.point import Point
from jaxbench.processes import messages
from jaxbench.processes.client import WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Answer
from jaxbench.sweep.job import Automatic, SweepJob
from jaxbench.sweep.plan import Placed, rounds_of
from jaxbench.sweep.progress import AGAIN, PACE, SweepProgress
from jaxbench.sweep.workers import (
    References,
    Workers,
    affordable,
    failure_of,
    note_workers,
    processes_of,
)

# A run with fewer rounds than an interval needs supports no claim about speed. So each point gets all its rounds right
# after its preparation, and an interrupted run keeps the points that it has finished.
FEW = 5
DOUBLE_EVERY = 4  # one of this number of visits of a process to a point has the second clock
AUTO_DOUBLE_EVERY = 8  # the same with rounds=auto, which has many visits
ABLATION_SETS = 3  # sets of processes that measure ablations: as few as show how processes differ


def missing_rounds(records: list[schema.Record], points: Sequence[Placed], rounds: int) -> dict[str, list[int]]:
    """The missing rounds of each incomplete point. rounds: of the run. Oversubscribed points come after them."""
    measured: dict[str, set[int]] = {point.point: set() for point in points}
    for record in records:
        if isinstance(record, RoundRecord) and record.point in measured:
            measured[record.point].add(record.round)
    missing = {}
    for point in points:
        done = measured[point.point]
        missing[point.point] = [number for number in range(rounds_of(point, rounds)) if number not in done]
        if point.oversubscribed:  # one visit, with the number after those of the others
            missing[point.point] = [] if done else [rounds]
    return {name: todo for name, todo in missing.items() if todo}


def run(job: SweepJob, console: Console) -> None:
    """Measures the missing rounds. Failures are recorded and the other points go on; Ctrl-C loses nothing."""
    records = job.run.records()
    rounds = [record for record in records if isinstance(record, RoundRecord)]
    number = max((record.round for record in rounds), default=-1) + 1  # of the next round
    auto = job.automatic if job.automatic is not None and not job.automatic.ended else None
    todo = missing_rounds(records, job.points, job.counts[0])
    if job.automatic and not auto:  # it has ended: only points without enough rounds, such as failed ones, get more
        asked, done = job.automatic.asked, Counter(record.point for record in rounds)
        todo = {name: [number + i for i in range(asked[name] - done[name])] for name in asked}
    points = [point for point in job.points if todo.get(point.point) or (auto and not point.oversubscribed)]
    if not points:
        return
    tasks = [("prepare", point.point) for point in points]
    tasks += [("round", name) for name, missing in todo.items() for _ in missing]
    with SweepProgress(console, tasks, rounds) as progress, _Sweep(job, progress, points, todo, records) as sweep:
        sweep.run(auto)


class _Sweep:
    """One start of a sweep.

    Attributes:
      steps: K, the steps of a block, of each point with a known block length.
      checked: the records of the points that this session has checked.
      sets: the sets of processes that are alive.
    """

    def __init__(
        self, job: SweepJob, progress: SweepProgress, points: Sequence[Placed], todo: dict[str, list[int]],
        records: Sequence[schema.Record],
    ):  # fmt: skip
        self.records = [*records]
        rounds = [record for record in records if isinstance(record, RoundRecord)]
        self.job, self.progress, self.todo = job, progress, todo
        self.steps = {record.point: record.steps for record in rounds}
        self.number = max((record.round for record in rounds), default=-1) + 1  # the next round of rounds=auto
        self.points = {point.point: point for point in points}
        self.random_order = random.Random(f"{job.config['seed']}/{job.session}")  # a continued run has another order
        self.failed: set[str] = set()
        self.checked: dict[str, PointRecord] = {}
        self.unreported: dict[str, list[str]] = {}  # failed points by reason
        self.visits: Counter[tuple[int, str]] = Counter()  # by set and point
        self.sets: list[Workers] = []
        self.cache = job.run.path / CACHE_FOLDER
        self.references = References(job.run.path, points)
        # Not for cases: the libraries that a fork has loaded use one thread, and NumPy's kernels are measured on more.
        forks = job.live and job.config.get("measures") != "cases"
        self.forks = ForkServers(["jaxbench.features.ablations.bench"]) if forks else None
        self.spent_s = job.automatic.spent_s if job.automatic else 0.0  # in rounds, which a budget limits

    def __enter__(self) -> _Sweep:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Kills the processes after an exception, such as an interrupt."""
        self.end(kill=kind is not None)
        if self.forks:
            self.forks.close()
        shutil.rmtree(self.cache, ignore_errors=True)  # not before the processes have ended, which read it
        self.references.close()

    def run(self, auto: Automatic | None) -> None:
        alone = [name for name, point in self.points.items() if not point.oversubscribed]
        if alone:
            self.measure(alone, auto)
        shared = [name for name, point in self.points.items() if point.oversubscribed and self.todo.get(name)]
        if shared:
            self.begin([0], shared)
            self.prepare(shared)
            # After all other rounds, however many rounds=auto has added.
            number = max(self.number, *(number for name in shared for number in self.todo[name]))
            self.round(self.sets[0], number, shared)
            self.finish(shared)
        self.report_failures()

    def is_ablation(self, name: str) -> bool:
        """Whether the point explains the lost efficiency of another one."""
        return bool(getattr(self.points[name], "explains", ""))

    def waves(self, names: Sequence[str]) -> list[list[int]]:
        """The numbers of the sets of each wave. The sets of a wave live at the same time."""
        job = self.job
        rounds, asked = job.counts
        # A set without a round would compile for nothing.
        asked = asked if job.automatic else max(1, min(asked, len({n for name in names for n in self.todo[name]})))
        if not job.live:
            return [[number] for number in range(asked)]
        points = [self.visited_points(number, names) for number in range(asked)]
        sets = affordable(points, job.memory_bytes)
        if asked > 1:
            fewer = f", because no more of the {asked} fit the memory that is free" if sets < asked else ""
            self.progress.say(f"{sets} sets of {processes_of(points[-1])} processes take turns{fewer}.")
        return [[*range(sets)]]

    def measure(self, names: list[str], auto: Automatic | None) -> None:
        """Measures the points that are not oversubscribed."""
        waves = self.waves(names)
        for at, wave in enumerate(waves):
            if auto is None:
                self.fixed_rounds(names, wave, at, len(waves))
                continue
            self.begin(wave, names)
            if self.automatic_rounds(auto, names, (at + 1) / len(waves), last=at == len(waves) - 1):
                break
        self.finish(names)

    def fixed_rounds(self, names: list[str], wave: list[int], at: int, waves: int) -> None:
        """The rounds of a wave in a run with a fixed number of rounds. at: number of the wave out of `waves`."""
        total = self.job.counts[0]
        numbers = sorted({n for name in names for n in self.todo[name] if waves == 1 or n * waves // total == at})
        if not numbers:
            return
        self.begin(wave, names)
        every = max(1, min(DOUBLE_EVERY, total // FEW))  # at least FEW rounds have the second clock
        one_by_one = total < FEW and len(wave) == waves == 1
        for some in [[name] for name in names] if one_by_one else [names]:
            self.prepare(some)
            if not one_by_one:  # else at the end, so that a reason that many points share is reported once
                self.report_failures()
            for i, number in enumerate(numbers):
                visited = [name for name in some if number in self.todo[name]]
                workers, last = self.sets[i % len(self.sets)], i >= len(numbers) - len(self.sets)
                self.round(workers, number, visited, every=every, last=last)

    def automatic_rounds(self, auto: Automatic, names: list[str], share: float, *, last: bool) -> bool:
        """The rounds of a wave, until intervals are narrow or the wave's share of the budget is spent.

        Returns whether that ends the run. last: no wave follows. The first rounds visit only points that a headline may
        rest on; ablations are compiled after them.
        """
        main: Sequence[str] = [name for name in names if not self.is_ablation(name)]
        visits, budget_s = main, share * auto.budget_s
        while visits:
            self.prepare(visits)
            self.report_failures()
            self.round_of_each_set(visits)
            look = auto.looked(self.records, len(self.sets), self.failed)
            auto.note(look, self.records, self.spent_s)
            visits = [name for name in look.visits if name in self.points]
            left_s = budget_s - self.spent_s - self.guess_s(main)  # the closing round, which checks the states
            if self.guess_s(visits) > left_s:  # leave out the ablations
                visits = [name for name in visits if name in main]
            if self.guess_s(visits) > left_s:
                break
        alive = [name for name in main if name not in self.failed]
        if not alive:  # every point has failed: a later start may look again
            return True
        self.round_of_each_set(alive, last=True)
        ends = "precise" if look.ended == "precise" else "budget" if last else ""  # "": the next wave goes on
        look = auto.looked(self.records, len(self.sets), self.failed)
        auto.note(look, self.records, self.spent_s, ends=ends, failed=self.failed)
        return bool(ends)

    def guess_s(self, names: Sequence[str]) -> float:
        """The seconds of one round in each set. A point without a round counts as the median point."""
        timed = {record.point: 2 * sum(record.block_s) for record in self.records if isinstance(record, RoundRecord)}
        usual = statistics.median(timed.values()) if timed else 0.0
        return len(self.sets) * sum(timed.get(name, usual) for name in names)

    def round_of_each_set(self, names: Sequence[str], *, last: bool = False) -> None:
        start = time.monotonic()
        for workers in self.sets:
            self.round(workers, self.number, names, last=last)
            self.number += 1
        self.spent_s += time.monotonic() - start

    def begin(self, wave: Sequence[int], names: Sequence[str]) -> None:
        """Starts the processes of a wave, instead of those of the one before."""
        self.end()
        cache = self.cache if self.job.live else None
        for number in wave:
            points = self.visited_points(number, names)
            self.sets.append(Workers(self.job, points, number=number, cache=cache, forks=self.forks))

    def finish(self, names: Iterable[str]) -> None:
        """Traces the points if --config.profile asks for it, and ends the processes."""
        if self.job.config.get("profile"):
            for name in names:
                # A failed point is not ready.
                if self.sets and name in self.sets[0].ready and not self.is_ablation(name):
                    self.trace(name)
        self.end()

    def end(self, *, kill: bool = False) -> None:
        while self.sets:
            workers = self.sets.pop()
            workers.kill() if kill else workers.close()

    def prepare(self, names: Iterable[str]) -> None:
        """The first set checks new points. Then the other sets compile the same programs, all at the same time."""
        names = [name for name in names if name not in self.failed]
        first = self.sets[0]
        new = [name for name in names if name not in self.checked and name not in first.ready]
        if all(
            name in workers.ready for workers in self.sets for name in names if self.visits_in(workers.number, name)
        ):
            return
        self.check(first, new)
        self.fit()
        # All processes begin at once. Then their answers are read, one after the other.
        for workers in self.sets:
            for name in self.known(workers, names):
                workers.send_ahead(name, self.again(name))
        for workers in self.sets:
            for name in self.known(workers, names):
                self.prepare_again(workers, name)
            for name in names:
                if name not in self.failed and name not in workers.ready and self.visits_in(workers.number, name):
                    self.prepare_new(workers, name)
        note_workers(self.job.run, self.sets)

    def visits_in(self, number: int, name: str) -> bool:
        """Whether set `number` measures the point. With rounds=auto, time goes to the headline: each further set would
        have to compile and warm up the ablations."""
        return not (self.is_ablation(name) and self.job.automatic and number >= ABLATION_SETS)

    def visited_points(self, number: int, names: Sequence[str]) -> list[Placed]:
        """The points that set `number` measures, so it has no processes for others."""
        return [self.points[name] for name in names if self.visits_in(number, name)]

    def known(self, workers: Workers, names: Sequence[str]) -> list[str]:
        """The points that another process has checked and this set has not prepared."""
        checked = [name for name in names if name in self.checked and name not in self.failed]
        return [name for name in checked if name not in workers.ready and self.visits_in(workers.number, name)]

    def check(self, workers: Workers, names: Sequence[str]) -> None:
        """The processes of a set compile and check at the same time. Then the block length of each point is found while
        nothing else runs. Cases and fed steps find it while they are prepared, so they are prepared one by one."""
        for name in names:
            self.references.make(workers, self.points[name])
        together = [name for name in names if self.paced_alone(name)]
        for name in names:
            if name not in together:
                self.prepare_new(workers, name)
        requests = {name: self.new(name, paced=False) for name in together}
        for name, request in requests.items():
            workers.send_ahead(name, request)
        for name, request in requests.items():
            self.prepare_new(workers, name, request)
        for name in names:
            # A program that needs more threads replaces its process, which loses the points that it had prepared.
            if name in self.checked and name not in workers.ready and name not in self.failed:
                self.prepare_again(workers, name)
            if self.paced_alone(name) and name in workers.ready and name not in self.steps:
                self.pace(workers, name)

    def paced_alone(self, name: str) -> bool:
        """Whether its block length is found after it is prepared."""
        point = self.points[name]
        return isinstance(point, Point) and (point.oversubscribed or INPUT.of(point.levers).kind == "device")

    def pace(self, workers: Workers, name: str) -> None:
        """Finds the block length of a point. A block of an oversubscribed point has one step."""
        if self.points[name].oversubscribed:
            self.steps[name] = 1
            return
        answer = self.attempt(workers, PACE, name, f"time {self.points[name].text}", messages.Pace(point=name))
        if answer is not None:
            self.steps[name] = answer.steps

    def fit(self) -> None:
        """Ends sets until each of the others can take as much memory as the first one has taken."""
        first, *others = self.sets
        # The first one has compiled, and the others have only started.
        while others and len(others) * (first.bytes - others[0].bytes) > memory.available():
            others.pop()
            self.sets.pop().close()

    def new(self, name: str, *, paced: bool = True) -> messages.Prepare:
        """The request to prepare a point for the first time. All points have the same kind of loss. The processes that
        start the run each find it, because none should wait while another compiles."""
        loss = next((record.loss for record in self.checked.values()), "")
        point, reference = self.points[name].to_json(), self.references.told(self.points[name])
        return messages.Prepare(point=point, loss=loss, paced=paced, reference=reference)

    def again(self, name: str) -> messages.PrepareAgain:
        """The request to prepare a point that another process has checked."""
        sha256, steps = self.checked[name].program_sha256, self.steps.get(name, 1)
        point, reference = self.points[name].to_json(), self.references.told(self.points[name])
        return messages.PrepareAgain(point=point, program_sha256=sha256, steps=steps, reference=reference)

    def prepare_again(self, workers: Workers, name: str) -> None:
        """A compiler that tries variants may make another program, which is then checked like a new point."""
        text = f"load {self.points[name].text} in set {workers.number + 1}"
        answer = self.attempt(workers, AGAIN, name, text, self.again(name))
        if answer is not None and answer.same:
            first = self.checked[name]
            checked_by = first.checked_by or first.worker
            self.job.run.append(dataclasses.replace(first, worker=workers.name(name), checked_by=checked_by))
            workers.ready.add(name)

    def prepare_new(self, workers: Workers, name: str, request: messages.Prepare | None = None) -> None:
        """request: None: `new`."""
        request = request or self.new(name)
        answer = self.attempt(workers, "prepare", name, f"compile and check {self.points[name].text}", request)
        if answer is not None:
            record = self.append(answer)
            if isinstance(record, PointRecord):
                self.checked.setdefault(name, record)
                if request.paced:
                    self.steps.setdefault(name, answer.steps)
            workers.ready.add(name)

    def round(
        self, workers: Workers, number: int, names: Sequence[str], *, every: int = DOUBLE_EVERY, last: bool = False
    ) -> None:
        """A set visits these points in random order. every: one of this number of visits has the second clock. last:
        the last round of the set."""
        names = [name for name in names if name not in self.failed and self.visits_in(workers.number, name)]
        self.random_order.shuffle(names)
        for name in names:
            self.visit(workers, name, number, every=every, last=last)

    def visit(self, workers: Workers, name: str, number: int, *, every: int, last: bool) -> None:
        point = self.points[name]
        if name not in workers.ready and name not in self.failed:  # its process died with another point
            if self.known(workers, [name]):
                self.prepare_again(workers, name)
            if name not in workers.ready and name not in self.failed:
                self.prepare_new(workers, name)
        if name not in workers.ready:
            return
        visit = self.visits[workers.number, name]
        if self.job.automatic:  # not in the first visits, because the ablations wait for them
            # An ablation has too few rounds for an interval of its second clock, so one set shows that it agrees. Few
            # sets need the last visits for an interval of the second clock.
            due = visit % AUTO_DOUBLE_EVERY == 1 or (last and len(self.sets) < FEW)
            double = due and not (workers.number and self.is_ablation(name))
        else:
            double = visit % every == 0
        trains = isinstance(point, Point)
        steps = self.steps.get(name) if trains else None  # blocks of other lengths are not comparable
        double = double and not point.oversubscribed
        request = messages.Round(point=name, round=number, double=double, steps=steps, last=last and trains)
        self.visits[workers.number, name] += 1
        answer = self.attempt(workers, "round", name, f"round {number + 1}: {point.text}", request)
        if answer is not None:
            record = of_kind(RoundRecord, self.append(answer))
            self.steps[name] = record.steps
            self.progress.measured(record)

    def append(self, answer: messages.Recorded) -> schema.Record:
        record = self.job.run.append(answer.record)
        self.records.append(record)
        return record

    def trace(self, name: str) -> None:
        """Traces a point. Runs last, so that no after-effect of the tracer reaches a measurement."""
        folder: Path = self.job.run.path / "profiles" / name.replace("/", "-")
        request = messages.Profile(point=name, folder=str(folder.resolve()))
        answer = self.attempt(self.sets[0], "profile", name, f"trace {self.points[name].text}", request)
        if answer is not None:
            self.append(answer)

    def attempt(
        self, workers: Workers, kind: str, name: str, text: str, request: messages.Request[Answer]
    ) -> Answer | None:
        """The answer of a set; None if the point fails. Then the failure is recorded."""
        self.progress.begin(kind, name, text)
        try:
            answer = workers.ask(name, request)
        except WorkerError as error:
            self.fail(self.points[name], error)
            return None
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
        self.job.run.append(failure_of(point, self.job.config["experiment"], error))
        self.failed.add(point.point)
        self.progress.drop(point.point)
        if self.job.followers and self.job.followers.missing:
            raise UserError(
                f"{self.job.followers.missing}, and only its launcher can start it again: finished measurements are "
                "kept, and the same command continues."
            ) from error
