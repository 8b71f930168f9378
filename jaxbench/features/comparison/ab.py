# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares two settings, commits or releases of one experiment, until the verdict is clear, in pairs of processes.

A pair is one process of A and one of B for each device count. On CPUs both run at the same time and take turns in each
round. An accelerator belongs to one process at a time, so there the two run in sequence, in an order that alternates
from pair to pair. Both arms are ordinary run folders, `a` and `b`, which a second start continues.

The processes of an arm run the package and the experiment of its commit, with the packages of its release. This process
runs the working tree, and makes the plan and the settings of both arms.
"""

from __future__ import annotations

import contextlib
import copy as copy_lib
import dataclasses
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console
from rich.live import Live
from rich.text import Text

from jaxbench import config as config_lib
from jaxbench.core import schema
from jaxbench.core.store import MANIFEST, RunFolder, write_manifest
from jaxbench.digits import counted
from jaxbench.environments.release import Release
from jaxbench.errors import UserError, of_kind
from jaxbench.features.comparison import arm_code, comparable, judge, other_commit, phases, sequential
from jaxbench.features.comparison.arm_code import ArmCode
from jaxbench.features.comparison.comparison import Comparison
from jaxbench.features.comparison.judge import CANNOT_TELL, Answers, Metric
from jaxbench.features.comparison.other_commit import OTHER_PROTOCOL, OtherCommit
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Prepare, Recorded, Request, Round
from jaxbench.records.manifest import Manifest
from jaxbench.sweep import run as runner
from jaxbench.sweep.progress import format_s, heartbeat
from jaxbench.sweep.references import References
from jaxbench.sweep.start import Start, programs_of
from jaxbench.sweep.workers import Workers, note_workers

Clock = Callable[[], float]


class ArmFailed(UserError):
    """One arm cannot be measured. arm: "A" or "B"."""

    def __init__(self, message: str, arm: str):
        super().__init__(message)
        self.arm = arm


@contextlib.contextmanager
def _of_arm(name: str) -> Iterator[None]:
    """Adds the arm to a UserError."""
    try:
        yield
    except ArmFailed:
        raise
    except UserError as error:
        raise ArmFailed(str(error), name) from error


def decided(answers: Answers) -> bool:
    return answers.overall.verdict != CANNOT_TELL


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When to stop.

    Attributes:
      seconds: no new pair starts after these.
      metric: of the step, or of `phases`.
      margin: as in `judge`.
      enough: whether a look may end the measurement.
      alpha: the chance of a false alarm of the metric at any look.
    """

    seconds: float
    metric: Metric
    margin: float
    enough: Callable[[Answers], bool] = decided
    alpha: float = judge.ALPHA

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UserError(f"--budget_s={self.seconds:g} leaves no time for a pair: use seconds, such as 600.")


@dataclass(frozen=True)
class Side:
    """What one arm measures. text: as it was typed. ref: "ref:NAME" for a commit; "" for the working tree.

    release: the packages that its processes use; empty: those of this process.
    """

    config: ConfigDict
    text: str = ""
    ref: str = ""
    release: Release = Release()


Outcome = tuple[Comparison, str]  # of the finished pairs; and why measuring ended, as a clause


class _Arm:
    """One side: its run folder, its points and the processes that measure them."""

    def __init__(
        self,
        name: str,
        experiment: str,
        side: Side,
        code: ArmCode,
        workdir: Path,
        console: Console,
        stack: ExitStack,
    ):
        """code: what its processes run."""
        config, checkout = side.config, code.checkout
        self.title = f"{name} ({side.text or 'default settings'})"
        if config.measure.processes != 1:
            raise UserError(
                f"--config.measure.processes={config.measure.processes} has no effect on ab, which starts processes in "
                "pairs: leave it out, or raise --budget_s."
            )
        self.name = f"{name} ({code})" if code != ArmCode() else name
        self.rounds, self.code = int(config.measure.rounds), code
        self.compiles = config.measure.compile == config_lib.FRESH  # in each pair
        self.asked = runner.ask(experiment, config, console)
        copy = OtherCommit.of(checkout, experiment, config) if checkout else None  # may refuse, so before the folder
        self.notes = (*(copy.notes if copy else ()), *code.notes)
        self.folder = RunFolder.begin(workdir / name.lower(), config_lib.plain(config))
        stack.callback(self.folder.close)
        self.references = References(self.folder.path, self.asked.points)
        stack.callback(self.references.close)
        if (self.folder.path / MANIFEST).exists():  # continued: pairs of two commits must not mix in one arm
            other_commit.require_same_commit(self.folder.path, self.folder.manifest()["git"], checkout)
            arm_code.require_same_environment(self.folder.path, self.folder.manifest(), code.environment)
        manifest = runner.session_of(self.asked, experiment) | (copy.manifest if copy else Manifest())
        manifest |= code.manifest(self.asked.machine)
        session = runner.begin_session(self.folder, manifest)  # refuses another machine or other software
        self.job = runner.job_of(self.folder, self.asked, config, experiment, session=session)
        programs, not_kept = programs_of(config.measure.compile, self.asked.machine)
        self.job = dataclasses.replace(self.job, programs=programs, not_kept=not_kept)
        if not_kept and not self.compiles:
            self.notes = (*self.notes, not_kept.rstrip("."))
        if copy:
            self.job = dataclasses.replace(self.job, experiment=copy.experiment, source=copy.source)
        if code.environment:
            self.job = dataclasses.replace(self.job, source=code.copy, python=code.python)
        self.start = Start(self.job)
        stack.callback(self.start.close)
        rounds = [record for record in self.folder.records() if isinstance(record, schema.RoundRecord)]
        self.pairs = self._finished(rounds)
        self._steps = {record.point: record.steps for record in rounds}

    def _finished(self, rounds: list[schema.RoundRecord]) -> int:
        """The number of pairs in which every point has all rounds."""
        have: dict[str, set[int]] = {point.point: set() for point in self.asked.points}
        for record in rounds:
            if record.point in have:
                have[record.point].add(record.round)
        first_missing = min(next(i for i in range(len(seen) + 1) if i not in seen) for seen in have.values())
        return first_missing // self.rounds  # a pair without its last rounds is measured again

    @property
    def measured(self) -> tuple[object, ...]:
        """Equal for arms that measure the same."""
        checkout, environment = self.code.checkout, self.code.environment
        return self.job.config, checkout and checkout.commit, environment and environment.name

    @property
    def knows_steps(self) -> bool:
        """Whether an earlier pair has found the number of steps in a block for every point."""
        return all(point.point in self._steps for point in self.asked.points)

    def ask(self, workers: Workers, point: str, request: Request[Recorded]) -> schema.Record:
        """A worker's answer as a record, which is appended to the arm's folder.

        Raises UserError if the point cannot be measured, because with one arm missing there is nothing to compare.
        """
        try:
            with self._understood():
                record = workers.ask(point, request).record
        except WorkerError as error:
            # Another commit may not understand the setup or the request.
            if self.code.checkout and error.stage == "start":
                raise self._not_understood(str(error)) from error
            said = f"{self.name} cannot be measured: {point} failed at {error.stage} ({error})."
            raise ArmFailed(said, self.name[:1]) from error
        self.folder.append(record)
        return record

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        """Raises UserError for an answer of the other commit that this version does not know."""
        try:
            yield
        except ValueError as error:
            if not self.code.checkout:
                raise
            raise self._not_understood(str(error)) from error

    def _not_understood(self, reason: str) -> UserError:
        return ArmFailed(f"{self.name} cannot be measured ({reason}): {OTHER_PROTOCOL}.", self.name[:1])

    def round(self, workers: Workers, point: str, number: int) -> None:
        """Measures a round with the block length of the first pair: blocks of different lengths are not comparable."""
        begun_s = time.monotonic()
        record = self.ask(workers, point, Round(point=point, round=number, steps=self._steps.get(point)))
        self.start.ledger.measured_s += time.monotonic() - begun_s
        self._steps[point] = of_kind(schema.RoundRecord, record).steps

    def prepare(self, workers: Workers) -> None:
        with self._understood():
            workers.wait_ready()
        for point in self.asked.points:
            self.references.make(workers, point)
            told = self.references.told(point)
            self.ask(workers, point.point, Prepare(point=point.to_json(), reference=told))
        note_workers(self.folder, [workers], self.start.preparation())

    def done(self, pairs: int) -> None:
        """Writes the ledger and the number of rounds so far as the planned one: the folder counts as a finished run."""
        manifest = self.folder.manifest()
        manifest["plan"]["rounds"] = self.rounds * pairs
        for point in manifest["plan"]["points"]:  # a point's own number wins, if the plan has one
            point["rounds"] = self.rounds * pairs
        manifest["preparation"] = self.start.preparation()
        write_manifest(self.folder.path, manifest)


def run(
    experiment: str,
    sides: tuple[Side, Side],
    workdir: Path,
    budget: Budget,
    console: Console,
    clock: Clock = time.monotonic,
) -> Outcome:
    """Measures pairs until the overall verdict is reached or the budget is spent. Raises UserError."""
    with ExitStack() as stack:
        codes = []
        for name, side in zip("AB", sides, strict=True):
            with _of_arm(name):
                codes.append(stack.enter_context(arm_code.opened(side.ref, side.release, experiment, console)))
        if any(code != ArmCode() for code in codes):
            for name, code in zip("AB", codes, strict=True):
                console.print(f"{name} is {code}.", highlight=False, soft_wrap=True)
        arms = []
        compiles = budget.metric == phases.METRICS["compile"] or any(code != ArmCode() for code in codes)
        sides = (as_measured(sides[0], compiles=compiles), as_measured(sides[1], compiles=compiles))
        for name, side, code in zip("AB", sides, codes, strict=True):
            with _of_arm(name):
                arms.append(_Arm(name, experiment, side, code, workdir, console, stack))
        if arms[0].rounds != arms[1].rounds:
            raise UserError(
                f"--config.measure.rounds is {arms[0].rounds} in A and {arms[1].rounds} in B: it must be equal in both."
            )
        for note in dict.fromkeys(note for arm in arms for note in arm.notes):
            console.print(f"{note}.", style="yellow", highlight=False, soft_wrap=True)
        if arms[0].measured == arms[1].measured:
            console.print("A and B are identical: a difference between them would be a false alarm.")
        return _measure(arms, budget, console, clock, random.Random(int(arms[0].job.config["seed"])))


def as_measured(side: Side, *, compiles: bool) -> Side:
    """The side without the points that explain an efficiency, which no verdict needs: they took most of a pair.

    compiles: each of its processes compiles its programs, because a kept program says nothing about the compiler.
    """
    config = copy_lib.deepcopy(side.config)
    if config.get("explain") == "on":  # cases have nothing to explain, and "more" was asked for
        config.explain = "off"
    if compiles:
        config.measure.compile = config_lib.FRESH
    return dataclasses.replace(side, config=config)


def _measure(arms: list[_Arm], budget: Budget, console: Console, clock: Clock, order: random.Random) -> Outcome:
    """Measures pair after pair until a look decides or the budget is spent."""
    begun, longest, pairs, text, warned = clock(), 0.0, min(arm.pairs for arm in arms), "", False
    lengths: deque[float] = deque(maxlen=2)  # of the last pairs: the first one may be slower than all others
    # Refreshed by hand: a refreshing thread would run on the cores that are measured.
    with Live(console=console, auto_refresh=False, transient=True) as line, heartbeat(console, lambda: text):
        while True:
            start = clock()
            if pairs:
                found, why = _outcome(arms, pairs, budget, start - begun, longest)
                if why:
                    return found, why
            look = sequential.next_look(pairs) or 0
            left_s = (look - pairs) * longest
            if start - begun + left_s > budget.seconds and not warned:
                console.print(f"The budget is too short: {_needs(pairs, longest)}.", highlight=False, soft_wrap=True)
                warned = True
            left = f"in {format_s(left_s)}" if longest else f"budget {format_s(budget.seconds)}"
            text = f"pair {pairs + 1}, next verdict after pair {look}, {left}"
            line.update(Text(text), refresh=True)
            _pair(arms, pairs, order)
            pairs += 1
            for arm in arms:
                arm.done(pairs)
            lengths.append(clock() - start)
            longest = max(lengths)  # not their mean, so that the budget is kept rather than filled


def _outcome(arms: list[_Arm], pairs: int, budget: Budget, seconds: float, longest: float) -> Outcome:
    """The outcome of the first `pairs` pairs. An interrupted pair is ignored. seconds, longest: as in `_ended`."""
    a, b = (comparable.read(arm.folder.path) for arm in arms)
    # Whatever differs between the arms was asked for, so all of it is declared.
    across = tuple({**comparable.differences(a, b), **comparable.separating(a, b)})
    if any(arm.code != ArmCode() for arm in arms):  # a commit or a release may change the model, and that is reported
        implied = comparable.follows(across)
        across = (*across, *(name for name in comparable.models(a, b, across) if name not in implied))
    pair = comparable.pair(a, b, across)
    # An interrupted pair has processes of one arm, or too few rounds: only whole pairs count.
    left, right = ({n: sample.only(range(pairs)) for n, sample in side.items()} for side in (pair.a, pair.b))
    steps = judge.metric_named(budget.metric.name if budget.metric.name in judge.METRICS else "step_s")
    answers = sequential.judge_pairs(left, right, steps, margin=budget.margin, alpha=budget.alpha)
    starts = [phases.of_pairs(arm.folder, pairs) for arm in arms]
    of_phases = phases.judged(starts[0], starts[1], margin=max(budget.margin, phases.MARGIN))
    if budget.metric is not steps:
        answers = phases.judged_by(starts[0], starts[1], budget.metric, margin=budget.margin, alpha=budget.alpha)
    software = tuple(dict.fromkeys((*(note for arm in arms for note in arm.notes), *pair.software)))
    found = Comparison(
        a=arms[0].title,
        b=arms[1].title,
        answers=answers,
        left_out=pair.left_out,
        software=software,
        across=across,
        phases=of_phases,
    )
    return found, _ended(answers, pairs, seconds, longest, budget)


def _ended(answers: Answers, pairs: int, seconds: float, longest: float, budget: Budget) -> str:
    """Why no more pairs are measured; "" to go on. seconds: since the start. longest: of the last two
    pairs."""
    if pairs in sequential.LOOKS and budget.enough(answers):
        return f"the verdict was reached after {pairs} pairs"
    if sequential.next_look(pairs) is None:
        return f"{pairs} pairs is the maximum"
    if seconds + longest > budget.seconds:
        spent = f"no further pair fits into the budget of {format_s(budget.seconds)} after {counted(pairs, 'pair')}"
        return f"{spent}: {_needs(pairs, longest)} with the same --workdir"
    return ""


def _needs(pairs: int, longest: float) -> str:
    """A clause: "one pair takes 5 min 0 s, and the next verdict needs 6 pairs: add --budget_s=1800"."""
    look = sequential.next_look(pairs) or 0
    wanted = 60 * math.ceil(look * longest / 60)
    needed = f"and the next verdict needs {counted(look, 'pair')}"
    return f"one pair takes {format_s(longest)}, {needed}: add --budget_s={wanted}"


def _pair(arms: list[_Arm], number: int, order: random.Random) -> None:
    """Measures pair `number`, counted from 0."""
    together = all(arm.asked.machine["platform"] == "cpu" for arm in arms)
    # Alternating, so that warming up or slowing down does not always favour the same arm.
    groups = [arms] if together else [[arm] for arm in (arms if number % 2 == 0 else arms[::-1])]
    for group in groups:
        # The threads are the outer context: an interrupt must end the processes first, for the threads wait for them.
        with ThreadPoolExecutor() as threads, ExitStack() as stack:
            # Numbered by pair, because records with one worker name must come from one process.
            pools = [
                Workers(
                    arm.job,
                    arm.asked.points,
                    number=number,
                    programs=arm.start.variables(number),
                    spend=arm.start.spend(number),
                )
                for arm in group
            ]
            workers = [stack.enter_context(pool) for pool in pools]
            # Both at the same time, unless the block length is still unknown, because finding it times a step; or the
            # phases are compared, because both would trace and compile on the same cores.
            if all(arm.knows_steps and not arm.compiles for arm in group):
                list(threads.map(_Arm.prepare, group, workers))  # `list` waits, and raises what a thread raised
            else:
                for arm, pool in [*zip(group, workers, strict=True)][:: 1 if number % 2 == 0 else -1]:
                    arm.prepare(pool)
            rounds = group[0].rounds
            for round_number in range(rounds * number, rounds * (number + 1)):
                pairs = zip(group, workers, strict=True)
                todo = [(arm, pool, point.point) for arm, pool in pairs for point in arm.asked.points]
                order.shuffle(todo)  # no point or arm always follows the same other one
                for arm, pool, point in todo:
                    arm.round(pool, point, round_number)
