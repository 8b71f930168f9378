# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Finds the process of a training that is lost or stuck, by what each says of itself every second or so.

JAX's own heartbeat misses a process that is alive and stuck, for which the others wait for ever in a collective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WAITS = ("steps", "input")  # what is short; compiling, evaluating and checkpoints take as long as they take:
LONG_S = 1800.0


@dataclass
class _Seen:
    """Of one process. heard, moved: when it last said something, and something new."""

    heard: float
    moved: float
    kind: str = "start"
    step: int = 0
    turns: int = -1
    done: bool = False


class Watch:
    """The processes of a training. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, processes: int, limit_s: float, now: float):
        """limit_s: without a sign of life from one of them, or without progress of all."""
        self._limit_s = limit_s
        self._seen = [_Seen(now, now) for _ in range(processes)]

    def heard(self, process: int, beat: dict[str, Any], now: float) -> None:
        """Takes what a process says of itself: {"kind", "turns", "step"}."""
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
        """(the process, what is wrong with it as a clause); None while all is well."""
        if (process := self.silent(now, self._limit_s)) is not None:
            return process, f"gave no sign of life for {self._limit_s:g} s (--fault_timeout)"
        left = [(i, seen) for i, seen in enumerate(self._seen) if not seen.done]
        limit_s = self._limit_s if all(seen.kind in WAITS for _, seen in left) else max(LONG_S, self._limit_s)
        if not left or now - max(seen.moved for _, seen in left) <= limit_s:
            return None
        process, last = min(left, key=lambda each: (each[1].step, each[1].turns))
        return process, (
            f"did not get on after step {last.step} ({last.kind}), for which the others waited {limit_s:g} s; if a "
            "step takes that long, raise --fault_timeout"
        )
