# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time ledger of one start: what the process is doing, and for how long (`trainings` reads it)."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxbench.errors import UserError
from jaxbench.features.training import trainings
from jaxbench.features.training.folder import writing
from jaxbench.features.training.trainings import KINDS, LEDGER

# A line is written whenever a start is 1 % older than at its last line, so a kill hides at most 1 % of its time.
BEAT, SHORTEST_BEAT_S, LONGEST_BEAT_S = 0.01, 0.05, 10.0
Clock = Callable[[], int]


def process_begun_ns() -> int:
    """Unix time in ns at which this process was created, to a tick of the system; the current time without a /proc.

    The creation time survives `os.execve`, so a process that replaced itself includes the time of its predecessor.
    """
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return time.time_ns()
    ticks = int(stat.read_text().rpartition(")")[2].split()[19])  # proc(5): starttime, since the system's boot
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ticks * 10**9 // os.sysconf("SC_CLK_TCK")


class TimeLedger:
    """The time ledger of this start in `folder`. As a context it also writes from a thread while the process is busy.

    Attributes:
      step: completed steps, set by the training loop.
      from_step: the restored step, 0 for a fresh training; None before restoring.
      finished: the training has ended, so the time until it is continued with a larger target is not lost time.
      kind, ticks: what the process is doing, and the number of changes of that.
    """

    def __init__(
        self, folder: Path, *, begun_ns: int, kept: bool = True, wall: Clock = time.time_ns,
        clock: Clock = time.monotonic_ns,
    ) -> None:  # fmt: skip
        """begun_ns: Unix time in ns at which this start began. kept: whether the ledger is written; only one of several
        processes writes it.

        Raises UserError when the folder cannot be written.
        """
        before = trainings.read_ledger(folder) if kept else []
        self._folder, self._clock, self._lock = folder, clock, threading.Lock()
        self._number = len(before) + 1
        # Not before the end of the previous start: an elastic restart happens within the life of one process.
        self._begun_ns = max([begun_ns, *(start.end_ns for start in before[-1:])])
        self._ns = dict.fromkeys(KINDS, 0)
        self._ns["start"] = max(0, wall() - self._begun_ns)
        self.kind, self.ticks, self._since = "start", 0, clock()
        self.step = 0
        self.from_step: int | None = None
        self.finished = False
        self._sealed, self._sealing_ns = 0, 0
        self._path, self._silent = folder / LEDGER, not kept
        self._ended = threading.Event()
        if kept:
            with writing(folder), open(self._path, "a+b") as file:
                self._at = file.tell()  # where the lines of this start begin
                file.seek(max(0, self._at - 1))
                if file.read() not in (b"", b"\n"):
                    file.write(b"\n")  # after a line that a crash cut off
        self._thread = threading.Thread(target=self._beat, name="ledger", daemon=True)
        self.write()

    def __enter__(self) -> TimeLedger:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        self._thread.join()
        if error is None:  # an error may be that of a full disk, which a last line would meet again
            self.write()

    @contextlib.contextmanager
    def doing(self, kind: str) -> Iterator[TimeLedger]:
        """A context that books its time under `kind`, one of `KINDS`. Contexts inside it book their own time."""
        before = self._switch(kind)
        try:
            yield self
        finally:
            self._switch(before)

    def rename(self, kind: str) -> None:
        """Books the time since the current context began under `kind` instead."""
        with self._lock:
            self.kind = kind  # the time is booked when the context ends, under the kind that it has then

    def _switch(self, kind: str) -> str:
        """Begins a context of `kind`. Returns the kind of the previous context."""
        with self._lock:
            now, before = self._clock(), self.kind
            self._ns[before] += now - self._since
            self.kind, self._since = kind, now
            self.ticks += 1  # a process that does not change what it is doing may hang (`run.Watch`)
            return before

    def sealed(self, seconds: float) -> None:
        """Notes that a checkpoint was sealed, `seconds` after it had ceased to block. Any thread may call this."""
        with self._lock:
            self._sealed += 1
            self._sealing_ns += round(seconds * 1e9)

    def discard(self) -> None:
        """Removes what was written, because there was nothing to train."""
        with self._lock, writing(self._folder):
            if not self._silent:
                os.truncate(self._path, self._at)
            self._silent = True  # the thread would write again

    def write(self, *, saving: bool = False) -> None:
        """Appends a line. saving: a checkpoint of `step` begins. Raises UserError when the disk is full."""
        with self._lock:
            if self._silent:
                return
            ns = {**self._ns, self.kind: self._ns[self.kind] + self._clock() - self._since}
            line = {
                "start": self._number, "begun_ns": self._begun_ns, "from_step": self.from_step, "step": self.step,
                "saving": saving, "sealed": self._sealed, "sealing_ns": self._sealing_ns, "finished": self.finished,
                "ns": ns,
            }  # fmt: skip
            # One call of the system appends the line, so a kill leaves all of it or none.
            with writing(self._folder), open(self._path, "ab", buffering=0) as file:
                file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _beat(self) -> None:
        first, pause_s = self._clock(), SHORTEST_BEAT_S  # short at first: a start may be killed after a second
        with contextlib.suppress(UserError):  # a full disk: the training thread meets and reports it too
            while not self._ended.wait(pause_s):
                self.write()
                pause_s = min(LONGEST_BEAT_S, max(SHORTEST_BEAT_S, BEAT * (self._clock() - first) / 1e9))
