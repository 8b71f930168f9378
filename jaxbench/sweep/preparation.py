# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Brings points to the state LOADED (`states`): the first set compiles and checks them, and the others load them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from jaxbench.core.schema import PointRecord
from jaxbench.levers import INPUT
from jaxbench.measure import memory
from jaxbench.processes import messages
from jaxbench.sweep.ongoing import OngoingSweep
from jaxbench.sweep.progress import AGAIN, ALONG, PACE
from jaxbench.sweep.states import Event, State
from jaxbench.sweep.workers import Workers, note_workers


def prepare(sweep: OngoingSweep, names: Iterable[str]) -> None:
    """The first set checks new points. Then the other sets load the same programs, all at the same time."""
    states = sweep.states
    members = {each: [name for name in names if sweep.measures(each.number, name)] for each in sweep.sets}
    if all(states.ready(each.number, name) for each, of in members.items() for name in of if name not in states.failed):
        return
    first = sweep.sets[0]
    _check(sweep, first, [name for name in members[first] if states.of(first.number, name) is State.NEW])
    _end_sets_without_memory(sweep)
    loads = [(each, name) for each in sweep.sets for name in members[each] if _may_load(sweep, each, name)]
    needed = bytes_at_once(sweep.checked, {(workers.name(name), name) for workers, name in loads})
    at_once = needed <= memory.available()
    leader = loads[0][0].name(loads[0][1]) if loads else ""
    kinds = [ALONG[AGAIN] if at_once and workers.name(name) != leader else AGAIN for workers, name in loads]
    for kind, (_, name) in zip(kinds, loads, strict=True):
        sweep.progress.expect(kind, [name])
    if at_once:
        # All processes begin at once. Then their answers are read, one after the other.
        for workers, name in loads:
            workers.send_ahead(name, _again(sweep, name))
    for workers in sweep.sets:
        for kind, name in [(kind, name) for kind, (each, name) in zip(kinds, loads, strict=True) if each is workers]:
            _load(sweep, workers, name, kind)
        for name in members[workers]:
            make_ready(sweep, workers, name)
    note_workers(sweep.job.run, sweep.sets, sweep.start.preparation())


def _may_load(sweep: OngoingSweep, workers: Workers, name: str) -> bool:
    return sweep.states.of(workers.number, name) is State.CHECKED


def make_ready(sweep: OngoingSweep, workers: Workers, name: str) -> bool:
    """Loads a point into a set, or compiles and checks it there. Returns whether the set can measure it now."""
    if _may_load(sweep, workers, name):
        _load(sweep, workers, name)
    if sweep.states.of(workers.number, name) is State.NEW:
        _compile_and_check(sweep, workers, name, _new(sweep, name))
    return sweep.states.ready(workers.number, name)


def _check(sweep: OngoingSweep, workers: Workers, names: Sequence[str]) -> None:
    """The processes of a set compile and check at the same time. Then the block length of each point is found while
    nothing else runs. Cases and fed steps find it while they are prepared, so they are prepared one by one."""
    for name in names:
        sweep.references.make(workers, sweep.points[name])
    together = [name for name in names if _paced_alone(sweep, name)]
    for name in names:
        if name not in together:
            _compile_and_check(sweep, workers, name, _new(sweep, name))
    requests = {name: _new(sweep, name, paced=False) for name in together}
    along = [name for name in together if workers.name(name) != workers.name(together[0])]
    sweep.progress.recast("prepare", ALONG["prepare"], along)
    for name, request in requests.items():
        workers.send_ahead(name, request)
    for name, request in requests.items():
        kind = ALONG["prepare"] if name in along else "prepare"
        _compile_and_check(sweep, workers, name, request, kind)
    for name in names:
        # The process of a point that failed has died, and with it the other points that it had prepared.
        if _may_load(sweep, workers, name):
            _load(sweep, workers, name)
        if name in together and sweep.states.ready(workers.number, name) and name not in sweep.steps:
            _pace(sweep, workers, name)


def _paced_alone(sweep: OngoingSweep, name: str) -> bool:
    """Whether its block length is found after it is prepared."""
    point = sweep.points[name]
    return not point.of_case and (point.oversubscribed or INPUT.of(point.levers).kind == "device")


def _pace(sweep: OngoingSweep, workers: Workers, name: str) -> None:
    """Finds the block length of a point. A block of an oversubscribed point has one step."""
    point = sweep.points[name]
    if point.oversubscribed:
        sweep.steps[name] = 1
        return
    answer = sweep.attempt(workers, PACE, name, f"time {point.text}", messages.Pace(point=name))
    if answer is not None:
        sweep.steps[name] = answer.steps


def bytes_at_once(checked: Mapping[str, PointRecord], loads: Iterable[tuple[str, str]]) -> float:
    """Host memory for all processes that load at the same time: each runs a block of one of its points.

    checked: compile reports by point. loads: (process, point). The memory of an accelerator is not the host's.
    """
    largest: dict[str, float] = {}
    for process, name in loads:
        record = checked[name]
        if record.platform == "cpu":
            needed = record.devices * float(record.compile_report.peak_bytes or 0)
            largest[process] = max(largest.get(process, 0.0), needed)
    return sum(largest.values())


def _end_sets_without_memory(sweep: OngoingSweep) -> None:
    """Ends sets until each of the others can take as much memory as the first one has taken."""
    first, *others = sweep.sets
    # The first one has compiled, and the others have only started.
    while others and len(others) * (first.bytes - others[0].bytes) > memory.available():
        others.pop()
        sweep.end_last()


def _new(sweep: OngoingSweep, name: str, *, paced: bool = True) -> messages.Prepare:
    """The request to compile and check a point. All points have the same kind of loss. The processes that start the run
    each find it, because none should wait while another compiles."""
    loss = next((record.loss for record in sweep.checked.values()), "")
    point, reference = sweep.points[name].to_json(), sweep.references.told(sweep.points[name])
    return messages.Prepare(point=point, loss=loss, paced=paced, reference=reference)


def _again(sweep: OngoingSweep, name: str) -> messages.PrepareAgain:
    """The request to load a point that another process has checked."""
    sha256, steps = sweep.checked[name].program_sha256, sweep.steps.get(name, 1)
    point, reference = sweep.points[name].to_json(), sweep.references.told(sweep.points[name])
    return messages.PrepareAgain(point=point, program_sha256=sha256, steps=steps, reference=reference)


def _load(sweep: OngoingSweep, workers: Workers, name: str, kind: str = AGAIN) -> None:
    """Loads a program that another group has checked, and records whether this group made the same."""
    text = f"load {sweep.points[name].text} in group {workers.number + 1}"
    answer = sweep.attempt(workers, kind, name, text, _again(sweep, name))
    if answer is None:
        return
    if answer.same:
        first = sweep.checked[name]
        checked_by = first.checked_by or first.worker
        sweep.job.run.append(dataclasses.replace(first, worker=workers.name(name), checked_by=checked_by))
    sweep.states.happened(Event.LOAD if answer.same else Event.DIFFER, workers.number, name)


def _compile_and_check(
    sweep: OngoingSweep, workers: Workers, name: str, request: messages.Prepare, kind: str = "prepare"
) -> None:
    answer = sweep.attempt(workers, kind, name, f"compile and check {sweep.points[name].text}", request)
    if answer is None:
        return
    record = sweep.append(answer)
    sweep.states.happened(Event.PREPARE, workers.number, name)
    if isinstance(record, PointRecord):
        sweep.states.share(name)
        sweep.checked.setdefault(name, record)
        if request.paced:
            sweep.steps.setdefault(name, answer.steps)
