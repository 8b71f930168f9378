# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The live progress line: the current task, how much is done, the time left. Drawn only between measurements."""

from __future__ import annotations

import time
from collections import defaultdict
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

AGAIN = "prepare again"  # a point that another process has checked

# First guesses, seconds; replaced by measured times.
GUESS_S = {"prepare": 5.0, AGAIN: 2.0, "round": 0.6, "profile": 5.0}


class ProgressLine:
    """A bar with the current task, how many of `total` are done, and the time left."""

    def __init__(self, console: Console, total: int):
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            auto_refresh=False,  # a refreshing thread would run on the cores that are measured
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def left_s(self) -> float:
        """The time left, in seconds."""
        raise NotImplementedError

    def show(self, text: str) -> None:
        """Names the current task."""
        self._bar.update(self._task, description=text, left=f"about {format_s(self.left_s())} left", refresh=True)

    def advance(self) -> None:
        """One more is done."""
        self._bar.update(self._task, advance=1)


class SweepProgress(ProgressLine):
    """Counts tasks (the keys of `GUESS_S`) by point, and estimates the time left from finished ones."""

    def __init__(self, console: Console, tasks: list[tuple[str, str]]):
        """tasks: (kind, point), all that are to be done."""
        super().__init__(console, len(tasks))
        self._left = list(tasks)
        self._seen: dict[tuple[str, str], float] = {}
        self._begun = time.monotonic()

    def begin(self, kind: str, point: str, text: str) -> None:
        """A task that was not expected, such as one that has to be repeated, is added."""
        if (kind, point) not in self._left:
            self._left.append((kind, point))
            self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + 1)
        self._begun = time.monotonic()
        self.show(text)

    def end(self, kind: str, point: str) -> None:
        self._seen[kind, point] = time.monotonic() - self._begun
        self._left.remove((kind, point))
        self.advance()

    def drop(self, point: str) -> None:
        """Removes the remaining tasks of a failed point."""
        self._left = [task for task in self._left if task[1] != point]
        done = self._bar.tasks[0].completed
        self._bar.update(self._task, total=done + len(self._left))

    def left_s(self) -> float:
        """Seconds: each task takes as long as the same one before, else the mean of its kind, else the first guess."""
        by_kind = defaultdict(list)
        for (kind, _), seconds in self._seen.items():
            by_kind[kind].append(seconds)
        mean = {kind: sum(by_kind[kind]) / len(by_kind[kind]) if by_kind[kind] else GUESS_S[kind] for kind in GUESS_S}
        return sum(self._seen.get(task, mean[task[0]]) for task in self._left)


def format_s(seconds: float) -> str:
    """75 -> "1 min 15 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
