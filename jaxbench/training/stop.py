# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ends a training on a signal: one process gets the request, and all of them act on it at the same step."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from jaxbench.processes.group import ProcessGroup

LOOK_S, MOST_STEPS = 0.5, 1000  # between two exchanges of the processes; each takes a thousandth of a second


class Stop:
    """Turns the first SIGTERM or Ctrl-C into a request; the second acts at once.

    name: that of the signal, or None. signals: those that it listens to; () if another process listens and calls `ask`.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.name: str | None = None
        self._signals = signals
        self._before: dict[signal.Signals, Any] = {}

    def ask(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no handlers
            for number in self._signals:
                self._before[number] = signal.signal(number, self._request)
        return self

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.ask(signal.Signals(number).name)
        self._restore()  # so that a second signal acts at once

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()


def of_signals() -> Stop:
    return Stop(signal.SIGTERM, signal.SIGINT)


class Agreed:
    """The request to stop, agreed on by all processes: a process that continued alone would wait forever.

    The processes exchange their requests about every LOOK_S, at steps that they agree on in advance. A single process
    checks its request at every step.
    """

    def __init__(self, stop: Stop, members: ProcessGroup, clock: Callable[[], float] = time.perf_counter):
        self.name: str | None = None
        self._stop, self._members, self._clock = stop, members, clock
        self._looked = clock()
        self._last = self._next = 0

    def at(self, step: int) -> str | None:
        """The signal that ends the training after this step, or None. All processes call this at each step."""
        if self._members.alone:
            self.name = self._stop.name
        elif step >= self._next and self.name is None:
            now = self._clock()
            step_s = (now - self._looked) / max(1, step - self._last)
            ahead = max(1, min(MOST_STEPS, int(LOOK_S / max(step_s, 1e-6)))) if self._last else 1
            answers = self._members.all_gather([self._stop.name, ahead])
            self.name = next((name for name, _ in answers if name), None)
            # The leader's estimate counts for all, so the next exchange is at the same step everywhere.
            self._looked, self._last, self._next = now, step, step + answers[0][1]
        return self.name
