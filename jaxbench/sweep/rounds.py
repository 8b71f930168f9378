# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rounds: a set of processes visits each point once, in random order."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jaxbench.core.schema import RoundRecord
from jaxbench.errors import of_kind
from jaxbench.processes import messages
from jaxbench.sweep.job import Automatic
from jaxbench.sweep.ongoing import OngoingSweep
from jaxbench.sweep.preparation import make_ready, prepare
from jaxbench.sweep.progress import DOUBLE
from jaxbench.sweep.states import Event
from jaxbench.sweep.workers import Workers

# A run with fewer rounds than an interval needs supports no claim about speed. So each point gets all its rounds right
# after its preparation, and an interrupted run keeps the points that it has finished.
FEW = 5
DOUBLE_EVERY = 4  # one of this number of visits of a process to a point has the second clock
AUTO_DOUBLE_EVERY = 8  # the same with rounds=auto, which has many visits


def fixed(sweep: OngoingSweep, names: list[str], wave: list[int], at: int, waves: int) -> None:
    """The rounds of a wave in a run with a fixed number of rounds. at: number of the wave out of `waves`."""
    total = sweep.job.counts[0]
    numbers = sorted({n for name in names for n in sweep.todo[name] if waves == 1 or n * waves // total == at})
    if not numbers:
        return
    sweep.begin(wave, names)
    every = max(1, min(DOUBLE_EVERY, total // FEW))  # at least FEW rounds have the second clock
    one_by_one = total < FEW and len(wave) == waves == 1
    for some in [[name] for name in names] if one_by_one else [names]:
        _expect_double(sweep, some, numbers, every)
        prepare(sweep, some)
        if not one_by_one:  # else at the end, so that a reason that many points share is reported once
            sweep.report_failures()
        for i, number in enumerate(numbers):
            visited = [name for name in some if number in sweep.todo[name]]
            workers, last = sweep.sets[i % len(sweep.sets)], i >= len(numbers) - len(sweep.sets)
            one(sweep, workers, number, visited, every=every, last=last)


def _expect_double(sweep: OngoingSweep, names: Sequence[str], numbers: Sequence[int], every: int) -> None:
    """Tells the display which rounds have the second clock: they time three times as many steps."""
    for name in names:
        if not sweep.points[name].oversubscribed:
            sets = Counter(i % len(sweep.sets) for i, number in enumerate(numbers) if number in sweep.todo[name])
            doubles = sum(math.ceil(visits / every) for visits in sets.values())
            sweep.progress.recast("round", DOUBLE, [name] * doubles)


def automatic(sweep: OngoingSweep, auto: Automatic, names: list[str], share: float, *, last: bool) -> bool:
    """The rounds of a wave, until intervals are narrow or the wave's share of the budget is spent.

    Returns whether that ends the run. last: no wave follows. The first rounds visit only points that a headline may
    rest on; ablations are compiled after them.
    """
    main: Sequence[str] = [name for name in names if not sweep.is_ablation(name)]
    visits, budget_s = main, share * auto.budget_s
    while visits:
        prepare(sweep, visits)
        sweep.report_failures()
        _of_each_set(sweep, visits)
        look = auto.looked(sweep.records, len(sweep.sets), sweep.states.failed)
        auto.note(look, sweep.records, sweep.spent_s)
        visits = [name for name in look.visits if name in sweep.points]
        left_s = budget_s - sweep.spent_s - _guess_s(sweep, main)  # the closing round, which checks the states
        if _guess_s(sweep, visits) > left_s:  # leave out the ablations
            visits = [name for name in visits if name in main]
        if _guess_s(sweep, visits) > left_s:
            break
    alive = [name for name in main if name not in sweep.states.failed]
    if not alive:  # every point has failed: a later start may look again
        return True
    _of_each_set(sweep, alive, last=True)
    ends = "precise" if look.ended == "precise" else "budget" if last else ""  # "": the next wave goes on
    look = auto.looked(sweep.records, len(sweep.sets), sweep.states.failed)
    auto.note(look, sweep.records, sweep.spent_s, ends=ends, failed=sweep.states.failed)
    return bool(ends)


def one(
    sweep: OngoingSweep,
    workers: Workers,
    number: int,
    names: Sequence[str],
    *,
    every: int = DOUBLE_EVERY,
    last: bool = False,
) -> None:
    """A set visits these points in random order. every: one of this number of visits has the second clock. last: the
    last round of the set."""
    names = [name for name in names if name not in sweep.states.failed and sweep.measures(workers.number, name)]
    sweep.random_order.shuffle(names)
    for name in names:
        _visit(sweep, workers, name, number, every=every, last=last)


def trace(sweep: OngoingSweep, name: str) -> None:
    """Traces a point in the first set. Runs last, so that no after-effect of the tracer reaches a measurement."""
    folder: Path = sweep.job.run.path / "profiles" / name.replace("/", "-")
    request = messages.Profile(point=name, folder=str(folder.resolve()))
    answer = sweep.attempt(sweep.sets[0], "profile", name, f"trace {sweep.points[name].text}", request)
    if answer is not None:
        sweep.append(answer)


def _of_each_set(sweep: OngoingSweep, names: Sequence[str], *, last: bool = False) -> None:
    start = time.monotonic()
    for workers in sweep.sets:
        one(sweep, workers, sweep.number, names, last=last)
        sweep.number += 1
    sweep.spent_s += time.monotonic() - start


def _guess_s(sweep: OngoingSweep, names: Sequence[str]) -> float:
    """The seconds of one round in each set. A point without a round counts as the median point."""
    timed = {record.point: 2 * sum(record.block_s) for record in sweep.records if isinstance(record, RoundRecord)}
    usual = statistics.median(timed.values()) if timed else 0.0
    return len(sweep.sets) * sum(timed.get(name, usual) for name in names)


def _visit(sweep: OngoingSweep, workers: Workers, name: str, number: int, *, every: int, last: bool) -> None:
    """Measures one round of a point, with the second clock if it is due."""
    point = sweep.points[name]
    if not make_ready(sweep, workers, name):  # its process may have died with another point
        return
    visit = sweep.visits[workers.number, name]
    if sweep.job.automatic:  # not in the first visits, because the ablations wait for them
        # An ablation has too few rounds for an interval of its second clock, so one set shows that it agrees. Few sets
        # need the last visits for an interval of the second clock.
        due = visit % AUTO_DOUBLE_EVERY == 1 or (last and len(sweep.sets) < FEW)
        double = due and not (workers.number and sweep.is_ablation(name))
    else:
        double = visit % every == 0
    trains = not point.of_case
    steps = sweep.steps.get(name) if trains else None  # blocks of other lengths are not comparable
    double = double and not point.oversubscribed
    request = messages.Round(point=name, round=number, double=double, steps=steps, last=last and trains)
    sweep.visits[workers.number, name] += 1
    kind = DOUBLE if double and not sweep.job.automatic else "round"
    answer = sweep.attempt(workers, kind, name, f"round {number + 1}: {point.text}", request)
    if answer is not None:
        record = of_kind(RoundRecord, sweep.append(answer))
        sweep.steps[name] = record.steps
        sweep.states.happened(Event.MEASURE, workers.number, name)
        sweep.progress.measured(record)
