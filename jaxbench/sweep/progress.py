# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal's display while points are measured: the results so far, the current task and the time left.

It is drawn only between measurements. Without a terminal, each point leaves a line when it is prepared, and another
when it is measured. `heartbeat` prints lines during long tasks, so that no log is silent for long.
"""

from __future__ import annotations

import itertools
import math
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Self

from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from jaxbench.core.schema import RoundRecord
from jaxbench.digits import counted, digits

AGAIN = "prepare again"  # a point that another process has checked
# The same two in a process that works at the same time as another: done soon after that one, however long that took.
ALONG = {"prepare": "prepare along", AGAIN: "prepare again along"}
DOUBLE = "double round"  # with blocks of twice the length, too
OTHER_ROUND = {"round": DOUBLE, DOUBLE: "round"}
PREPARES = ("prepare", ALONG["prepare"])
PACE = "pace"  # find the block length of a point that was prepared at the same time as others

# First guesses, seconds; replaced by measured times.
GUESS_S = {"prepare": 5.0, AGAIN: 2.0, PACE: 0.5, "round": 0.6, "profile": 5.0, **dict.fromkeys(ALONG.values(), 0.0)}

SILENT_S = 25.0  # CI services end jobs that print nothing for minutes; jaxbench prints a line every 30 s

# Lines of a terminal that the table of points leaves free: for its heading, its note and the bar.
OTHER_LINES = 10
NOTE = (
    "Median over the rounds so far, with its 95 % confidence interval as if rounds were independent (<6 rounds: lowest "
    "and highest). The report's intervals include process-to-process variation."
)
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))  # any shorter time is in ns, too
MANY = 10  # more points than these have a line in a log for each group


@contextmanager
def heartbeat(console: Console, said: Callable[[], str], *, terminal: bool = False) -> Iterator[None]:
    """Prints the elapsed time and `said()`, the finished and the remaining work, every SILENT_S seconds of the block.

    said: called from another thread. terminal: print on a terminal too, for a verb without a live line. The thread
    computes nothing between two lines, so it may run during measurements.
    """
    over, begun = threading.Event(), time.monotonic()

    def beat() -> None:
        while not over.wait(SILENT_S):  # returns True as soon as the block ends
            line = f"{format_s(time.monotonic() - begun)}: {said()}"
            console.print(Text(line, style="dim"), soft_wrap=True)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    if terminal or not console.is_terminal:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.ident is not None:  # joining a thread that was not started is an error
            thread.join()


@contextmanager
def working(console: Console, text: str) -> Iterator[None]:
    """Shows `text` for the time of the block: with a spinner on a terminal, by `heartbeat` in a log."""
    with console.status(text), heartbeat(console, lambda: text):
        yield


class ProgressLine:
    """A bar with the current task, the number of finished tasks out of `total`, and the time left."""

    def __init__(self, console: Console, total: int):
        self._console = console
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn())
        # Without auto_refresh, because a refreshing thread would run on the cores that are measured.
        self._bar = _Bar(
            *columns, TextColumn("{task.fields[left]}"), console=console, auto_refresh=False, transient=True
        )
        self._bar.above = self.above
        self._task = self._bar.add_task("starting", total=total, left="")
        self._alive = ExitStack()

    def __enter__(self) -> Self:
        self._bar.start()
        self._alive.enter_context(heartbeat(self._console, self._status_line))
        return self

    def _status_line(self) -> str:
        task = self._bar.tasks[0]
        done = f"{task.description}: {task.completed:.0f} of {task.total or 0:.0f} done"
        return ", ".join(filter(None, (done, task.fields["left"])))  # before the first task, nobody knows what is left

    def say(self, sentence: str, *, terminal: bool = True) -> None:
        """Prints a line that stays. terminal: on a terminal too, which else has only the bar."""
        if terminal or not self._console.is_terminal:
            self._console.print(Text(sentence), soft_wrap=True)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
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

    above: Callable[[], Iterable[RenderableType]] = tuple

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from self.above()
        yield from super().get_renderables()


class SweepProgress(ProgressLine):
    """Counts tasks (the keys of `GUESS_S`) by point, and estimates the time left from finished ones."""

    def __init__(
        self,
        console: Console,
        tasks: list[tuple[str, str]],
        measured: Iterable[RoundRecord] = (),
        *,
        round_s: float = GUESS_S["round"],
    ):
        """tasks: (kind, point) of all tasks. measured: the earlier rounds of a run that is continued. round_s: the
        guess for a round, before the first."""
        self._guess_s = GUESS_S | {"round": round_s, DOUBLE: 2 * round_s}
        self._so_far = SoFar()
        for record in measured:
            self._so_far.measured(record)
        super().__init__(console, len(tasks))
        self._left = list(tasks)
        self._seen: dict[tuple[str, str], float] = {}
        self._begun = time.monotonic()
        self.preparation = ""  # how many programs were compiled so far, shown while a point is prepared

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        super().__exit__(kind, *rest)
        if kind is None:
            for sentence in self._so_far.sentences():
                self.say(sentence, terminal=False)

    def begin(self, kind: str, point: str, text: str) -> None:
        """Begins a task. A task that was not expected, such as a repetition, is added."""
        if (kind, point) not in self._left and kind in OTHER_ROUND:  # a group of processes ended early
            self.recast(OTHER_ROUND[kind], kind, [point])
        if (kind, point) not in self._left:
            self._left.append((kind, point))
            self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + 1)
        self._begun = time.monotonic()
        prepares = kind not in ("round", DOUBLE, "profile") and self.preparation
        self.show(f"{text} ({self.preparation})" if prepares else text)

    def expect(self, kind: str, points: Sequence[str]) -> None:
        """Adds tasks that were not known at the start, before they begin."""
        self._left += [(kind, point) for point in points]
        self._bar.update(self._task, total=(self._bar.tasks[0].total or 0) + len(points))

    def recast(self, kind: str, instead: str, points: Iterable[str]) -> None:
        """Makes an expected task of each of these points one of another kind, because it takes another time."""
        for task in [(kind, point) for point in points]:
            if task in self._left:
                self._left[self._left.index(task)] = (instead, task[1])

    def above(self) -> Iterable[RenderableType]:
        """The table of the points so far, as many as fit."""
        height = self._console.size.height - OTHER_LINES
        return self._so_far.shown(height) if height > 0 else ()

    def measured(self, record: RoundRecord) -> None:
        """Adds a round of a point."""
        self._so_far.measured(record)

    def end(self, kind: str, point: str) -> None:
        seconds = self._seen[kind, point] = time.monotonic() - self._begun
        self._left.remove((kind, point))
        if kind in PREPARES:
            self._so_far.prepared(point)
            many = len({name for _, name in (*self._seen, *self._left)}) > MANY
            name = group_of(point) if many else point
            if not many or all(kind not in PREPARES or group_of(other) != name for kind, other in self._left):
                took = "" if many else f" in {format_s(seconds)}"
                self.say(f"{name}: prepared{took}, about {format_s(self.left_s())} left", terminal=False)
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
        mean = self._guess_s | {kind: statistics.fmean(seconds) for kind, seconds in by_kind.items()}
        return sum(self._seen.get(task, mean[task[0]]) for task in list(self._left))


def format_s(seconds: float) -> str:
    """75 -> "1 min 15 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def group_of(point: str) -> str:
    """Kernel and type, or strategy and scaling: "triad/float32/65536/jit" -> "triad/float32"."""
    return "/".join(point.split("/")[:2])


@dataclass
class SoFar:
    """By point, the median time per step of each round in seconds. A point that is only prepared has none."""

    rounds: dict[str, list[float]] = field(default_factory=dict)
    newest: str = ""  # the point that was touched last

    def prepared(self, point: str) -> None:
        self.rounds.setdefault(point, [])
        self.newest = point

    def measured(self, record: RoundRecord) -> None:
        self.prepared(record.point)
        self.rounds[record.point].append(statistics.median(record.block_s) / record.steps)

    def drop(self, point: str) -> None:
        """A point that failed is not shown."""
        self.rounds.pop(point, None)

    def shown(self, height: int) -> Iterator[RenderableType]:
        """The table of points and, below it, an explanation of its numbers."""
        if self.rounds:
            yield self._table(height)
        if any(self.rounds.values()):
            yield Text(NOTE, style="dim")

    def _table(self, height: int) -> Table:
        """A line for each point; if there are more than `height` points, those around the newest one."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name, justify in (("point", "left"), ("rounds", "right"), ("per step", "right"), ("interval", "left")):
            table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        points = list(self.rounds)
        middle = points.index(self.newest) if self.newest in points else 0
        # The newest point is in the middle, except near the ends of the list: the window is always full.
        first = max(0, min(middle - height // 2, len(points) - height))
        for point in points[first : first + height]:
            table.add_row(*(Text(cell) for cell in (point, *self._cells(point))))
        if len(points) > height:
            table.add_row(Text(f"{height} of {len(points)} points are shown", style="dim"))
        return table

    def sentences(self) -> list[str]:
        """One sentence for each measured point or, if there are more than MANY, one for each group.

        Their times stand in the report's table, which follows: it leaves out disturbed rounds, so its numbers differ
        from those of all rounds.
        """
        measured = [point for point, rounds in self.rounds.items() if rounds]
        if len(self.rounds) > MANY:
            groups = itertools.groupby(sorted(measured, key=group_of), group_of)
            return [f"{group}: {counted(len(list(points)), 'point')} measured" for group, points in groups]
        return [f"{point}: measured in {counted(len(self.rounds[point]), 'round')}" for point in measured]

    def _cells(self, point: str) -> tuple[str, str, str]:
        """(the number of rounds, their median, its confidence interval in the same unit)."""
        rounds = self.rounds[point]
        if not rounds:
            return "0", "prepared", ""
        low, high = interval(rounds)
        median = statistics.median(rounds)
        scale, unit = next((size or 1e-9, name) for size, name in _UNITS if median >= size)
        return str(len(rounds)), f"{digits(median / scale)} {unit}", f"[{digits(low / scale)}, {digits(high / scale)}]"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median of independent values of any distribution, by order statistics.

    It goes from the k-th lowest to the k-th highest, with the largest k for which P(B < k) <= 2.5 %, where B is
    binomial (n, 1/2). With fewer than six values there is no such k. Then the result is their range, which covers the
    median less often.
    """
    ordered, count = sorted(values), len(values)
    k, below = 0, 1 / 2**count  # below: P(B <= k)
    while below <= 0.025:
        k += 1
        below += math.comb(count, k) / 2**count
    k = max(k, 1)
    return ordered[k - 1], ordered[count - k]
