# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One start of `jaxbench paper`: what is missing is run, then claims, figure and page are made. It may be killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.first_run import launch as launch_lib
from jaxbench.first_run.document import BROKEN, DONE, OUTCOMES, SKIPPED, STOPPED
from jaxbench.first_run.launch import Ended
from jaxbench.papers import document as documents
from jaxbench.papers import figure, library, page
from jaxbench.papers.document import Document
from jaxbench.papers.evidence import Evidence
from jaxbench.papers.paper import Paper, Run
from jaxbench.records.store import lock_folder
from jaxbench.runner.progress import format_s, heartbeat
from jaxbench.runner.run import interrupt
from jaxbench.verdicts.judge import FAILS, HOLDS

FOLDER = Path("results") / "papers"
PRESETS = ("auto", "paper")
LIMIT_S = {"auto": 3600.0, "paper": 24 * 3600.0}  # of one run
_STYLES = {HOLDS: "green", FAILS: "bold red"}

Launch = Callable[[tuple[str, ...], Path, float], Ended]


def show_list(console: Console) -> None:
    """Every paper with its expected minutes on two cores, its number of claims and its citation."""
    for name in library.names():
        paper = library.load(name)
        about = f"{paper.minutes:>4.0f} min  {len(paper.claims)} claims  {paper.citation}"
        console.print(f"  {name:<17} {about}", highlight=False, soft_wrap=True)


def paper(
    id: str, preset: str, folder: Path, console: Console, *, launch: Launch = launch_lib.run,
    clock: Callable[[], float] = time.monotonic,
) -> bool:  # fmt: skip
    """Runs what `folder` lacks, and writes paper.json, figure and page, even after an interrupt.

    Returns whether every run ended well: a claim that does not hold here is an answer, not a failure.

    Raises:
      UserError: an unknown paper or preset; a folder in use, or of another paper.
    """
    asked = library.load(id)
    if preset not in PRESETS:
        raise UserError(f"--preset={preset} is not a size of a paper: use {' or '.join(PRESETS)}.")
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        document = documents.begin(asked, folder, preset)
        todo = [run for run in asked.runs if document["runs"][run.name]["outcome"] != DONE]
        minutes = f", about {sum(run.minutes for run in todo):.0f} minutes on two cores" if preset == "auto" else ""
        console.print(
            f"{asked.id}: {len(todo)} of {len(asked.runs)} runs to do{minutes}, into {folder}", soft_wrap=True
        )
        signal.signal(signal.SIGTERM, interrupt)
        try:
            for number, run in enumerate(todo, 1):
                log = folder / "logs" / f"{run.name}.txt"
                with heartbeat(console, partial(_said, f"run {number} of {len(todo)}", log), terminal=True):
                    _measure(run, preset, folder, document, launch, clock)
                documents.judge(document, asked, Evidence(folder, document["runs"]))
                _show_run(console, run.name, document)
        finally:
            write(asked, folder, document)
    show(document, console)
    console.print(f"\nPage: {folder / page.PAGE}", highlight=False, soft_wrap=True)
    return all(about["outcome"] in (DONE, SKIPPED) for about in document["runs"].values())


def write(paper: Paper, folder: Path, document: Document) -> None:
    """Judges the claims, and writes paper.json, the figure and the page."""
    found = Evidence(folder, document["runs"])
    documents.judge(document, paper, found)
    figure.write(paper, found, document["claims"])
    page.write(folder, document)


def dry_run(id: str, preset: str, console: Console) -> None:
    """Prints the commands of a paper. Measures and writes nothing."""
    for run in library.load(id).runs:
        console.print(f"jaxbench {' '.join(run.at(preset))}", highlight=False, soft_wrap=True)


def _said(run: str, log: Path) -> str:
    """ "run 1 of 2, cnn: " and the newest line of its log, which says what is left of it."""
    return f"{run}, {log.stem}: {launch_lib.last_line(log) if log.exists() else 'starting'}"


def _measure(
    run: Run, preset: str, folder: Path, document: Document, launch: Launch, clock: Callable[[], float]
) -> None:
    """Runs one command in a process of its own, and records how it ended."""
    words, start = run.at(preset), clock()
    if words[0] == "run" and words[1] not in discovery.experiments():
        message = f"This version has no experiment '{words[1]}'."
        documents.record(document, run.name, outcome=SKIPPED, seconds=0.0, message=message)
        return
    command = (*words, f"--workdir={folder / run.name}")
    try:
        ended = launch(command, folder / "logs" / f"{run.name}.txt", LIMIT_S[preset])
    except KeyboardInterrupt:
        message = "Interrupted. The same command continues with it."
        documents.record(document, run.name, outcome=STOPPED, seconds=clock() - start, message=message)
        raise
    outcome = OUTCOMES.get(ended.code, BROKEN)
    documents.record(document, run.name, outcome=outcome, seconds=clock() - start, message=ended.last_line)


def _show_run(console: Console, name: str, document: Document) -> None:
    about = document["runs"][name]
    line = f"  {name:<14} {about['outcome']:<8} {format_s(about['seconds']):>12}"
    message = "" if about["outcome"] == DONE else f"   {about['said']}"
    console.print(Text(line + message, style="" if about["outcome"] == DONE else "yellow"), soft_wrap=True)


def show(document: Document, console: Console) -> None:
    """Prints each claim with its number and verdict."""
    console.print()
    for claim in document["claims"]:
        number = documents.number(claim)
        line = f"{claim['verdict']}: {claim['sentence']}"
        console.print(Text(line, style=_STYLES.get(claim["verdict"], "")), soft_wrap=True)
        read = f"{claim['quantity']}: {number} ({claim['detail']}), claimed {claim['limit']}. " if number else ""
        console.print(Text(f"    {read}{claim['why']}", style="dim"), soft_wrap=True)
