# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One start of a first run: every part that is not done yet, one after the other, within the time there is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from jaxbench.first_run import document as documents
from jaxbench.first_run import launch, parts
from jaxbench.first_run.document import BROKEN, DONE, OUTCOMES, SKIPPED, STOPPED
from jaxbench.first_run.launch import Ended
from jaxbench.first_run.parts import Part
from jaxbench.first_run.progress import Parts
from jaxbench.machine.start import only_cpu_here
from jaxbench.records.store import hold
from jaxbench.report import first_run as page
from jaxbench.runner.progress import format_s
from jaxbench.runner.run import interrupt, look

BUDGET_S = 1800.0  # of one start
SHARE = {parts.SMOKE: 0.6}  # of it that is over when a stage must end, so that the later ones have time too
LEAST_S = 5.0  # with less left no part is begun

Launch = Callable[[tuple[str, ...], Path, float], Ended]


def first_run(
    folder: Path, console: Console, *, launch: Launch = launch.run, clock: Callable[[], float] = time.monotonic
) -> bool:
    """Runs what `folder` lacks and writes its page, also when it is interrupted. True: all is as expected.

    Raises:
      UserError: the folder is in use, or was begun on another machine.
    """
    began = clock()
    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder):
        machine, asked = _asked(console)
        document = documents.begin(folder, machine, asked)
        todo = [part for part in asked if document["parts"][part.run]["outcome"] != DONE]
        said = f"{len(todo)} of {len(asked)} parts to run, within {format_s(BUDGET_S)}, into {folder}"
        console.print(said, highlight=False, soft_wrap=True)
        signal.signal(signal.SIGTERM, interrupt)
        try:
            with Parts(console, todo) as progress:
                one = _Start(folder, document, progress, launch, clock, began)
                for part in todo:
                    one.measure(part)
        finally:
            page.write(folder, document)
    page.show(document, console)
    return documents.ok(document)


def dry_run(console: Console) -> None:
    """Says which commands a first run consists of here. Nothing is measured or written."""
    for part in _asked(console)[1]:
        console.print(f"jaxbench {' '.join(part.words)}", highlight=False, soft_wrap=True)


def _asked(console: Console) -> tuple[dict[str, Any], list[Part]]:
    """The machine, and what a first run is on it."""
    only_cpu_here()
    machine = look("auto", console)
    return machine, parts.all_of(machine)


@dataclass(frozen=True)
class _Start:
    folder: Path
    document: dict[str, Any]
    progress: Parts
    launch: Launch
    clock: Callable[[], float]
    began: float

    def measure(self, part: Part) -> None:
        """Runs one part, or says that there is no time for it, and records what it came to."""
        self.progress.begin(part)
        start = self.clock()
        stage_s = SHARE.get(part.stage, 1.0) * BUDGET_S
        limit_s = self.began + stage_s - start
        of = f"the {format_s(stage_s)} were over that a start has until the end of this stage"
        if limit_s < LEAST_S:
            self._record(part, SKIPPED, f"Not begun: {of}. The same command goes on with it.", 0.0)
            return
        words = (*part.words, f"--workdir={self.folder / part.run}")
        try:
            ended = self.launch(words, self.folder / "logs" / f"{part.run}.txt", limit_s)
        except KeyboardInterrupt:
            self._record(part, STOPPED, "Interrupted. The same command goes on with it.", self.clock() - start)
            raise
        outcome = OUTCOMES.get(ended.code, BROKEN)
        said = f"Stopped: {of}. The same command goes on with it." if outcome == STOPPED else ended.said
        self._record(part, outcome, said, self.clock() - start)

    def _record(self, part: Part, outcome: str, said: str, seconds: float) -> None:
        documents.record(self.document, part, self.folder, outcome=outcome, seconds=seconds, said=said)
        self.progress.end(part, self.document["parts"][part.run], seconds, self.document["found"][part.run]["items"])
