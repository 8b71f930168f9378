# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The supervisor of the processes of one start of a training: hears their messages, and finds the one that fails.

Hang detection finds the process that is lost or stuck, from the beats that each sends every second. JAX's own heartbeat
misses a process that is alive but stuck. The others would wait for it forever in a collective.
"""

from __future__ import annotations

import dataclasses
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jaxbench.errors import MoreCollectives
from jaxbench.features.training.loop import Stop
from jaxbench.features.training.worker import NEWS, Beat, Done, Fault, NeedThreads, Say, StopBy
from jaxbench.processes import client
from jaxbench.processes.child import Child, ready
from jaxbench.processes.launch import Followers, Remote
from jaxbench.processes.messages import Fields, Setup, line_of, message_of

WAITS = ("steps", "input")  # kinds with a short time between two changes, for which the limit of the user holds
LONG_S = 1800.0  # the limit for other kinds: compiling, evaluating and checkpoints may take long


@dataclass
class _Seen:
    """The state of one process. heard, moved: the times of its last message, and of its last message with news."""

    heard: float
    moved: float
    kind: str = "start"
    step: int = 0
    ticks: int = -1
    done: bool = False


class Watch:
    """The processes of a training. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, processes: int, limit_s: float, now: float):
        """limit_s: the longest time without a message from a process, or without progress of all."""
        self._limit_s = limit_s
        self._seen = [_Seen(now, now) for _ in range(processes)]

    def heard(self, process: int, beat: Beat, now: float) -> None:
        """Takes the beat of a process."""
        seen = self._seen[process]
        if beat.ticks != seen.ticks:
            seen.moved = now
        seen.heard, seen.kind, seen.step, seen.ticks = now, beat.kind, beat.step, beat.ticks

    def done(self, process: int) -> None:
        self._seen[process].done = True

    def silent(self, now: float, limit_s: float) -> int | None:
        """The process that has been silent longest, and for longer than `limit_s`."""
        open_ = [(seen.heard, i) for i, seen in enumerate(self._seen) if not seen.done]
        heard, process = min(open_, default=(now, 0))
        return process if now - heard > limit_s else None

    def fault(self, now: float) -> tuple[int, str] | None:
        """(the process, its fault as a clause); None if there is no fault."""
        if (process := self.silent(now, self._limit_s)) is not None:
            return process, f"gave no sign of life for {self._limit_s:g} s (--fault_timeout)"
        left = [(i, seen) for i, seen in enumerate(self._seen) if not seen.done]
        limit_s = self._limit_s if all(seen.kind in WAITS for _, seen in left) else max(LONG_S, self._limit_s)
        if not left or now - max(seen.moved for _, seen in left) <= limit_s:
            return None
        process, last = min(left, key=lambda each: (each[1].step, each[1].ticks))
        return process, (
            f"did not advance after step {last.step} ({last.kind}), and the others waited {limit_s:g} s; if a "
            "step takes that long, raise --fault_timeout"
        )


MODULE = "jaxbench.features.training.worker"
TURN_S, BEATS = 0.2, 5  # BEATS: signs of life within the limit
# When one process blames the others, wait this long for a better reason; messages from other hosts arrive later.
EXPLAINED_S, EXPLAINED_BY_FOLLOWERS_S = 3.0, 20.0


class Lost(Exception):
    """The training has ended; the message says which process failed, on which host, and why.

    slot: that of the process, as given to `Team`; None if all processes report the same. again: whether the others
    could continue without it. detail: its stack trace or its output.
    """

    def __init__(self, message: str, *, slot: int | None, again: bool, detail: str):
        super().__init__(message)
        self.slot, self.again, self.detail = slot, again, detail


@dataclass(frozen=True, kw_only=True)
class _Failure:
    """How one process failed. explains: of several failures, the one with the least explains best."""

    reason: str
    explains: int
    detail: str
    user: bool = False  # bad input: continuing without the process would repeat it


class Team:
    """The workers (`worker`) of a training. They are killed when the context ends."""

    def __init__(
        self,
        setup: Setup,
        slots: Sequence[int],
        *,
        limit_s: float,
        logs: Path,
        followers: Followers | None,
    ):
        """Starts the workers. setup: of each, with `train`. limit_s: see `Watch`.

        slots: the processes of the launch that take part, or without a launch the numbers of the workers.
        """
        beat_s = min(1.0, limit_s / BEATS)
        assert setup.train is not None
        train = dataclasses.replace(setup.train, beat_s=beat_s)
        setup = dataclasses.replace(setup, module=MODULE, processes=len(slots), train=train)
        self._slots, self._followers, self._beat_s = tuple(slots), followers, beat_s
        setups = followers.setups(setup, slots) if followers else client.setups(setup)
        self._children: list[Child | Remote] = []
        for number, (slot, each) in enumerate(zip(slots, setups, strict=True)):
            remote = followers is not None and slot > 0
            self._children.append(followers.start(slot, each) if remote else Child(each, logs / f"rank{number}"))  # type: ignore[union-attr]
        self._watch = Watch(len(slots), limit_s, time.monotonic())
        self._done: dict[int, int] = {}
        self._failed: dict[int, _Failure] = {}
        self._first_failed = 0.0

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            child.let_go() if error[0] is None else child.kill()
        for child in self._children:
            child.close()

    def run(self, stop: Stop, console: Console) -> int:
        """The exit code of the first process, once all have ended without a fault. Raises Lost and MoreCollectives."""
        forwarded = False
        while len(self._done) < len(self._children):
            if stop.name and not forwarded:
                forwarded = True
                for child in self._children:
                    child.send(line_of(StopBy(name=stop.name)))
            open_ = [child for i, child in enumerate(self._children) if i not in self._done and i not in self._failed]
            for child in ready(open_, TURN_S) if open_ else ():
                self._hear(self._children.index(child), child.read(), console)
            self._raise_if_lost()
        return self._done[0]

    def _hear(self, number: int, line: Fields | None, console: Console) -> None:
        if line is None:
            code, how = self._children[number].end()
            # JAX aborts a process after it has missed another one, so these codes explain less than any other end.
            explains = 2 if code in (-signal.SIGABRT, 1) and "gone" not in how else 0
            self._fail(number, _Failure(reason=how, explains=explains, detail=self._children[number].log_tail()))
            return
        match message_of(line, NEWS):
            case Beat() as beat:
                self._watch.heard(number, beat, time.monotonic())
            case Say(text=text):
                console.file.write(text)
                console.file.flush()
            case Done(code=code):
                self._done[number] = code
                self._watch.done(number)
            case NeedThreads(collectives=count):
                raise MoreCollectives(count)
            case Fault() as fault:
                # An error of JAX may follow from the loss of another process; an error of the model does not.
                explains = 1 if fault.own else 3
                self._fail(
                    number, _Failure(reason=fault.reason, explains=explains, detail=fault.detail, user=fault.user)
                )

    def _fail(self, number: int, failure: _Failure) -> None:
        if not self._failed:
            self._first_failed = time.monotonic()
        self._failed[number] = failure
        self._watch.done(number)

    def _raise_if_lost(self) -> None:
        """Raises Lost once it is known which process failed."""
        now = time.monotonic()
        if not self._failed:
            if fault := self._watch.fault(now):
                number, reason = fault
                raise self._lost(number, f"{reason}{self._stopped(number)}")
            return
        number = min(self._failed, key=lambda i: self._failed[i].explains)  # the first of several with the least
        failure = self._failed[number]
        # If all report the same, the cause is common, such as bad input: no process is to blame.
        if len(self._failed) == len(self._children) and len({each.reason for each in self._failed.values()}) == 1:
            raise Lost(failure.reason.rstrip("."), slot=None, again=False, detail=failure.detail)
        waited = now - self._first_failed
        if failure.explains > 1:
            if waited < (EXPLAINED_BY_FOLLOWERS_S if self._followers else EXPLAINED_S):
                return
            if (silent := self._watch.silent(now, 3 * self._beat_s)) is not None:
                raise self._lost(silent, f"gave no sign of life{self._stopped(silent)}")
        elif failure.explains == 1 and waited < EXPLAINED_S and len(self._failed) < len(self._children):
            return  # the others may say the same
        raise self._lost(number, failure.reason, failure)

    def _lost(self, number: int, reason: str, failure: _Failure | None = None) -> Lost:
        host = self._followers.hosts[self._slots[number]] if self._followers else socket.gethostname()
        clause = reason.startswith(("was ", "ended ", "is gone", "gave ", "did not "))
        return Lost(
            f"process {number} of {len(self._children)} (on {host}) {'' if clause else 'failed: '}{reason.rstrip('.')}",
            slot=self._slots[number],
            again=not (failure and failure.user),
            detail=failure.detail if failure else "",
        )

    def _stopped(self, number: int) -> str:
        return ": it was stopped, as by SIGSTOP" if self._children[number].stopped else ""
