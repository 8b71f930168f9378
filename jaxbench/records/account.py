# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the wall time of a training went, over all its starts: `account.jsonl`, read (docs/metrics, Goodput).

Each line holds the whole account of one start up to a moment, in nanoseconds that add up to the start's age. So the
last line of a start is its account, a kill loses at most what came after it, and a damaged line only itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbench.errors import UserError

ACCOUNT = "account.jsonl"
STEPS = "steps"  # which `totals` divides into steps that count and steps done again
# What a process can be doing. All its time is in exactly one of them.
KINDS = ("start", "compile", "restore", STEPS, "input", "evaluation", "checkpoint")
# What the time of a training divides into, in the order of tables, and what people call it.
LABELS = {
    "steps": "steps that count",
    "again": "steps done again",
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
    """A checkpoint that a start began to save. step: it has completed so many; steps_ns: spent on steps until then."""

    step: int
    steps_ns: int


@dataclass(frozen=True)
class Start:
    """The account of one start.

    Attributes:
      begun_ns: Unix time in ns at which its process was created, or the previous start ended if that was later.
      ns: by kind; the sum is its age.
      from_step: that it restored; None when it ended before.
      step: completed.
      saves: in their order.
      sealed, sealing_ns: how many of them were sealed, and the time that this took in the background, in all.
      finished: the training had come to its end; what follows is another request, and the time until then is no loss.
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
    """The starts of the training in `folder`; [] when it has no account. Lines that are damaged are left out."""
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
    """Raises UserError if a start ended after the next one began: a longer time in steps would be a better goodput."""
    for number, (before, after) in enumerate(zip(starts, starts[1:], strict=False), start=1):
        late = before.end_ns - after.begun_ns
        if late > 0:
            raise UserError(
                f"{ACCOUNT} is damaged: by its times start {number} ended {late / 1e9:.3g} s after start {number + 1} "
                "began: restore the file."
            )


def kept_saves(starts: list[Start]) -> list[tuple[Save, ...]]:
    """Of each start, the saves that no later start went back behind."""
    kept, limit = [], float("inf")
    for start in reversed(starts):
        kept.append(tuple(save for save in start.saves if save.step <= limit))
        if start.from_step is not None:
            limit = min(limit, start.from_step)
    return kept[::-1]


def again_ns(starts: list[Start]) -> list[int]:
    """Of each start, the time of the steps that a later start did again: those after the checkpoint it went back to."""
    lost = []
    for place, (start, saves) in enumerate(zip(starts, kept_saves(starts), strict=True)):
        later = [other.from_step for other in starts[place + 1 :] if other.from_step is not None]
        whole = not later or min(later) >= start.step
        lost.append(0 if whole else start.ns[STEPS] - (saves[-1].steps_ns if saves else 0))
    return lost


def idle_ns(starts: list[Start]) -> list[int]:
    """The time before each start but the first in which none ran; 0 after a start that finished the training."""
    pairs = zip(starts, starts[1:], strict=False)
    return [0 if before.finished else after.begun_ns - before.end_ns for before, after in pairs]


def totals(starts: list[Start]) -> dict[str, int]:
    """Nanoseconds by the names of `LABELS`. They add up to the wall time of the training, exactly."""
    spent = {kind: sum(start.ns[kind] for start in starts) for kind in KINDS}
    again = sum(again_ns(starts))
    spent |= {STEPS: spent[STEPS] - again, "again": again, "idle": sum(idle_ns(starts))}
    return {name: spent[name] for name in LABELS}


def goodput(spent: dict[str, int]) -> float:
    """The share of steps that count in `totals`; 0 of an empty account."""
    whole = sum(spent.values())
    return spent[STEPS] / whole if whole else 0.0
