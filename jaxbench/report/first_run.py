# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The page of a first run: which expectations are met, for a reader who is new to the suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxbench import __version__
from jaxbench.analysis.expectations import CANNOT_TELL, NO, YES
from jaxbench.errors import UserError
from jaxbench.records.store import write_atomic
from jaxbench.report import card_table, first_run_tables, page
from jaxbench.report.page import Picture

PAGE = "first-run.html"
ABOUT = (
    "jaxbench measures how JAX training scales over devices. A first run tries every part of the suite on this machine "
    "and compares the results with expectations that hold on any machine. It does not show whether the machine is "
    "fast. It shows whether the suite's results on it can be trusted."
)
# (path of a figure in the folder, its caption).
FIGURES = (
    ("scaling-cnn/figures/scaling", "How the training of cnn, a small convolutional network, scales."),
    ("scaling-gpt/figures/scaling", "How the training of gpt, a transformer, scales."),
    ("machine/figures/roofline", "The speed of kernels on this machine, below its measured ceilings."),
    ("profile-cnn/figures/profile", "Where the time of a cnn training step goes, from a trace."),
)
Document = Mapping[str, Any]


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
    heading = f"First run on {card_table.machine_name(document['machine'])}"
    made = dict(
        name=heading,
        heading=heading,
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
        made_from="first-run.json",
    )
    sources = [("The machine and its software", page.pretty(document["machine"]))]
    return page.template("first_run.html").render(page=made, sources=sources, version=__version__)


def headlines(document: Document) -> list[str]:
    """Sentences on how many expectations are met, and on parts that were not measured. The first is the answer."""
    items = first_run_tables.items(document)
    counts = {word: sum(item["agrees"] == word for item in items) for word in (YES, NO, CANNOT_TELL)}
    unfinished = [
        about for about in document["parts"].values() if about["outcome"] in ("skipped", "stopped", "not yet")
    ]
    if counts[NO]:
        answer = f"Not everything is as expected: {counts[NO]} of {len(items)} expectations are NOT met."
    elif unfinished:
        answer = f"Nothing contradicts expectations so far: {counts[YES]} of {len(items)} expectations are met."
    else:
        answer = f"Everything that can be judged is as expected: {counts[YES]} of {len(items)} expectations are met."
    unknown = f" {counts[CANNOT_TELL]} cannot be judged, for the reasons below." if counts[CANNOT_TELL] else ""
    sentences = [answer + unknown]
    if unfinished:
        sentences.append(
            f"{len(unfinished)} of {len(document['parts'])} parts are not finished; the table below lists them. "
            "To continue, run the same command with the same --workdir."
        )
    return sentences


def commands(document: Document) -> str:
    """A clause on how many commands ran, how long they took, and how they ended."""
    abouts = list(document["parts"].values())
    words = [about["outcome"] for about in abouts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return f"{len(abouts)} commands in {sum(about['seconds'] for about in abouts) / 60:.0f} minutes: {counts}"


def show(document: Document, console: Console) -> None:
    """Prints the answer, then each expectation that is not met or cannot be judged."""
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
    files = [(folder / f"{name}.svg", name.replace("/figures/", "-"), caption) for name, caption in FIGURES]
    return [Picture(name=name, svg=file.read_bytes(), caption=text) for file, name, text in files if file.is_file()]
