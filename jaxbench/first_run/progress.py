# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The live line of a first run: the current part, how many are done, the time left. Finished parts leave a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from jaxbench.analysis.expectations import CANNOT_TELL, NO
from jaxbench.first_run.document import SKIPPED, STOPPED
from jaxbench.first_run.parts import GUESS_S, Part
from jaxbench.runner.progress import format_s


class Parts:
    """Counts the remaining parts, and estimates the time left from finished ones."""

    def __init__(self, console: Console, todo: Sequence[Part]):
        self._left = list(todo)
        self._seen: dict[str, list[float]] = {}
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            auto_refresh=False,  # a refreshing thread would run on the cores that are measured
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=len(todo), left="")

    def __enter__(self) -> Parts:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, part: Part) -> None:
        left = f"about {format_s(self.left_s())} left"
        self._bar.update(self._task, description=title(part), left=left, refresh=True)

    def end(self, part: Part, about: Mapping[str, Any], seconds: float, items: Sequence[Mapping[str, Any]]) -> None:
        """about: the part's entry in the document."""
        if about["outcome"] not in (SKIPPED, STOPPED):
            self._seen.setdefault(part.stage, []).append(seconds)
        self._left.remove(part)
        self._bar.update(self._task, advance=1)
        against = [item for item in items if item["agrees"] == NO]
        unknown = sum(item["agrees"] == CANNOT_TELL for item in items)
        word = "NOT as expected" if against else f"as expected, {unknown} inconclusive" if unknown else "as expected"
        if not against and about["outcome"] in (SKIPPED, STOPPED):
            word = "not finished"
        line = f"{title(part):<28} {about['outcome']:<8} {format_s(seconds):>12}   {word}"
        self._console.print(Text(line, style="red" if against else "" if about["outcome"] == "done" else "yellow"))
        for item in against:
            self._console.print(Text(f"  {'; '.join(item['why'][:2])}", style="red"), soft_wrap=True)

    def left_s(self) -> float:
        """Seconds: each part takes the mean of its stage so far, else the guess."""
        mean = {stage: sum(seen) / len(seen) for stage, seen in self._seen.items()}
        return sum(mean.get(part.stage, GUESS_S[part.stage]) for part in self._left)


def title(part: Part) -> str:
    """ "smoke: cnn", "machine"."""
    return part.stage if part.stage == part.experiment else f"{part.stage}: {part.experiment}"
