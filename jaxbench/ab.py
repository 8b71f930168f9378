# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two settings of one experiment against each other, in pairs of fresh processes, until the verdict is clear.

Each pair is one process of A and one of B for each device count. On CPUs both are alive and take turns in each round;
an accelerator belongs to one process at a time, so there the two follow each other, in an order that alternates from
pair to pair. Both arms are ordinary run folders, `a` and `b`: what is measured is kept, and a second start continues.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict
from rich.console import Console
from rich.live import Live
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench.errors import UserError
from jaxbench.records import schema
from jaxbench.records.store import MANIFEST, RunFolder, write_json
from jaxbench.runner import run as runner
from jaxbench.runner import sweep
from jaxbench.runner.client import WorkerError
from jaxbench.runner.progress import format_s
from jaxbench.verdicts import comparable, sequential
from jaxbench.verdicts.judge import CANNOT_TELL, Answers
from jaxbench.verdicts.metric import Metric

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """seconds: after which no pair is begun. margin: as in `judge`."""

    seconds: float
    metric: Metric
    margin: float


@dataclass(frozen=True)
class Outcome:
    """answers: of the pairs that were finished. across: what A and B differ in. left_out: the points that
    are not compared. why: why measuring ended."""

    answers: Answers
    across: tuple[str, ...]
    left_out: tuple[comparable.LeftOut, ...]
    why: str


class _Arm:
    """One side: its run folder, its points and the processes that measure them."""

    def __init__(
        self, name: str, experiment: str, config: ConfigDict, workdir: Path, console: Console, stack: ExitStack
    ):
        if config.measure.processes != 1:
            said = f"--config.measure.processes={config.measure.processes} has no effect on ab"
            raise UserError(f"{said}, which starts processes in pairs: leave it out, and give more --budget_s.")
        self.name, self.rounds = name, int(config.measure.rounds)
        self.asked = runner.ask(experiment, config, console)
        self.folder = RunFolder.begin(workdir / name.lower(), config_lib.plain(config))
        stack.callback(self.folder.close)
        session = runner.begin_session(self.folder, runner.session_of(self.asked, experiment))
        self.job = runner.job_of(self.folder, self.asked.points, config, experiment, session=session)
        rounds = [record for record in self.folder.records() if isinstance(record, schema.RoundRecord)]
        self.pairs = self._finished(rounds)
        self._steps = {record.point: record.steps for record in rounds}

    def _finished(self, rounds: list[schema.RoundRecord]) -> int:
        """How many pairs every point has all rounds of."""
        have: dict[str, set[int]] = {point.point: set() for point in self.asked.points}
        for record in rounds:
            if record.point in have:
                have[record.point].add(record.round)
        first_missing = min(next(i for i in range(len(seen) + 1) if i not in seen) for seen in have.values())
        return first_missing // self.rounds

    @property
    def knows_steps(self) -> bool:
        """Whether an earlier pair has found how many steps a block has, of every point."""
        return all(point.point in self._steps for point in self.asked.points)

    def ask(self, workers: sweep.Workers, point: str, request: dict[str, Any]) -> Any:
        """Raises UserError when the point cannot be measured: with one arm missing there is nothing to compare."""
        try:
            answer = workers.ask(point, request)
        except WorkerError as error:
            raise UserError(f"{self.name} cannot be measured: {point} failed at {error.stage} ({error}).") from error
        record = schema.from_json(answer["record"])
        self.folder.append(record)
        return record

    def round(self, workers: sweep.Workers, point: str, number: int) -> None:
        """With as many steps in a block as in the first pair: blocks of another length would be another measure."""
        known = {"steps": self._steps[point]} if point in self._steps else {}
        record = self.ask(workers, point, {"do": "round", "point": point, "round": number, **known})
        self._steps[point] = record.steps

    def prepare(self, workers: sweep.Workers) -> None:
        workers.wait_ready()
        todo = {point.point for point in self.asked.points}
        while todo:  # a point that asks for another process takes what its neighbours had prepared with it
            for point in self.asked.points:
                if point.point in todo:
                    self.ask(workers, point.point, {"do": "prepare", "point": point.to_json()})
            todo = workers.lost()

    def done(self, pairs: int) -> None:
        """Says in the manifest how many rounds there are, so that the folder reads as a finished run."""
        manifest = self.folder.manifest()
        manifest["plan"]["rounds"] = self.rounds * pairs
        write_json(self.folder.path / MANIFEST, manifest)


def run(
    experiment: str, configs: tuple[ConfigDict, ConfigDict], workdir: Path, budget: Budget, console: Console,
    clock: Clock = time.monotonic,
) -> Outcome:  # fmt: skip
    """Measures pairs until the overall verdict is reached or the budget is spent. Raises UserError."""
    with ExitStack() as stack:
        arms = []
        for name, config in zip("AB", configs, strict=True):
            arms.append(_Arm(name, experiment, config, workdir, console, stack))
        if arms[0].rounds != arms[1].rounds:
            said = f"--config.measure.rounds is {arms[0].rounds} in A and {arms[1].rounds} in B"
            raise UserError(f"{said}: both processes of a pair have the same.")
        if config_lib.plain(configs[0]) == config_lib.plain(configs[1]):
            console.print(
                "A and B are the same: this shows how often this machine finds a difference where there is none."
            )
        signal.signal(signal.SIGTERM, runner.interrupt)
        return _measure(arms, budget, console, clock, random.Random(int(arms[0].job.config["seed"])))


def _measure(arms: list[_Arm], budget: Budget, console: Console, clock: Clock, order: random.Random) -> Outcome:
    begun, longest, pairs = clock(), 0.0, min(arm.pairs for arm in arms)
    # Refreshed by hand: a refreshing thread would run on the cores that are measured.
    with Live(console=console, auto_refresh=False, transient=True) as line:
        while True:
            start = clock()
            if pairs:
                outcome = _outcome(arms, pairs, budget, start - begun + longest)
                if outcome.why:
                    return outcome
            left = format_s(max(0.0, budget.seconds - (start - begun)))
            said = f"pair {pairs + 1}, next look after {sequential.next_look(pairs)}, at most {left} left"
            line.update(Text(said), refresh=True)
            _pair(arms, pairs, order)
            pairs += 1
            for arm in arms:
                arm.done(pairs)
            longest = max(longest, clock() - start)


def _outcome(arms: list[_Arm], pairs: int, budget: Budget, seconds: float) -> Outcome:
    """As of so many pairs: what an interrupted one left is not used. seconds: as in `_ended`."""
    a, b = (comparable.read(arm.folder.path) for arm in arms)
    across = tuple({**comparable.differences(a, b), **comparable.places(a, b)})
    pair = comparable.pair(a, b, across)
    left, right = (sequential.first(side, pairs) for side in (pair.a, pair.b))
    answers = sequential.judge(left, right, budget.metric, margin=budget.margin)
    return Outcome(answers, across, pair.left_out, _ended(answers, pairs, seconds, budget))


def _ended(answers: Answers, pairs: int, seconds: float, budget: Budget) -> str:
    """Why no further pair is measured; "" if one is. seconds: since the start, when it will have ended."""
    if pairs in sequential.LOOKS and answers.overall.verdict != CANNOT_TELL:
        return f"the verdict was reached after {pairs} pairs"
    if sequential.next_look(pairs) is None:
        return f"{pairs} pairs are the most"
    if seconds > budget.seconds:
        return f"the budget of {format_s(budget.seconds)} is spent after {pairs} pairs"
    return ""


def _pair(arms: list[_Arm], number: int, order: random.Random) -> None:
    """Measures the pair of that number, from 0 on."""
    together = all(arm.asked.machine["platform"] == "cpu" for arm in arms)
    groups = [arms] if together else [[arm] for arm in (arms if number % 2 == 0 else arms[::-1])]
    for group in groups:
        # Threads outside: an interrupt ends the processes first, for whose answers the threads wait.
        with ThreadPoolExecutor() as threads, ExitStack() as stack:
            workers = [stack.enter_context(_renumbered(arm, number)) for arm in group]
            # Both at once, except where the length of a block is still to be found, for which a step is timed.
            each = threads.map if all(arm.knows_steps for arm in group) else map
            list(each(_Arm.prepare, group, workers))
            rounds = group[0].rounds
            for round_number in range(rounds * number, rounds * (number + 1)):
                todo = [(arm, own, p.point) for arm, own in zip(group, workers, strict=True) for p in arm.asked.points]
                order.shuffle(todo)
                for arm, own, point in todo:
                    arm.round(own, point, round_number)


def _renumbered(arm: _Arm, number: int) -> sweep.Workers:
    """Fresh processes whose names say which pair they are of: records of one name are of one process."""
    return sweep.Workers(arm.job, arm.asked.points, begun=number)
