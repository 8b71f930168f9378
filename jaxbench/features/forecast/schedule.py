# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Reads a compiled text as a schedule: work, sent messages and waits, in the compiler's order.

The schedule does not depend on a link. `times` simulates it with one: work runs in sequence, the link carries one
message at a time, and a wait lasts until its message has arrived.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jaxbench.core.schema import COLLECTIVES, Collective
from jaxbench.features.forecast import work
from jaxbench.features.forecast.work import Chip, Cost
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import Instruction, Module, parse

_COPIES = ("copy", "slice", "dynamic-slice", "dynamic-update-slice")  # between memories of a chip, or with the host's
_TARGETS = ("AsyncCollectiveStart", "AsyncCollectiveDone")


@dataclass(frozen=True)
class Send:
    """The start of a message. stride: the distance between neighbours of its group in device order; 0: unknown."""

    name: str
    collective: Collective
    stride: int


@dataclass(frozen=True)
class Wait:
    """A wait until the message `name` has arrived."""

    name: str


@dataclass(frozen=True)
class Copy:
    """The start of a copy between a device's memory and the host's, which takes `seconds`; 0 without a known rate."""

    name: str
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Loop:
    """A loop. trips: how often its events run; 1 if not `known` from the text."""

    trips: int
    events: tuple[Event, ...]
    known: bool


Event = Cost | Send | Copy | Wait | Loop
LinkTime = Callable[[Collective, int], float]


@dataclass(frozen=True, kw_only=True)
class Times:
    """The seconds of one step. work_s: without communication. communication_s: all messages in sequence. scheduled_s:
    in the compiler's order. host_s: all copies to and from the host in sequence."""

    work_s: float
    communication_s: float
    scheduled_s: float
    host_s: float = 0.0

    @property
    def hidden_s(self) -> float:
        """The time if all communication that can be hidden is: the longest of work, messages and copies."""
        return max(self.work_s, self.communication_s, self.host_s)

    @property
    def bare_s(self) -> float:
        """The time if no communication is hidden."""
        return self.work_s + self.communication_s + self.host_s


def read(hlo: str, mesh: Mapping[str, int], on: Chip) -> tuple[Event, ...]:
    """The schedule of the entry computation of an optimized text. mesh: devices by axis, in the program's order."""
    module = _parsed(hlo)
    return tuple(_Reader(module, mesh, on).events(module.entry)) if module.entry else ()


@functools.lru_cache(maxsize=8)
def _parsed(hlo: str) -> Module:
    """The module of a text. `advise` reads one text once for each kind of device."""
    return parse(hlo)


def every(events: tuple[Event, ...], times: int = 1) -> Iterator[tuple[Cost | Send | Copy, int]]:
    """Each work, message and copy of a schedule, with the number of times it runs."""
    for event in events:
        if isinstance(event, Loop):
            yield from every(event.events, times * event.trips)
        elif not isinstance(event, Wait):
            yield event, times


def unknown_loops(events: tuple[Event, ...]) -> int:
    """The number of loops with an unknown trip count. Their bodies count once."""
    return sum((not event.known) + unknown_loops(event.events) for event in events if isinstance(event, Loop))


def times(events: tuple[Event, ...], link_s: LinkTime, overlap: float = 0.0) -> Times:
    """Simulates a schedule. link_s: (collective, stride) -> seconds of its message. overlap: by how much longer work
    takes while a message travels, relative."""
    # free, host: when the link, and that to the host, become free. spent, sent, copied: seconds of work and of each.
    now = free = host = spent = sent = copied = 0.0
    arrives: dict[str, float] = {}
    for event in events:
        if isinstance(event, Cost):
            # slowed: the seconds of this work that pass while a message travels; the rest runs at full speed.
            slowed = min((1 + overlap) * event.seconds, max(0.0, free - now))
            now, spent = now + slowed + event.seconds - slowed / (1 + overlap), spent + event.seconds
        elif isinstance(event, Send):
            took = link_s(event.collective, event.stride)
            free = max(now, free) + took  # queued behind the message before it: collectives share the links
            arrives[event.name], sent = free, sent + took
        elif isinstance(event, Copy):
            arrives[event.name] = host = max(now, host) + event.seconds
            copied += event.seconds
        elif isinstance(event, Wait):  # for a message of this computation; any other has arrived
            now = max(now, arrives.pop(event.name, now))
        else:
            # An iteration is simulated once: what it sends must arrive within it, so nothing carries over to the next.
            body = times(event.events, link_s, overlap)
            now = max(now, free, host) + event.trips * body.scheduled_s
            spent, sent = spent + event.trips * body.work_s, sent + event.trips * body.communication_s
            copied += event.trips * body.host_s
            free = host = now
    return Times(work_s=spent, communication_s=sent, scheduled_s=max(now, free, host), host_s=copied)


class _Reader:
    def __init__(self, module: Module, mesh: Mapping[str, int], on: Chip):
        self._module, self._mesh, self._on = module, mesh, on

    def events(self, computation: str) -> Iterator[Event]:
        lines = self._module.lines(computation)
        users = {operand: line for line in lines for operand in line.operands}  # of a start: its end, the only user
        for line in lines:
            yield from self._of(line, users)

    def _of(self, line: Instruction, users: Mapping[str, Instruction]) -> Iterator[Event]:
        """The events of one instruction. users: by name, what takes the result of a collective's start."""
        if line.opcode == "while":
            trips, events = self._module.trip_count(line), tuple(self.events(line.body))
            if line.instead:
                pass
            elif line.seldom:  # no turn, or one
                yield from (_part_of(event, line.seldom) for event in events)
            else:
                yield Loop(trips or 1, events, known=trips is not None)
        elif line.opcode == "conditional":  # the longest branch: stages run different ones, and wait for each other
            longest = max((tuple(self.events(name)) for name in line.branches), key=work_s, default=())
            yield from (_part_of(event, line.seldom or 1) for event in longest)
        elif line.opcode == "call":
            for name in line.called:
                yield from self.events(name)
        elif line.kind in COLLECTIVES:
            yield from self._send_and_wait(line, line, users.get(line.name), waits=_is_waited_for(line))
        elif line.opcode == "send" and (found := collective_counts.of_slices(line, self._module, self._mesh)):
            yield Send(_between(line), *found)
        elif line.opcode == "recv-done" and (name := _between(self._module.instructions.get(line.operands[0], line))):
            yield Wait(name)
        elif line.opcode in ("recv", "send-done", "recv-done") and "megascale" in line.rest:
            pass  # the end of a send is no wait, and the receive is waited for at its end
        elif moved := work.to_host(line, self._module):
            rate = self._on.host_bytes_per_s
            yield Copy(line.name, moved, moved / rate if rate else 0.0)
            if not line.opcode.endswith("-start"):  # a copy that is not asynchronous
                yield Wait(line.name)
        elif line.opcode.endswith("-done") and line.opcode.removesuffix("-done") in (*COLLECTIVES, "async", *_COPIES):
            start = self._module.instructions.get(line.operands[0])
            # A copy between the memories of a chip is free, so nothing waits for its end either.
            of_chip = line.opcode.removesuffix("-done") in _COPIES and not (start and work.to_host(start, self._module))
            if not of_chip and (start is None or not _is_waited_for(start)):
                yield Wait(line.operands[0])
        elif line.opcode == "async-start" or line.opcode == "fusion":
            yield from self._fused(line)
        elif (cost := work.cost(line, self._module, self._on)) is not None:
            yield cost

    def _fused(self, line: Instruction) -> Iterator[Event]:
        """The events of a fusion. It is work, or it wraps a TPU's collective: its start, its end, or all of it."""
        inside = self._inner(line)
        collective = next((each for each in inside if each.opcode in COLLECTIVES), None)
        calls = {target for each in inside for target in _TARGETS if target in each.rest}
        if "AsyncCollectiveDone" in calls:
            yield Wait(self._start_of(line))
        elif collective is None or collective_counts.continued(collective):
            cost = work.cost(line, self._module, self._on)
            yield from [] if cost is None else [cost]
        else:
            starts = "AsyncCollectiveStart" in calls or line.opcode == "async-start"
            yield from self._send_and_wait(line, collective, None, waits=not starts)

    def _send_and_wait(
        self, line: Instruction, collective: Instruction, done: Instruction | None, *, waits: bool
    ) -> Iterator[Event]:
        found, stride = collective_counts.of_instruction(collective, self._module, self._mesh, done)
        if found.bytes:
            yield Send(line.name, found, stride)
            if waits:
                yield Wait(line.name)

    def _start_of(self, done: Instruction) -> str:
        """The start of an asynchronous collective from its end, through the fusions that carry its state; "": none."""

        def alike_first(names: list[str]) -> list[str]:
            # A fusion may carry several collectives. Arrays of the result's shape lead to the right one.
            known = self._module.instructions
            return sorted(names, key=lambda name: name not in known or known[name].shape != done.shape)

        seen, ahead = set[str](), alike_first(done.operands)
        while ahead:
            name = ahead.pop(0)
            line = self._module.instructions.get(name)
            if line is None or name in seen:  # a parameter, or a way that several fusions share
                continue
            seen.add(name)
            if line.opcode == "fusion" and any("AsyncCollectiveStart" in each.rest for each in self._inner(line)):
                return name
            if line.opcode == "get-tuple-element" or (line.opcode == "fusion" and self._is_async_fusion(line)):
                ahead = alike_first(line.operands) + ahead
        return ""

    def _inner(self, line: Instruction) -> list[Instruction]:
        """The instructions of the computations that `line` calls."""
        return [inner for called in line.called for inner in self._module.lines(called)]

    def _is_async_fusion(self, line: Instruction) -> bool:
        return any('"async_collective_fusion_config"' in each.rest for each in (line, *self._inner(line)))


def _part_of(event: Event, one_in: int) -> Event:
    """The mean of an event that happens once in `one_in` times. Loops in such a branch count in full."""
    if one_in == 1:
        return event
    if isinstance(event, Cost):
        return dataclasses.replace(event, seconds=event.seconds / one_in, large_s=event.large_s / one_in)
    if isinstance(event, Send):
        sizes = {name: round(getattr(event.collective, name) / one_in) for name in ("bytes", "elements", "wire_bytes")}
        return dataclasses.replace(event, collective=dataclasses.replace(event.collective, **sizes))
    return event


def _between(line: Instruction) -> str:
    """The name of a collective between slices that an instruction belongs to; "" for another instruction."""
    found = collective_counts.between_slices(line)
    return found[0] if found else ""


def _is_waited_for(collective: Instruction) -> bool:
    """Whether the device waits for this collective at once: it is not asynchronous, or it is marked as synchronous."""
    return not collective.opcode.endswith("-start") or '"is_sync":true' in collective.rest


def work_s(events: tuple[Event, ...]) -> float:
    """The seconds of all work, without communication."""
    return sum(event.seconds * count for event, count in every(events) if isinstance(event, Cost))


def bubble_s(events: tuple[Event, ...], passes: int) -> float:
    """The seconds of work in ticks in which a stage of a pipeline is idle.

    In each tick a stage sends one result in each direction in which the tick works. So the messages count the ticks,
    and the stage has work in `passes` of them, forward and as often backward.
    """
    loops = [event for event in events if isinstance(event, Loop) and _stage_messages(event.events)]
    ticks = _stage_messages(events)
    if not passes or not loops or ticks <= 2 * passes:
        return 0.0
    return (1 - 2 * passes / ticks) * sum(loop.trips * work_s(loop.events) for loop in loops)


def _stage_messages(events: tuple[Event, ...]) -> int:
    """How many results a stage sends to its neighbours."""
    return sum(
        count * event.collective.count
        for event, count in every(events)
        if isinstance(event, Send)
        and event.collective.kind == "collective-permute"
        and event.collective.axis.partition(" ")[0] == "stage"
    )


def regrouped(events: tuple[Event, ...], old: int, new: int) -> tuple[Event, ...]:
    """The schedule with the messages among all `old` devices changed to messages among `new` devices.

    The summed or gathered array stays the same. A reduce-scatter leaves an n-th of it, and the bytes that a device
    sends follow from the group size (docs/metrics, Communication).
    """
    made: list[Event] = []
    for event in events:
        if isinstance(event, Loop):
            made.append(dataclasses.replace(event, events=regrouped(event.events, old, new)))
        elif isinstance(event, Send) and event.collective.group == old:
            made.append(dataclasses.replace(event, collective=among(event.collective, new)))
        else:  # a smaller group is of an axis that does not grow, such as tensor
            made.append(event)
    return tuple(made)


def among(kept: Collective, devices: int) -> Collective:
    """The collective of the same arrays among all of another number of devices."""
    # `bytes` are those of the result, which of all kinds only a reduce-scatter divides among the devices.
    factor = max(1, kept.group) / devices if kept.kind == "reduce-scatter" else 1.0
    size = round(kept.bytes * factor)
    return dataclasses.replace(
        kept,
        group=devices,
        bytes=size,
        elements=round(kept.elements * factor),
        wire_bytes=round(size * collective_counts.sent(kept.kind, devices)) if devices > 1 else 0,
    )
