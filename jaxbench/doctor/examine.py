# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Asks every question about this machine, shows the answers as a table, and ends with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jaxbench.doctor import (
    accelerators,
    core_contention,
    frequency,
    load,
    memory,
    network,
    processor,
    stability,
    storage,
    timer,
    versions,
)
from jaxbench.doctor.finding import Finding, as_json, worst
from jaxbench.errors import UserError
from jaxbench.records.store import write_json

FILE = "doctor.json"
STYLES = {"good": "green", "doubtful": "yellow", "bad": "bold red", "unknown": "dim"}
Question = tuple[str, Callable[[], list[Finding]]]  # what is being done, and the doing


def examine(console: Console, *, folder: Path, seconds: float = 10.0) -> list[Finding]:
    """Examines this machine and prints what it finds.

    Args:
      folder: where results would be written. seconds: how long the reference kernel runs.
    """
    findings = []
    # Refreshed by hand: a refreshing thread would run on the cores that are examined.
    with Live(console=console, auto_refresh=False, transient=True) as line:
        for doing, question in questions(folder, seconds):
            line.update(Text(f"{doing} ..."), refresh=True)
            findings += answered(doing, question)
    show(findings, console)
    return findings


def questions(folder: Path, seconds: float) -> Iterator[Question]:
    """In this order: what else runs is asked before anything of ours runs, heat after all of it."""
    throttled = frequency.throttles()
    yield "Watching what else runs (1 s)", load.examine
    yield "Reading the cores", processor.examine
    yield "Reading their clock", frequency.examine
    yield "Working on every core, alone and together (5 s)", core_contention.examine
    yield "Reading memory", memory.examine
    yield "Writing to the disk", lambda: storage.examine(folder)
    yield "Reading the time", timer.examine
    yield "Meeting another process", network.examine
    yield "Comparing versions", versions.examine
    platform = ""

    def devices() -> list[Finding]:
        nonlocal platform
        answer = accelerators.seen()
        platform = str((answer.value or {}).get("platform", ""))
        return accelerators.examine(accelerators.look(), answer, versions.installed())

    yield "Asking JAX for devices", devices
    if platform:
        doing = f"Multiplying matrices ({seconds:g} s)"
        yield doing, lambda: kernel(platform, seconds)
    yield "Reading the clock again", lambda: [frequency.heat(throttled, frequency.throttles())]


def kernel(platform: str, seconds: float) -> list[Finding]:
    """The reference kernel, and what else ran at that time: a load that comes late looks like drift."""
    before, spent_s = load.read(Path("/")), load.own_s()
    findings = stability.examine(stability.measure(platform, seconds))
    return [*findings, *load.meanwhile(before, load.read(Path("/")), load.own_s() - spent_s)]


def answered(doing: str, question: Callable[[], list[Finding]]) -> list[Finding]:
    """What cannot be read is a finding too."""
    try:
        return question()
    except (OSError, ValueError) as error:
        return [Finding(doing.partition(" (")[0], "unknown", f"This could not be examined ({error}).")]


def ok(findings: Sequence[Finding]) -> bool:
    return worst(findings) != "bad"


def verdict(findings: Sequence[Finding]) -> str:
    """One sentence; what is unknown is no reproach."""
    names = {state: _names(findings, state) for state in ("bad", "doubtful")}
    if names["bad"]:
        return f"This machine is not fit to measure on: {names['bad']}."
    if names["doubtful"]:
        return f"This machine is fit to measure on, with doubts: {names['doubtful']}."
    return "This machine is fit to measure on."


def _names(findings: Sequence[Finding], state: str) -> str:
    return ", ".join(dict.fromkeys(finding.name for finding in findings if finding.state == state))


def show(findings: Sequence[Finding], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in ("", "what", "found"):
        table.add_column(column)
    for finding in findings:
        said = Text(finding.said)
        if finding.advice:
            said.append(f"\n{finding.advice}", style="italic")
        table.add_row(Text(finding.state, style=STYLES[finding.state]), Text(finding.name), said)
    console.print(table)
    console.print(Text(verdict(findings), style="bold"))


def write(findings: Sequence[Finding], path: Path) -> None:
    """`doctor.json`: every finding with its numbers, and the verdict. Raises UserError."""
    value = {
        "ok": ok(findings),
        "verdict": verdict(findings),
        "findings": [as_json(finding) for finding in findings],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, value)
    except OSError as error:
        raise UserError(f"cannot write '{path}' ({error.strerror}): choose another WORKDIR.") from error
