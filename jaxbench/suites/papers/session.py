# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench paper ID`: runs the commands of a paper, judges its claims, and writes paper.json, figure and page.

`paper.json` has the runs, the claims with their verdicts, and the machine. Page and gallery are made from it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jaxbench import discovery
from jaxbench.core.store import lock_folder, write_json
from jaxbench.errors import UserError
from jaxbench.features.cards.card import redact
from jaxbench.features.comparison.claims import FAILS, HOLDS, NOT_TESTABLE, decide_claim, why_undecided
from jaxbench.features.comparison.judge import CANNOT_TELL
from jaxbench.suites import command
from jaxbench.suites.command import ASKED, DONE, SKIPPED, Document, Launch
from jaxbench.suites.papers import figure, page, readers
from jaxbench.suites.papers import paper as library
from jaxbench.suites.papers.paper import Claim, Evidence, NotTestable, Paper
from jaxbench.sweep.progress import format_s, heartbeat

FOLDER = Path("results") / "papers"
PRESETS = ("auto", "paper")
LIMIT_S = {"auto": 3600.0, "paper": 24 * 3600.0}  # of one run
_STYLES = {HOLDS: "green", FAILS: "bold red"}


def show_list(console: Console) -> None:
    """Every paper with its expected minutes on two cores, its number of claims and its citation."""
    for name in library.names():
        paper = library.load(name)
        about = f"{paper.minutes:>4.0f} min  {len(paper.claims)} claims  {paper.citation}"
        console.print(f"  {name:<17} {about}", highlight=False, soft_wrap=True)


def wanted(id: str, preset: str) -> Paper:
    """The paper of a command. Raises UserError for an unknown paper or preset."""
    asked = library.load(id)
    if preset not in PRESETS:
        raise UserError(f"--preset={preset} is not a size of a paper: use {' or '.join(PRESETS)}.")
    return asked


def paper(
    id: str,
    preset: str,
    folder: Path,
    console: Console,
    *,
    launch: Launch = command.launch,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Runs what `folder` lacks, and writes paper.json, figure and page, even after an interrupt.

    Returns whether every run ended well: a claim that does not hold here is an answer, not a failure.

    Raises:
      UserError: an unknown paper or preset; a folder in use, or of another paper.
    """

    asked = wanted(id, preset)
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        document = begin(asked, folder, preset)
        todo = [run for run in asked.runs if document["runs"][run.name]["outcome"] != DONE]
        minutes = f", about {sum(run.minutes for run in todo):.0f} minutes on two cores" if preset == "auto" else ""
        title = f"{asked.id}: {len(todo)} of {len(asked.runs)} runs to do{minutes}, into {folder}"
        console.print(title, soft_wrap=True)
        try:
            for number, run in enumerate(todo, 1):
                words, record = run.at(preset), partial(command.add, document["runs"][run.name])
                log = folder / "logs" / f"{run.name}.txt"
                with heartbeat(console, partial(_said, f"run {number} of {len(todo)}", log), terminal=True):
                    # Claims of the other runs are still judged.
                    if words[0] == "run" and words[1] not in discovery.experiments():
                        record(SKIPPED, f"This version has no experiment '{words[1]}'.", 0.0)
                    else:
                        limit_s = LIMIT_S[preset]
                        command.measure(words, folder, run.name, limit_s, launch=launch, clock=clock, record=record)
                # After each run, so that a suite that is stopped leaves the verdicts of what it has measured.
                judge(document, asked, Evidence(folder, document["runs"]))
                about = document["runs"][run.name]
                line = f"  {run.name:<14} {about['outcome']:<8} {format_s(about['seconds']):>12}"
                said, style = ("", "") if about["outcome"] == DONE else (f"   {about['said']}", "yellow")
                console.print(Text(line + said, style=style), soft_wrap=True)
        finally:
            write(asked, folder, document)
    _show(document, console)
    console.print(f"\nPage: {folder / page.PAGE}", highlight=False, soft_wrap=True)
    return all(about["outcome"] in (DONE, SKIPPED) for about in document["runs"].values())


def dry_run(id: str, preset: str, console: Console) -> None:
    """Prints the commands of a paper. Measures and writes nothing. Raises UserError: an unknown paper or preset."""
    for run in wanted(id, preset).runs:
        console.print(f"jaxbench {' '.join(run.at(preset))}", highlight=False, soft_wrap=True)


def begin(paper: Paper, folder: Path, preset: str) -> Document:
    """The document of a folder: a new one, or the existing one with this version's runs.

    Raises:
      UserError: the folder is of another paper or preset, or its document cannot be read.
    """
    old = page.read(folder / page.DOCUMENT) if (folder / page.DOCUMENT).exists() else {"runs": {}}
    for key, now in (("id", paper.id), ("preset", preset)):
        if old.get(key, now) != now:
            raise UserError(f"'{folder}' holds {key} '{old[key]}', not '{now}': choose a new --workdir.")
    new = {"outcome": ASKED, "seconds": 0.0, "said": ""}
    runs = {}
    for run in paper.runs:
        words, before = list(run.at(preset)), old["runs"].get(run.name, {})
        kept = before if before.get("words", words) == words else {}  # this version runs another command: to be done
        runs[run.name] = new | kept | {"words": words}
    about = {"id": paper.id, "title": paper.title, "citation": paper.citation, "preset": preset}
    return {"kind": page.KIND, "schema": 1, **about, "runs": runs, "claims": [], "machine": old.get("machine", {})}


def write(paper: Paper, folder: Path, document: Document) -> None:
    """Judges the claims, and writes paper.json, the figure and the page."""
    runs = Evidence(folder, document["runs"])
    judge(document, paper, runs)
    figure.write(paper, runs)  # before the page, which holds it
    page.write(folder, document)


def judge(document: Document, paper: Paper, runs: Evidence) -> None:
    """Reads every claim of the paper from the runs so far, and writes the document."""
    document["claims"] = [redact(judged(claim, runs), private=True) for claim in paper.claims]
    if manifests := runs.manifests():  # all runs of a suite are of one machine
        document["machine"] = redact({name: value for name, value in manifests[0].items() if name != "plan"})
    write_json(runs.folder / page.DOCUMENT, document)


def judged(claim: Claim, runs: Evidence) -> Document:
    """A claim with its number, its verdict and the reason for one that decides nothing."""
    names = ("name", "sentence", "source", "quantity", "limit", "here")
    entry: Document = {name: getattr(claim, name) for name in names}
    entry |= {"value": None, "lo": None, "hi": None, "detail": "", "why": ""}  # JSON has no infinity and no NaN
    try:
        value, detail = readers.read(claim, runs)
    except NotTestable as reason:
        return entry | {"verdict": reason.verdict, "why": str(reason)}
    except UserError as error:  # a damaged run folder takes down its own claims only
        return entry | {"verdict": NOT_TESTABLE, "why": f"Its records cannot be read: {error}"}
    verdict = decide_claim(value, claim.low, claim.high)
    ends = {"value": value.value, "lo": value.lo, "hi": value.hi}
    entry |= {name: each if math.isfinite(each) else None for name, each in ends.items()}
    why = why_undecided(value, claim.low, claim.high) if verdict == CANNOT_TELL else ""
    return entry | {"verdict": verdict, "why": why, "detail": detail}


def _said(run: str, log: Path) -> str:
    """ "run 1 of 2, cnn: " and the newest line of its log, which says what is left of it."""
    return f"{run}, {log.stem}: {command.last_line(log) if log.exists() else 'starting'}"


def _show(document: Document, console: Console) -> None:
    """Prints each claim with its number and verdict."""
    console.print()
    for claim in document["claims"]:
        number = page.number(claim)
        line = f"{claim['verdict']}: {claim['sentence']}"
        console.print(Text(line, style=_STYLES.get(claim["verdict"], "")), soft_wrap=True)
        read = f"{claim['quantity']}: {number} ({claim['detail']}), claimed {claim['limit']}. " if number else ""
        console.print(Text(f"    {read}{claim['why']}", style="dim"), soft_wrap=True)
