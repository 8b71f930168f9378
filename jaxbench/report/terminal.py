# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A page on the terminal: headlines, the table as far as it fits, shortfalls, and a few notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jaxbench.report.page import Page, Purpose, Section

SHORTFALLS = 6  # how many sentences on shortfalls are shown
NOTES = 5  # how many sentences of all other sections are shown together; the page has all


def show(page: Page, console: Console) -> None:
    """Prints the page. Text from the run is never interpreted as markup."""
    table = page.brief or page.table
    console.print()
    if page.alarm:  # in the first line, so that it is easy to find in a log
        why = next(part.sentences[0] for part in page.sections if part.purpose is Purpose.SHORTFALL)
        console.print(Text(f"Failed: {why}", style="bold red"))
    console.print(Text(page.heading, style="bold"))
    for sentence in page.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(table.terminal(console.width))
    console.print()
    console.print(Text(table.note, style="dim"))
    for part in page.sections:
        if part.purpose is Purpose.SHORTFALL:
            more = len(part.sentences) - SHORTFALLS
            rest = [f"and {more} more on the page."] if more > 0 else []
            section(part.heading, [*part.sentences[:SHORTFALLS], *rest], console)
    _notes([part for part in page.sections if part.purpose is Purpose.NOTE], console)


def _notes(parts: Sequence[Section], console: Console) -> None:
    """Prints notes: the first sentence of every section, then the second of each, until there are `NOTES`."""
    turns = sorted((nr, at) for at, part in enumerate(parts) for nr in range(len(part.sentences)))
    shown = Counter(at for _, at in turns[:NOTES])
    for at, count in sorted(shown.items()):
        section(parts[at].heading, parts[at].sentences[:count], console)
    if len(turns) > NOTES:
        console.print(Text(f"And {len(turns) - NOTES} more on the page.", style="dim"))


def section(heading: str, sentences: Sequence[str], console: Console) -> None:
    """Prints sentences under a heading."""
    console.print(Text(heading, style="bold"))
    console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")
