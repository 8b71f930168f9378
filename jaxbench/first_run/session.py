# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One start of a first run: runs the unfinished parts in sequence within the time budget."""

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
from jaxbench.records.store import lock_folder
from jaxbench.report import first_run as page
from jaxbench.runner.progress import format_s
from jaxbench.runner.run import interrupt, probe_machine

BUDGET_S = 1800.0  # seconds for one start
SHARE = {parts.SMOKE: 0.6}  # a stage must end by this share of the budget, so that later stages have time, too
MIN_LEFT_S = 5.0  # with less time left no part starts

Launch = Callable[[tuple[str, ...], Path, float], Ended]


def first_run(
    folder: Path, console: Console, *, launch: Launch = launch.run, clock: Callable[[], float] = time.monotonic
) -> bool:
    """Runs the parts that `folder` does not have yet, and writes its page, even after an interrupt.

    Returns whether everything is as expected.

    Raises:
      UserError: the folder is in use, or was started on another machine.
    """
    began = clock()
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        machine, every = _machine_and_parts(console)
        document = documents.begin(folder, machine, every)
        todo = [part for part in every if document["parts"][part.run]["outcome"] != DONE]
        title = f"running {len(todo)} of {len(every)} parts, within {format_s(BUDGET_S)}, into {folder}"
        console.print(title, highlight=False, soft_wrap=True)
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
    """Prints the commands of a first run on this machine. Measures and writes nothing."""
    for part in _machine_and_parts(console)[1]:
        console.print(f"jaxbench {' '.join(part.words)}", highlight=False, soft_wrap=True)


def _machine_and_parts(console: Console) -> tuple[dict[str, Any], list[Part]]:
    only_cpu_here()
    machine = probe_machine("auto", console)
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
        """Runs one part, unless there is no time left for it, and records its outcome."""
        self.progress.begin(part)
        start = self.clock()
        stage_s = SHARE.get(part.stage, 1.0) * BUDGET_S
        limit_s = self.began + stage_s - start
        reason = f"this stage must end within {format_s(stage_s)} of the start. The same command continues with it."
        if limit_s < MIN_LEFT_S:
            self._record(part, SKIPPED, f"Not started: {reason}", 0.0)
            return
        words = (*part.words, f"--workdir={self.folder / part.run}")
        try:
            ended = self.launch(words, self.folder / "logs" / f"{part.run}.txt", limit_s)
        except KeyboardInterrupt:
            self._record(part, STOPPED, "Interrupted. The same command continues with it.", self.clock() - start)
            raise
        outcome = OUTCOMES.get(ended.code, BROKEN)
        self._record(
            part, outcome, f"Stopped: {reason}" if outcome == STOPPED else ended.last_line, self.clock() - start
        )

    def _record(self, part: Part, outcome: str, message: str, seconds: float) -> None:
        documents.record(self.document, part, self.folder, outcome=outcome, seconds=seconds, message=message)
        self.progress.end(part, self.document["parts"][part.run], seconds, self.document["found"][part.run]["items"])
