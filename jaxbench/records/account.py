# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time ledger of a training over all its starts: reads `account.jsonl` (docs/metrics, Goodput).

Each line holds all the time of one start up to a moment, by category. The nanoseconds add up to the start's age. So the
last line of a start is complete, a kill loses only the time after it, and a damaged line loses only itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError

ACCOUNT = "account.jsonl"
STEPS = "steps"  # `totals` divides these into steps that count and repeated steps
# What a process can be doing. At any moment it is doing exactly one of them.
KINDS = ("start", "compile", "restore", STEPS, "input", "evaluation", "checkpoint")
# Wall-time categories of a training run, in table order, with display names.
LABELS = {
    "steps": "steps that count",
    "again": "repeated steps",
    "start": "starting the process",
    "compile": "compiling",
    "restore": "restoring",
    "input": "waiting for input",
    "evaluation": "evaluation",
    "checkpoint": "checkpoints that blocked",
    "idle": "idle between starts",
}


@dataclass(frozen=True)
class Save:
    """A checkpoint that a start began to save. step: the steps completed by then. steps_ns: the time spent on them."""

    step: int
    steps_ns: int


@dataclass(frozen=True)
class Start:
    """The account of one start.

    Attributes:
      begun_ns: the Unix time in ns at which its process was created, or at which the previous start ended if later.
      ns: nanoseconds by category of KINDS. The sum is the age of the start.
      from_step: the step that it restored; None if it ended before restoring.
      step: the last completed step.
      saves: the checkpoints in order.
      sealed, sealing_ns: how many checkpoints were sealed, and the total background time for it.
      finished: whether the training reached its end. A later start is a new request, so the time until then is no loss.
    """

    begun_ns: int
    ns: dict[str, int]
    from_step: int | None
    step: int
    saves: tuple[Save, ...]
    sealed: int
    sealing_ns: int
    finished: bool

    @property
    def end_ns(self) -> int:
        return self.begun_ns + sum(self.ns.values())


def read(folder: Path) -> list[Start]:
    """The starts of the training in `folder`; [] without a ledger. Damaged lines are skipped."""
    path = folder / ACCOUNT
    starts: dict[int, Start] = {}
    for text in path.read_bytes().splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
            before = starts.get(line["start"])
            starts[line["start"]] = _start(line, before.saves if before else ())
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return list(starts.values())


def _start(line: dict[str, Any], saves: tuple[Save, ...]) -> Start:
    ns = {kind: int(line["ns"].get(kind, 0)) for kind in KINDS}
    if min(ns.values()) < 0:
        raise ValueError("a time below 0")
    if line["saving"]:
        saves = (*saves, Save(line["step"], ns[STEPS]))
    own = {name: line[name] for name in ("begun_ns", "from_step", "step", "sealed", "sealing_ns", "finished")}
    return Start(ns=ns, saves=saves, **own)


def require_possible(starts: list[Start]) -> None:
    """Raises UserError if a start ended after the next one began: edited step times would improve the goodput."""
    for number, (before, after) in enumerate(zip(starts, starts[1:], strict=False), start=1):
        late = before.end_ns - after.begun_ns
        if late > 0:
            raise UserError(
                f"{ACCOUNT} is damaged: by its times start {number} ended {late / 1e9:.3g} s after start {number + 1} "
                "began: restore the file."
            )


def kept_saves(starts: list[Start]) -> list[tuple[Save, ...]]:
    """For each start, the checkpoints at or before the earliest step that a later start restored."""
    kept, limit = [], float("inf")
    for start in reversed(starts):
        kept.append(tuple(save for save in start.saves if save.step <= limit))
        if start.from_step is not None:
            limit = min(limit, start.from_step)
    return kept[::-1]


def again_ns(starts: list[Start]) -> list[int]:
    """For each start, the ns of the steps that a later start repeated: the steps after the restored checkpoint."""
    lost = []
    for place, (start, saves) in enumerate(zip(starts, kept_saves(starts), strict=True)):
        later = [other.from_step for other in starts[place + 1 :] if other.from_step is not None]
        whole = not later or min(later) >= start.step
        lost.append(0 if whole else start.ns[STEPS] - (saves[-1].steps_ns if saves else 0))
    return lost


def idle_ns(starts: list[Start]) -> list[int]:
    """The ns without a running process before each start except the first; 0 after a start that finished."""
    pairs = zip(starts, starts[1:], strict=False)
    return [0 if before.finished else after.begun_ns - before.end_ns for before, after in pairs]


def totals(starts: list[Start]) -> dict[str, int]:
    """Nanoseconds by the keys of `LABELS`. They add up exactly to the wall time of the training."""
    spent = {kind: sum(start.ns[kind] for start in starts) for kind in KINDS}
    again = sum(again_ns(starts))
    spent |= {STEPS: spent[STEPS] - again, "again": again, "idle": sum(idle_ns(starts))}
    return {name: spent[name] for name in LABELS}


def goodput(spent: dict[str, int]) -> float:
    """The share of `totals` spent on steps that count; 0 for an empty ledger."""
    whole = sum(spent.values())
    return spent[STEPS] / whole if whole else 0.0
