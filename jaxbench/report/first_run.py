# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a first run: what agrees with expectation and what does not, for a reader who meets the suite here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench import __version__
from jaxbench.analysis.expectations import CANNOT_TELL, NO, YES
from jaxbench.errors import UserError
from jaxbench.records.store import write_atomic
from jaxbench.report import first_run_tables, page
from jaxbench.report.page import Picture
from jaxbench.report.table import Table

PAGE = "first-run.html"
ABOUT = (
    "jaxbench measures how training with JAX scales from device to device. A first run tries on this machine what the "
    "suite consists of, and holds what it finds against what must be so on any machine. It does not say whether the "
    "machine is fast: it says whether the suite's answers on it can be believed."
)
# The figures shown, below the folder: what each is of.
FIGURES = (
    ("scaling-cnn/figures/scaling", "How the training of cnn, a small convolutional network, scales."),
    ("scaling-gpt/figures/scaling", "How the training of gpt, a transformer, scales."),
    ("machine/figures/roofline", "What the machine's kernels reach, under the limits that were measured on it."),
    ("profile-cnn/figures/profile", "What the time of a training step of cnn goes to, from a trace."),
)
Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FirstRunPage:
    """Everything on the page, in its order."""

    name: str
    heading: str
    headlines: list[str]
    alarm: bool
    about: str
    against: Table
    table: Table
    grid: Table
    pictures: list[Picture]
    machine: Table
    commands: str
    unfinished: bool
    parts: Table


def write(folder: Path, document: Document) -> None:
    """Writes `first-run.html` into `folder` from the document and the figures of its runs.

    Raises:
      UserError: the folder cannot be written.
    """
    try:
        write_atomic(folder / PAGE, render(document, _pictures(folder)))
    except OSError as error:
        raise UserError(f"cannot write the page into '{folder}' ({error.strerror}).") from error


def render(document: Document, pictures: list[Picture]) -> str:
    """The page as HTML. Everything that comes from the run is escaped; the figures are this package's own."""
    items = first_run_tables.items(document)
    name = first_run_tables.machine_name(document["machine"])
    made = FirstRunPage(
        name=f"First run on {name}",
        heading=f"First run on {name}",
        headlines=headlines(document),
        alarm=any(item["agrees"] == NO for item in items),
        about=ABOUT,
        against=first_run_tables.against(items),
        table=first_run_tables.expectations(items),
        grid=first_run_tables.grid(document),
        pictures=pictures,
        machine=first_run_tables.machine(document),
        commands=commands(document),
        unfinished=any(about["outcome"] != "done" for about in document["parts"].values()),
        parts=first_run_tables.parts(document["parts"]),
    )
    sources = [("The machine and its software", page.pretty(document["machine"]))]
    return page.template("first_run.html").render(page=made, sources=sources, version=__version__)


def headlines(document: Document) -> list[str]:
    """How many expectations agree, and what was not measured: the first sentence is the answer."""
    items = first_run_tables.items(document)
    counts = {word: sum(item["agrees"] == word for item in items) for word in (YES, NO, CANNOT_TELL)}
    left = [about for about in document["parts"].values() if about["outcome"] in ("skipped", "stopped", "not yet")]
    if counts[NO]:
        answer = f"Not everything is as expected: {counts[NO]} of {len(items)} expectations are NOT met."
    elif left:
        answer = f"Nothing is against expectation so far: {counts[YES]} of {len(items)} expectations are met."
    else:
        answer = (
            f"Everything is as expected, as far as it can be told: {counts[YES]} of {len(items)} expectations are met."
        )
    unknown = f" Of {counts[CANNOT_TELL]} it cannot be told, for the reasons below." if counts[CANNOT_TELL] else ""
    said = [answer + unknown]
    if left:
        said.append(
            f"{len(left)} of {len(document['parts'])} parts are not finished, which the table below says one by one: "
            "the same command with the same WORKDIR goes on with them."
        )
    return said


def commands(document: Document) -> str:
    """How many commands, how long they took, and what they came to."""
    abouts = list(document["parts"].values())
    words = [about["outcome"] for about in abouts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return f"{len(abouts)} commands in {sum(about['seconds'] for about in abouts) / 60:.0f} minutes: {counts}"


def show(document: Document, console: Console) -> None:
    """The answer, what is against expectation, and what cannot be told, on the terminal."""
    console.print()
    for sentence in headlines(document):
        console.print(Text(sentence, style="bold"))
    for word in (NO, CANNOT_TELL):
        for item in first_run_tables.items(document):
            if item["agrees"] == word:
                why = "; ".join(item["why"][:2]) or item["found"]
                console.print(
                    Text(f"  {word}: {item['run']}: {item['expected']} {why}", style="red" if word == NO else "")
                )


def _pictures(folder: Path) -> list[Picture]:
    return list(_found_pictures(folder))


def _found_pictures(folder: Path) -> Iterator[Picture]:
    for name, caption in FIGURES:
        file = folder / f"{name}.svg"
        if file.is_file():
            yield Picture(name=name.replace("/figures/", "-"), svg=file.read_bytes(), caption=caption)
