# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Supervises processes that work together: starts them, hears them, finds the one to blame, and ends all of them.

Sweeps, trainings and acceptance tests use it, on one host and in a launch. They differ only in what their processes
say, and in when one of them is late.
"""

from __future__ import annotations

import dataclasses
import enum
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxbench.machine import start as start_lib
from jaxbench.machine.position import Position
from jaxbench.processes.child import Child, ready
from jaxbench.processes.forkserver import ForkServers
from jaxbench.processes.launch import Followers, Remote
from jaxbench.processes.messages import Failed, Fields, Message, Setup, line_of

LOOK_S = 1.0  # between two looks at whether a process is late
AWAKE = 2.0  # a look that took longer than this number of its limits was interrupted, as by Ctrl-Z

Take = Callable[[int, Fields], "Fault | bool"]
Late = Callable[[Sequence[int]], "Fault | None"]


class Cause(enum.IntEnum):
    """How a process failed. Of several processes that failed, the one with the lowest cause explains the others."""

    ENDED = 0  # it was killed, is gone with its host, or is late
    ERROR = 1  # an exception of its own
    ABORTED = 2  # JAX ends a process that has missed another one
    FOLLOWS = 3  # an exception of JAX, which the loss of another process may explain


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with a process.

    Attributes:
      reason: a clause about one that has ended, a sentence about one that is late, or what one said that lives.
      detail: its stack trace, or the end of its log.
      said: the answer of a process that lives.
    """

    process: int
    reason: str
    cause: Cause = Cause.ENDED
    detail: str = ""
    said: Failed | None = None

    @classmethod
    def of(cls, process: int, failed: Failed) -> Fault:
        cause = Cause.FOLLOWS if failed.follows else Cause.ERROR
        return cls(process=process, reason=failed.reason, cause=cause, detail=failed.detail, said=failed)


@dataclass(eq=False)
class Lost(Exception):
    """The processes cannot continue together. All were killed, unless each has answered that it failed.

    Attributes:
      fault: of the process to blame, which `name` names.
      faults: of each process that failed.
      silent: the names of the processes that were still working.
      stopped: a clause that names a process that does not run; "" if all do.
      all_said: each process lives and has answered that it failed.
    """

    fault: Fault
    name: str
    faults: Mapping[int, Fault]
    silent: Sequence[str]
    stopped: str
    all_said: bool

    @property
    def common(self) -> bool:
        """Whether all say the same: the cause is common, such as bad input, and no process is to blame."""
        return self.all_said and len({fault.reason for fault in self.faults.values()}) == 1

    def __str__(self) -> str:
        if self.common or self.fault.process not in self.faults:
            return self.fault.reason
        return f"{self.name}{' failed:' if self.fault.said else ''} {self.fault.reason}"


class Supervisor:
    """The parent's view of processes that work together. They end with its context.

    children: by number. hosts: of each, if their names are to be shown.

    Attributes:
      waited_s: the seconds that it has waited for them. Time in which this process was stopped does not count.
    """

    def __init__(self, children: Mapping[int, Child | Remote], hosts: Mapping[int, str] | None = None):
        self.children, self.waited_s = dict(children), 0.0
        self._hosts = hosts or {}

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Waits for the end of all; after an exception, such as an interrupt, kills them."""
        if kind is not None:
            self.kill()
        self.close()

    def send(self, message: Message, among: Iterable[int] | None = None) -> None:
        """Sends a message to all, or to some of them."""
        for number in self.children if among is None else among:
            self.children[number].send(line_of(message))

    def hear(self, limit_s: float, among: Sequence[int]) -> list[tuple[int, Fields | None]]:
        """What these processes say, as soon as one does, within the limit: (process, its line; None: it has ended)."""
        numbers = {self.children[number].descriptor: number for number in among}
        begun_s = time.monotonic()
        heard = ready([self.children[number] for number in among], limit_s)
        self.waited_s += min(time.monotonic() - begun_s, AWAKE * max(0.0, limit_s))
        return [(numbers[child.descriptor], child.read()) for child in heard]

    def watch(
        self,
        take: Take,
        late: Late,
        patience_s: Mapping[Cause, float],
        *,
        look_s: float = LOOK_S,
        suspect: Late = lambda waiting: None,
    ) -> None:
        """Hears the processes until each is done. Raises Lost.

        Args:
          take: (process, its line) -> whether that process is done, or its fault.
          late: (processes that are not done) -> the fault of one that takes too long, if any. Asked after each look.
          patience_s: after the first fault, how long to wait for one that explains it better.
          suspect: as `late`, after this time: a fault that only follows from another one makes a short silence count.
        """
        faults: dict[int, Fault] = {}
        waiting, failed_s = [*self.children], 0.0  # failed_s: `waited_s` at the first fault
        while waiting or faults:
            for number, line in self.hear(look_s, waiting) if waiting else ():
                said = self.end_of(number) if line is None else take(number, line)
                if isinstance(said, Fault):
                    failed_s = failed_s if faults else self.waited_s
                    faults[number] = said
                if said:
                    waiting.remove(number)
            if not faults:
                fault = late(waiting) if waiting else None
            else:
                fault = min(faults.values(), key=lambda each: each.cause)  # of equal ones, the first
                if waiting and self.waited_s - failed_s < patience_s.get(fault.cause, 0.0):
                    fault = None
                elif fault.cause >= Cause.ABORTED:
                    fault = suspect(waiting) or fault
            if fault is not None:
                raise self._lost(fault, faults, waiting)

    def _lost(self, fault: Fault, faults: Mapping[int, Fault], waiting: Sequence[int]) -> Lost:
        """The error to raise. Kills all children, unless each of them has said why it ended."""
        all_said = all(number in faults and faults[number].said for number in self.children)
        stopped = next((self.called(number) for number, child in self.children.items() if child.stopped), "")
        clause = f" ({stopped} does not run: it was stopped, as by SIGSTOP)" if stopped else ""
        if not all_said:
            self.kill()
        return Lost(fault, self.called(fault.process), faults, [*map(self.called, waiting)], clause, all_said)

    def end_of(self, number: int) -> Fault:
        """The fault of a process that has ended. Waits for its end."""
        child = self.children[number]
        code, how = child.end()
        aborted = code in (-signal.SIGABRT, 1) and "gone" not in how
        cause = Cause.ABORTED if aborted else Cause.ENDED
        return Fault(process=number, reason=how, cause=cause, detail=child.log_tail())

    def called(self, number: int) -> str:
        """A process in a sentence."""
        where = f" (on {self._hosts[number]})" if self._hosts else ""
        return (f"process {number} of {len(self.children)}" if len(self.children) > 1 else "the worker process") + where

    def let_go(self) -> None:
        """Lets all end, at the same time: a process that remains would report the others as lost."""
        for child in self.children.values():
            child.let_go()

    def close(self) -> None:
        """Lets all end, and waits for them."""
        self.let_go()
        for child in self.children.values():
            child.close()

    def kill(self, among: Iterable[int] | None = None) -> None:
        """Kills all, or some of them."""
        for number in self.children if among is None else among:
            self.children[number].kill()


def start(
    setup: Setup,
    log: Path,
    followers: Followers | None = None,
    forks: ForkServers | None = None,
    among: Sequence[int] = (),
) -> dict[int, Child | Remote]:
    """Starts the processes of a setup, by number, on this host or on those of a launch.

    log: for the stderr of the first; the others on this host write "log.1", ... among: the processes of the launch that
    take part; (): as many as the setup needs.
    """
    setups = followers.setups(setup, among) if followers else setups_here(setup)
    children: dict[int, Child | Remote] = {}
    for number, each in enumerate(setups):
        process = among[number] if among else number
        if followers and process:
            children[number] = followers.start(process, each)
        else:
            children[number] = Child(each, log.with_name(f"{log.name}.{number}") if number else log, forks)
    return children


def setups_here(setup: Setup) -> list[Setup]:
    """The setup of each process on this host. `Followers.setups` does the same in a launch.

    Each process has an equal share of the devices; of accelerators, it has one. Instead, `trainings` is the number of
    processes that train at the same time, each on all devices; with `own_cores` each takes other cores first.
    """
    if setup.processes == setup.trainings == 1:
        return [setup]
    address, count = start_lib.free_address(), max(setup.trainings, setup.processes)
    if setup.trainings > 1:
        places = [Position(address=address, processes=count, process=i) for i in range(count)]
        orders = [_rotated(setup.order, i * setup.devices) if setup.own_cores else setup.order for i in range(count)]
        pairs = zip(places, orders, strict=True)
        return [dataclasses.replace(setup, co_runners=place, order=order) for place, order in pairs]
    devices = [None if setup.platform == "cpu" else i for i in range(count)]  # of one host, each process has its own
    places = [Position(address=address, processes=count, process=i, device=device) for i, device in enumerate(devices)]
    return [dataclasses.replace(setup, world=place) for place in places]


def _rotated(order: tuple[int, ...], by: int) -> tuple[int, ...]:
    by %= max(1, len(order))
    return (*order[by:], *order[:by])
