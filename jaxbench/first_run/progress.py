# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The live line of a first run: the current part, how many are done, the time left. A finished part leaves a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench.analysis.expectations import CANNOT_TELL, NO
from jaxbench.first_run.document import SKIPPED, STOPPED
from jaxbench.first_run.parts import GUESS_S, Part
from jaxbench.runner.progress import ProgressLine, format_s


class Parts(ProgressLine):
    """Counts the remaining parts, and estimates the time left from finished ones."""

    def __init__(self, console: Console, todo: Sequence[Part]):
        super().__init__(console, len(todo))
        self._left = list(todo)
        self._seen: dict[str, list[float]] = {}

    def begin(self, part: Part) -> None:
        self.show(title(part))

    def end(self, part: Part, about: Mapping[str, Any], seconds: float, items: Sequence[Mapping[str, Any]]) -> None:
        """Prints the line of a finished part. about: its entry in the document. items: its expectations."""
        if about["outcome"] not in (SKIPPED, STOPPED):
            self._seen.setdefault(part.stage, []).append(seconds)
        self._left.remove(part)
        self.advance()
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
        """The estimated seconds of the remaining parts: the mean of the part's stage so far, else GUESS_S."""
        mean = {stage: sum(seen) / len(seen) for stage, seen in self._seen.items()}
        return sum(mean.get(part.stage, GUESS_S[part.stage]) for part in self._left)


def title(part: Part) -> str:
    """The part's name in the terminal: "smoke: cnn", "machine"."""
    return part.stage if part.stage == part.experiment else f"{part.stage}: {part.experiment}"
