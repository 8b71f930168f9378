# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A page on the terminal: headlines, the table as far as it fits, what is amiss, and a few notes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jaxbench.report.page import Page, Purpose

SHORTFALLS = 6  # sentences on what is amiss that are shown
NOTES = 5  # sentences of all other sections together; the page has all


def show(page: Page, console: Console) -> None:
    """Prints the page. Text that comes from the run is never read as markup."""
    table = page.brief or page.table
    console.print()
    console.print(Text(page.heading, style="bold"))
    for sentence in page.headlines:
        console.print(Text(sentence))
    console.print()
    console.print(table.terminal(console.width))
    console.print()
    console.print(Text(table.note, style="dim"))
    for part in page.sections:
        if part.purpose is Purpose.SHORTFALL:
            section(part.heading, _cut(part.sentences[:SHORTFALLS], len(part.sentences)), console)
    parts = [part.sentences for part in page.sections if part.purpose is Purpose.NOTE]
    if parts:
        section("Notes", _cut(_first(parts, NOTES), sum(map(len, parts))), console)


def section(heading: str, sentences: Sequence[str], console: Console) -> None:
    """Prints sentences under a heading."""
    console.print(Text(heading, style="bold"))
    console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")


def _first(parts: Sequence[Sequence[str]], count: int) -> list[str]:
    """The first sentence of every part, then the second of each, until there are `count`; in the order of the page."""
    turns = sorted((nr, at) for at, part in enumerate(parts) for nr in range(len(part)))
    return [parts[at][nr] for at, nr in sorted((at, nr) for nr, at in turns[:count])]


def _cut(shown: Sequence[str], count: int) -> list[str]:
    """The sentences shown of `count`, and how many are not."""
    return [*shown, *([f"and {count - len(shown)} more on the page."] if count > len(shown) else [])]
