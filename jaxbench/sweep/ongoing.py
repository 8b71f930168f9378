# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What one start of a sweep has and knows: its sets of processes, the state of each point, and the records so far."""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from collections.abc import Sequence

from absl import logging

from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.core.schema import PointRecord, RoundRecord
from jaxbench.errors import UserError
from jaxbench.processes import messages
from jaxbench.processes.client import WorkerError
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.messages import Answer
from jaxbench.records.preparation import sentence
from jaxbench.sweep.job import SweepJob
from jaxbench.sweep.progress import DOUBLE, SweepProgress
from jaxbench.sweep.references import References
from jaxbench.sweep.start import Start
from jaxbench.sweep.states import Event, States
from jaxbench.sweep.workers import Workers, failure_of, note_preparation

MEASURES = ("round", DOUBLE, "profile")  # kinds of work that are not preparation
ABLATION_SETS = 3  # sets of processes that measure ablations: as few as show how processes differ


class OngoingSweep:
    """One start of a sweep.

    Attributes:
      steps: K, the steps of a block, of each point with a known block length.
      checked: the records of the points that this start has checked.
      number: the next round of rounds=auto.
      visits: of each set to each point.
      sets: the sets of processes that are alive.
      spent_s: in rounds, which a budget limits.
      start: where compiled programs are kept, and what preparing has cost.
    """

    def __init__(
        self,
        job: SweepJob,
        progress: SweepProgress,
        points: Sequence[Point],
        todo: dict[str, list[int]],
        records: Sequence[schema.Record],
    ):
        self.records = [*records]
        rounds = [record for record in records if isinstance(record, RoundRecord)]
        self.job, self.progress, self.todo = job, progress, todo
        self.steps = {record.point: record.steps for record in rounds}
        self.number = max((record.round for record in rounds), default=-1) + 1
        self.points = {point.point: point for point in points}
        self.random_order = random.Random(f"{job.config['seed']}/{job.session}")  # a continued run has another order
        self.states = States()
        self.checked: dict[str, PointRecord] = {}
        self.visits: Counter[tuple[int, str]] = Counter()
        self.sets: list[Workers] = []
        self.start = Start(job)
        self.references = References(job.run.path, points)
        # Not for cases: the libraries that a fork has loaded use one thread, and NumPy's kernels are measured on more.
        forks = job.live and job.config.get("measures") != "cases"
        self.forks = ForkServers(["jaxbench.features.ablations.recipe"]) if forks else None
        self.spent_s = job.automatic.spent_s if job.automatic else 0.0
        self._unreported: dict[str, list[str]] = {}  # failed points by reason

    def __enter__(self) -> OngoingSweep:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Kills the processes after an exception, such as an interrupt."""
        self.end(kill=kind is not None)
        if self.forks:
            self.forks.close()
        if lost := self.start.close():
            self.progress.say(lost)
        self.references.close()
        if kind is None:
            self._note_preparation()

    def _note_preparation(self) -> None:
        preparation = self.start.preparation()
        note_preparation(self.job.run, preparation)
        if said := sentence(preparation):
            self.progress.say(said)

    def is_ablation(self, name: str) -> bool:
        """Whether the point explains the lost efficiency of another one."""
        return bool(getattr(self.points[name], "explains", ""))

    def measures(self, number: int, name: str) -> bool:
        """Whether set `number` measures the point. With rounds=auto, time goes to the headline: each further set would
        have to compile and warm up the ablations."""
        return not (self.is_ablation(name) and self.job.automatic and number >= ABLATION_SETS)

    def points_of(self, number: int, names: Sequence[str]) -> list[Point]:
        """The points that set `number` measures, so it has no processes for others."""
        return [self.points[name] for name in names if self.measures(number, name)]

    def begin(self, wave: Sequence[int], names: Sequence[str]) -> None:
        """Starts the processes of a wave, instead of those of the one before. wave: the numbers of its sets."""
        self.end()
        for number in wave:
            points = self.points_of(number, names)
            self.states.begin(number, [point.point for point in points])
            lose = functools.partial(self.states.happened, Event.LOSE, number)
            programs, spend = self.start.variables(number), self.start.spend(number)
            self.sets.append(
                Workers(self.job, points, number=number, programs=programs, forks=self.forks, lose=lose, spend=spend)
            )

    def end(self, *, kill: bool = False) -> None:
        """Ends the processes of all sets."""
        while self.sets:
            self.end_last(kill=kill)

    def end_last(self, *, kill: bool = False) -> None:
        workers = self.sets.pop()
        self.states.end(workers.number)
        workers.kill() if kill else workers.close()

    def append(self, answer: messages.Recorded) -> schema.Record:
        record = self.job.run.append(answer.record)
        self.records.append(record)
        return record

    def attempt(
        self, workers: Workers, kind: str, name: str, text: str, request: messages.Request[Answer]
    ) -> Answer | None:
        """The answer of a set; None if the point fails. Then the failure is recorded, and the other points go on.

        kind: of work, and text: what the display says of it (`SweepProgress.begin`).
        """
        self.progress.begin(kind, name, text)
        begun_s = time.monotonic()
        try:
            answer = workers.ask(name, request)
        except WorkerError as error:
            self._fail(workers, self.points[name], error)
            return None
        finally:
            if kind in MEASURES:
                self.start.ledger.measured_s += time.monotonic() - begun_s
            self.progress.preparation = self.start.ledger.line()
        self.progress.end(kind, name)
        return answer

    def report_failures(self) -> None:
        """Warns of each reason once, with the points that failed for it."""
        for reason, names in self._unreported.items():
            first, more = names[0], len(names) - 1
            subject = first if not more else f"{first} and {more} more point{'s' if more > 1 else ''}"
            logging.warning("%s failed: %s", subject, reason)
        self._unreported.clear()

    def _fail(self, workers: Workers, point: Point, error: WorkerError) -> None:
        """Records that a point cannot be measured. Raises UserError if no other point can be either."""
        if error.stage == "model":  # the model itself cannot be built: no point can be measured
            raise UserError(str(error)) from error
        if not error.unsupported:  # the report shows these once per strategy
            self._unreported.setdefault(str(error), []).append(point.point)
        self.job.run.append(failure_of(point, self.job.config["experiment"], error))
        self.states.happened(Event.FAIL, workers.number, point.point)
        self.progress.drop(point.point)
        if self.job.followers and self.job.followers.missing:
            raise UserError(
                f"{self.job.followers.missing}, and only its launcher can start it again: finished measurements are "
                "kept, and the same command continues."
            ) from error
