# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal's display while points are measured: the results so far, the current task and the time left.

It is drawn only between measurements. Without a terminal, each point leaves a line when it is prepared, and another
when it is measured. `heartbeat` prints lines during long tasks, so that no log is silent for long.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from jaxbench.records.schema import RoundRecord
from jaxbench.runner.so_far import MANY, SoFar, group_of

AGAIN = "prepare again"  # a point that another process has checked
PACE = "pace"  # find the block length of a point that was prepared at the same time as others

# First guesses, seconds; replaced by measured times.
GUESS_S = {"prepare": 5.0, AGAIN: 2.0, PACE: 0.5, "round": 0.6, "profile": 5.0}


SILENT_S = 25.0  # CI services end jobs that print nothing for minutes; jaxbench prints a line every 30 s

# Lines of a terminal that the table of points leaves free: for its heading, its note and the bar.
BESIDE_TABLE = 10


@contextmanager
def heartbeat(console: Console, said: Callable[[], str], *, terminal: bool = False) -> Iterator[None]:
    """Prints the elapsed time and `said()`, the finished and the remaining work, every SILENT_S seconds of the block.

    said: called from another thread. terminal: print on a terminal too, for a verb without a live line. The thread
    computes nothing between two lines, so it may run during measurements.
    """
    over, begun = threading.Event(), time.monotonic()

    def beat() -> None:
        while not over.wait(SILENT_S):
            line = f"{format_s(time.monotonic() - begun)}: {said()}"
            console.print(Text(line, style="dim"), soft_wrap=True)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    if terminal or not console.is_terminal:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.ident is not None:
            thread.join()


class ProgressLine:
    """A bar with the current task, the number of finished tasks out of `total`, and the time left."""

    def __init__(self, console: Console, total: int):
        self._console = console
        self._bar = _Bar(
            self,
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            auto_refresh=False,  # a refreshing thread would run on the cores that are measured
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total, left="")
        self._alive = ExitStack()

    def __enter__(self) -> Self:
        self._bar.start()
        self._alive.enter_context(heartbeat(self._console, self._status))
        return self

    def _status(self) -> str:
        task = self._bar.tasks[0]
        return f"{task.description}: {task.completed:.0f} of {task.total or 0:.0f} done, {task.fields['left']}"

    def say(self, sentence: str) -> None:
        """Prints a line that stays, on a terminal too."""
        self._console.print(Text(sentence), soft_wrap=True)

    def _say(self, sentence: str) -> None:
        """Prints a line into a log; a terminal has the bar instead."""
        if not self._console.is_terminal:
            self._console.print(Text(sentence), soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alive.close()
        self._bar.stop()

    def left_s(self) -> float:
        """The time left, in seconds."""
        raise NotImplementedError

    def above(self) -> Iterable[RenderableType]:
        """The content above the bar."""
        return ()

    def show(self, text: str) -> None:
        """Names the current task."""
        self._bar.update(self._task, description=text, left=f"about {format_s(self.left_s())} left", refresh=True)

    def advance(self) -> None:
        """Counts one more finished task."""
        self._bar.update(self._task, advance=1)


class _Bar(Progress):
    """A bar with the content of its line above it."""

    def __init__(self, line: ProgressLine, *columns: TextColumn | BarColumn | MofNCompleteColumn, **how: Any):
        self._line = line
        super().__init__(*columns, **how)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from self._line.above()
        yield from super().get_renderables()


class SweepProgress(ProgressLine):
    """Counts tasks (the keys of `GUESS_S`) by point, and estimates the time left from finished ones."""

    def __init__(self, console: Console, tasks: list[tuple[str, str]], measured: Iterable[RoundRecord] = ()):
        """tasks: (kind, point) of all tasks. measured: the earlier rounds of a run that is continued."""
        self._so_far = SoFar()
        for record in measured:
            self._so_far.measured(record)
        super().__init__(console, len(tasks))
        self._left = list(tasks)
        self._seen: dict[tuple[str, str], float] = {}
        self._begun = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            for sentence in self._so_far.sentences():
                self._say(sentence)

    def begin(self, kind: str, point: str, text: str) -> None:
        """Begins a task. A task that was not expected, such as a repetition, is added."""
        if (kind, point) not in self._left:
            self._left.append((kind, point))
            self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + 1)
        self._begun = time.monotonic()
        self.show(text)

    def above(self) -> Iterable[RenderableType]:
        """The table of the points so far, as many as fit."""
        height = self._console.size.height - BESIDE_TABLE
        return self._so_far.shown(height) if height > 0 else ()

    def measured(self, record: RoundRecord) -> None:
        """Adds a round of a point."""
        self._so_far.measured(record)

    def end(self, kind: str, point: str) -> None:
        seconds = self._seen[kind, point] = time.monotonic() - self._begun
        self._left.remove((kind, point))
        if kind == "prepare":
            self._so_far.prepared(point)
            many = len({name for _, name in (*self._seen, *self._left)}) > MANY
            name = group_of(point) if many else point
            if not many or all(kind != "prepare" or group_of(other) != name for kind, other in self._left):
                took = "" if many else f" in {format_s(seconds)}"
                self._say(f"{name}: prepared{took}, about {format_s(self.left_s())} left")
        self.advance()

    def drop(self, point: str) -> None:
        """Removes the remaining tasks of a failed point."""
        self._so_far.drop(point)
        self._left = [task for task in self._left if task[1] != point]
        done = self._bar.tasks[0].completed
        self._bar.update(self._task, total=done + len(self._left))

    def left_s(self) -> float:
        """Estimated seconds left. A task takes as long as the same task before it, or the mean of its kind, or
        GUESS_S."""
        by_kind = defaultdict(list)
        for (kind, _), seconds in list(self._seen.items()):  # the log's thread reads it, too
            by_kind[kind].append(seconds)
        mean = {kind: sum(by_kind[kind]) / len(by_kind[kind]) if by_kind[kind] else GUESS_S[kind] for kind in GUESS_S}
        return sum(self._seen.get(task, mean[task[0]]) for task in list(self._left))


def format_s(seconds: float) -> str:
    """75 -> "1 min 15 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
