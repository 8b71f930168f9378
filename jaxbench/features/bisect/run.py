# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares versions with the oldest one, by the rule of `ab`, until the first slow one is known.

bisect.json     the answer so far: written after each comparison, and read by a second start
versions/NAME/  one comparison each: the arms of `ab`, or pairs.jsonl of a program
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.core.store import write_json
from jaxbench.errors import UserError
from jaxbench.features.bisect import page, program, search
from jaxbench.features.bisect.page import Found
from jaxbench.features.bisect.search import SKIPPED, Bisection, Compare, Compared
from jaxbench.features.bisect.versions import End, Version
from jaxbench.features.comparison import ab, phases
from jaxbench.features.comparison.judge import CANNOT_TELL, Answers, Metric
from jaxbench.sweep.progress import working

MORE = 2  # a comparison that cannot tell gets its seconds this many times
ONCE_S = 1e-9  # a size has no noise, so one pair decides


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is bisected.

    Attributes:
      ends: the oldest and the newest version, as typed.
      versions: from one to the other, oldest first.
      experiment: its name or path; "" for a program.
      command: the program that prints a number; "" for an experiment.
      metric: what is compared.
      margin: the relative difference that counts as none.
      seconds: of each comparison, after which no new pair starts.
    """

    ends: tuple[End, End]
    versions: Sequence[Version]
    experiment: str
    command: str
    metric: Metric
    margin: float
    seconds: float

    @property
    def question(self) -> dict[str, object]:
        """What must be equal for a folder to be continued."""
        first, last = (end.text for end in self.ends)
        about = {"experiment": self.experiment, "run": self.command, "metric": self.metric.name}
        return {"from": first, "to": last, **about, "margin": self.margin}


def run(asked: Asked, config: ConfigDict | None, workdir: Path, console: Console) -> Found:
    """Bisects. config: of the experiment; None for a program. Raises UserError."""
    versions, known = asked.versions, _known(asked, workdir)
    most = search.comparisons(len(versions))
    console.print(
        f"{len(versions)} versions from {versions[0].name} to {versions[-1].name}: about {most} comparisons at most.",
        highlight=False,
        soft_wrap=True,
    )
    compared = dict(known)

    def noted(number: int, limit: float) -> Compared:
        console.print(f"{versions[number].name} against {versions[0].name} ...", highlight=False, soft_wrap=True)
        each = compared[number] = compare(number, limit)
        said = page.sentence_of(versions[number], versions[0], each, asked.metric)
        console.print(said, highlight=False, soft_wrap=True)
        unfinished = Bisection(verdict=CANNOT_TELL, low=0, high=len(versions) - 1, compared=compared)
        _write_found(_found(asked, unfinished), workdir)
        return each

    workdir.mkdir(parents=True, exist_ok=True)
    with _comparing(asked, config, workdir, console) as compare:
        found = _found(asked, search.bisect(len(versions), noted, known))
    _write_found(found, workdir)
    return found


def _found(asked: Asked, result: Bisection) -> Found:
    """The outcome so far, for page and JSON."""
    return Found(
        question=asked.question,
        versions=tuple(asked.versions),
        result=result,
        metric=asked.metric,
        experiment=asked.experiment,
        command=asked.command,
        again=_again(asked),
    )


def _again(asked: Asked) -> Callable[[Version, Version], str]:
    """(two versions) -> the command that compares them."""
    flags = "" if asked.metric.name in ("step_s", "number") else f" --metric={phases.name_of(asked.metric)}"

    def command(low: Version, high: Version) -> str:
        if asked.command:
            quoted = asked.command.replace('"', '\\"')
            return f'jaxbench bisect --run="{quoted}" --from="{low.words}" --to="{high.words}"'
        return f'jaxbench ab {asked.experiment} --a="{low.words}" --b="{high.words}"{flags}'

    return command


@contextmanager
def _comparing(asked: Asked, config: ConfigDict | None, workdir: Path, console: Console) -> Iterator[Compare]:
    """Yields the function that compares a version with the oldest one."""
    if config is not None:
        yield lambda number, limit: _experiment(asked, config, number, limit, workdir, console)
        return
    words = program.words_of(asked.command)
    with program.opened(asked.versions[0], words) as oldest:
        yield lambda number, limit: _program(asked, oldest, number, limit, workdir, console)


def _experiment(
    asked: Asked, config: ConfigDict, number: int, limit: float, workdir: Path, console: Console
) -> Compared:
    """Compares one version with the oldest one in pairs of worker processes."""
    ends = asked.versions[0], asked.versions[number]
    sides = (
        ab.Side(config, ends[0].words, ends[0].ref, ends[0].release),
        ab.Side(config, ends[1].words, ends[1].ref, ends[1].release),
    )
    exact = asked.metric == phases.METRICS["memory"]
    budget = ab.Budget(
        seconds=ONCE_S if exact else asked.seconds,
        metric=asked.metric,
        margin=asked.margin,
        alpha=search.alpha(len(asked.versions)),
        enough=lambda answers: search.judged(answers, limit) != CANNOT_TELL,
    )

    # One pair needs no advice about the budget.
    quiet = Console(quiet=True) if exact else console

    def measure() -> Answers:
        return ab.run(asked.experiment, sides, _folder(workdir, ends[1]), budget, quiet)[0].answers

    try:
        answers = measure()
        for _ in range(MORE - 1):
            if not exact and search.judged(answers, limit) == CANNOT_TELL:
                answers = measure()
    except ab.ArmFailed as error:
        if error.arm == "A":
            raise UserError(f"{ends[0].name} cannot be measured: {error} Choose another --from.") from error
        return Compared(verdict=SKIPPED, reason=_as_clause(error))
    except UserError as error:
        return Compared(verdict=SKIPPED, reason=_as_clause(error))
    return _exact(answers, limit, asked.margin) if exact else _compared(answers, limit)


def _program(asked: Asked, oldest: program.Arm, number: int, limit: float, workdir: Path, console: Console) -> Compared:
    """Compares one version with the oldest one by running the command in pairs."""
    version = asked.versions[number]
    folder = _folder(workdir, version)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with program.opened(version, oldest.asked) as arm, working(console, f"running the program with {version.name}"):
            answers = program.compare(
                (oldest, arm),
                folder / "pairs.jsonl",
                MORE * asked.seconds,
                margin=asked.margin,
                alpha=search.alpha(len(asked.versions)),
                enough=lambda answers: search.judged(answers, limit) != CANNOT_TELL,
            )
    except program.OldestFailed:
        raise
    except (program.Failed, UserError) as error:
        return Compared(verdict=SKIPPED, reason=_as_clause(error))
    return _compared(answers, limit)


def _compared(answers: Answers, limit: float) -> Compared:
    """The verdict on one version. The values of the sides are those of a single point."""
    overall, point = answers.overall, answers.points[0]
    values = (point.a, point.b) if len(answers.points) == 1 else (math.nan, math.nan)
    verdict = search.judged(answers, limit)
    return Compared(verdict=verdict, ratio=overall.ratio, pairs=overall.processes.a, a=values[0], b=values[1])


def _exact(answers: Answers, limit: float, margin: float) -> Compared:
    """Of a number without noise, which is its own interval."""
    found = _compared(answers, math.nan)
    ratio = dataclasses.replace(found.ratio, lo=found.ratio.value, hi=found.ratio.value)
    if math.isnan(limit):
        verdict = search.SLOWER if ratio.value > 1 + margin else search.FASTER
        verdict = search.SAME if 1 / (1 + margin) <= ratio.value <= 1 + margin else verdict
    else:
        verdict = search.SLOW if ratio.value > limit else search.AS_FAST
    return dataclasses.replace(found, verdict=verdict, ratio=ratio)


def _folder(workdir: Path, version: Version) -> Path:
    """The folder of a version, with characters that every file system takes."""
    return workdir / "versions" / re.sub(r"[^A-Za-z0-9._-]+", "-", version.name)


def _as_clause(error: Exception) -> str:
    return str(error).strip().rstrip(".")


def _known(asked: Asked, workdir: Path) -> dict[int, Compared]:
    """What an earlier start has found. Raises UserError for a folder with another question."""
    file = workdir / page.JSON
    if not file.is_file():
        return {}
    question, compared = page.read(file)
    if not any(each.decided for each in compared.values()):
        return {}
    for name, value in asked.question.items():
        if question.get(name) != value:
            old = question.get(name)
            raise UserError(f"'{workdir}' has a bisection with {name} {old!r}, not {value!r}: choose a new --workdir.")
    numbers = {version.name: number for number, version in enumerate(asked.versions)}
    return {numbers[name]: each for name, each in compared.items() if name in numbers}


def _write_found(found: Found, workdir: Path) -> None:
    write_json(workdir / page.JSON, page.as_json(found))
