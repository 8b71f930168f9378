# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The states of a point in a set of processes, and what moves it from one to the next: the whole sweep on one screen.

NEW -- PREPARE ---------------------------------> LOADED -- MEASURE --> TIMED -- MEASURE --> TIMED
NEW -- SHARE --> CHECKED -- LOAD or PREPARE ----> LOADED
any -- LOSE ---> NEW, and CHECKED at once if it is shared
any -- FAIL ---> FAILED
"""

from __future__ import annotations

import enum
from collections.abc import Collection


class State(enum.Enum):
    """Of a point in a set of processes."""

    NEW = "no set has checked it"
    CHECKED = "another process has checked it"
    LOADED = "a process of this set has its program and arrays"
    TIMED = "this set has measured a round of it"
    FAILED = "it is not visited any more"


class Event(enum.Enum):
    PREPARE = "a process of the set has compiled and checked it"
    SHARE = "a process has checked it, so others may load it"
    LOAD = "a process of the set has loaded the program that was checked"
    DIFFER = "the compiler of the set tries variants and made another program, which the set has to check"
    MEASURE = "the set has measured a round of it"
    LOSE = "the process that had it died, and another one has started"
    FAIL = "it cannot be measured"


NEXT = {
    (State.NEW, Event.SHARE): State.CHECKED,
    (State.NEW, Event.PREPARE): State.LOADED,
    (State.NEW, Event.LOSE): State.NEW,
    (State.CHECKED, Event.SHARE): State.CHECKED,
    (State.CHECKED, Event.LOAD): State.LOADED,
    (State.CHECKED, Event.DIFFER): State.NEW,
    (State.CHECKED, Event.LOSE): State.NEW,
    (State.LOADED, Event.SHARE): State.LOADED,
    (State.LOADED, Event.MEASURE): State.TIMED,
    (State.LOADED, Event.LOSE): State.NEW,
    (State.TIMED, Event.SHARE): State.TIMED,
    (State.TIMED, Event.MEASURE): State.TIMED,
    (State.TIMED, Event.LOSE): State.NEW,
    **{(state, Event.FAIL): State.FAILED for state in State},
    **{(State.FAILED, event): State.FAILED for event in Event},
}


class States:
    """The state of each point in each set that is alive.

    Attributes:
      failed: the points that are not visited any more.
    """

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self._states: dict[int, dict[str, State]] = {}
        self._shared: set[str] = set()

    def begin(self, number: int, points: Collection[str]) -> None:
        """Set `number` starts with these points."""
        self._states[number] = dict.fromkeys(points, State.NEW)
        for point in self._shared.intersection(points):
            self.happened(Event.SHARE, number, point)

    def end(self, number: int) -> None:
        del self._states[number]

    def of(self, number: int, point: str) -> State:
        """Raises KeyError for a point that set `number` does not measure."""
        return State.FAILED if point in self.failed else self._states[number][point]

    def ready(self, number: int, point: str) -> bool:
        """Whether set `number` can measure a round of the point now."""
        found = State.FAILED if point in self.failed else self._states[number].get(point)
        return found in (State.LOADED, State.TIMED)

    def share(self, point: str) -> None:
        """What a set has checked, the others may load, now and whenever a process starts. A case is not shared: each
        set compiles it for itself."""
        self._shared.add(point)
        for number in [number for number, points in self._states.items() if point in points]:
            self.happened(Event.SHARE, number, point)

    def happened(self, event: Event, number: int, point: str) -> None:
        """Moves a point of set `number`. Raises KeyError for an event that cannot happen in its state."""
        self._states[number][point] = NEXT[self.of(number, point), event]
        if event is Event.FAIL:
            self.failed.add(point)
        if event is Event.LOSE and point in self._shared:
            self.happened(Event.SHARE, number, point)
