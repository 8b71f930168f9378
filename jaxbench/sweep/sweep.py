# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The sweep: sets of processes take turns in short rounds, and a round visits points in random order.

On CPUs all sets live at the same time, and only one of them runs. The first set compiles and checks; the others load
the programs that it compiled. An accelerator belongs to one process, so there the sets follow each other, in waves.
Oversubscribed points support no claim about speed: they are checked after all others are measured, and visited once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console

from jaxbench.core import schema
from jaxbench.core.point import Point
from jaxbench.core.schema import RoundRecord
from jaxbench.sweep import rounds
from jaxbench.sweep.job import Automatic, SweepJob
from jaxbench.sweep.ongoing import OngoingSweep
from jaxbench.sweep.plan import rounds_of
from jaxbench.sweep.preparation import prepare
from jaxbench.sweep.progress import SweepProgress
from jaxbench.sweep.start import Start
from jaxbench.sweep.workers import affordable, note_preparation, processes_of

MESSAGES_S = 0.02  # a round's request and answer


def missing_rounds(records: list[schema.Record], points: Sequence[Point], rounds: int) -> dict[str, list[int]]:
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
    so_far = [record for record in records if isinstance(record, RoundRecord)]
    number = max((record.round for record in so_far), default=-1) + 1  # of the next round
    auto = job.automatic if job.automatic is not None and not job.automatic.ended else None
    todo = missing_rounds(records, job.points, job.counts[0])
    if job.automatic and not auto:  # it has ended: only points without enough rounds, such as failed ones, get more
        asked, done = job.automatic.asked, Counter(record.point for record in so_far)
        todo = {name: [number + i for i in range(asked[name] - done[name])] for name in asked}
    points = [point for point in job.points if todo.get(point.point) or (auto and not point.oversubscribed)]
    if not points:  # nothing is prepared either
        note_preparation(job.run, Start(job).preparation())
        return
    tasks = [("prepare", point.point) for point in points]
    tasks += [("round", name) for name, missing in todo.items() for _ in missing]
    with SweepProgress(
        console, tasks, so_far, round_s=guess_s(job.config["measure"]["blocks"], job.config["measure"]["block_s"])
    ) as progress:
        with OngoingSweep(job, progress, points, todo, records) as sweep:
            _measure(sweep, auto)


def guess_s(blocks: int, block_s: float) -> float:
    """The seconds of a round before one was measured: its blocks, half a block of warm-up, and the messages."""
    return (blocks + 0.5) * block_s + MESSAGES_S


def _measure(sweep: OngoingSweep, auto: Automatic | None) -> None:
    """Measures all points: first those that do not share cores, then the oversubscribed ones."""
    alone = [name for name, point in sweep.points.items() if not point.oversubscribed]
    if alone:
        _undisturbed(sweep, alone, auto)
    shared = [name for name, point in sweep.points.items() if point.oversubscribed and sweep.todo.get(name)]
    if shared:
        sweep.begin([0], shared)
        prepare(sweep, shared)
        # After all other rounds, however many rounds=auto has added.
        number = max(sweep.number, *(number for name in shared for number in sweep.todo[name]))
        rounds.one(sweep, sweep.sets[0], number, shared)
        _finish(sweep, shared)
    sweep.report_failures()


def _undisturbed(sweep: OngoingSweep, names: list[str], auto: Automatic | None) -> None:
    """Measures the points that are not oversubscribed."""
    waves = _waves(sweep, names)
    for at, wave in enumerate(waves):
        if auto is None:
            rounds.fixed(sweep, names, wave, at, len(waves))
            continue
        sweep.begin(wave, names)
        if rounds.automatic(sweep, auto, names, (at + 1) / len(waves), last=at == len(waves) - 1):
            break
    _finish(sweep, names)


def _waves(sweep: OngoingSweep, names: Sequence[str]) -> list[list[int]]:
    """The numbers of the sets of each wave. The sets of a wave live at the same time."""
    job = sweep.job
    asked = job.counts[1]
    # A set without a round would compile for nothing.
    asked = asked if job.automatic else max(1, min(asked, len({n for name in names for n in sweep.todo[name]})))
    if not job.live:
        return [[number] for number in range(asked)]
    points = [sweep.points_of(number, names) for number in range(asked)]
    sets = affordable(points, job.memory_bytes)
    if asked > 1:
        fewer = f", because no more of the {asked} fit the memory that is free" if sets < asked else ""
        sweep.progress.say(f"{sets} groups of {processes_of(points[-1])} processes take turns{fewer}.")
    return [[*range(sets)]]


def _finish(sweep: OngoingSweep, names: Iterable[str]) -> None:
    """Traces the points if --config.profile asks for it, and ends the processes."""
    if sweep.job.config.get("profile") and sweep.sets:
        for name in names:
            if sweep.states.ready(sweep.sets[0].number, name) and not sweep.is_ablation(name):
                rounds.trace(sweep, name)
    sweep.end()
