# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Hang detection: finds the process of a training that is lost or stuck, from the beats that each sends every second.

JAX's own heartbeat misses a process that is alive but stuck. The others would wait for it forever in a collective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WAITS = ("steps", "input")  # kinds with a short time between two changes, for which the limit of the user holds
LONG_S = 1800.0  # the limit for other kinds: compiling, evaluating and checkpoints may take long


@dataclass
class _Seen:
    """The state of one process. heard, moved: the times of its last message, and of its last message with news."""

    heard: float
    moved: float
    kind: str = "start"
    step: int = 0
    turns: int = -1
    done: bool = False


class Watch:
    """The processes of a training. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, processes: int, limit_s: float, now: float):
        """limit_s: the longest time without a message from a process, or without progress of all."""
        self._limit_s = limit_s
        self._seen = [_Seen(now, now) for _ in range(processes)]

    def heard(self, process: int, beat: dict[str, Any], now: float) -> None:
        """Takes the beat of a process: {"kind", "turns", "step"}."""
        seen = self._seen[process]
        if beat["turns"] != seen.turns:
            seen.moved = now
        seen.heard, seen.kind, seen.step, seen.turns = now, beat["kind"], beat["step"], beat["turns"]

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
        process, last = min(left, key=lambda each: (each[1].step, each[1].turns))
        return process, (
            f"did not advance after step {last.step} ({last.kind}), and the others waited {limit_s:g} s; if a "
            "step takes that long, raise --fault_timeout"
        )
