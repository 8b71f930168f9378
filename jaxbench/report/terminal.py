# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A page on the terminal: headlines, the table as far as it fits, and the sections, of which long ones are cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jaxbench.report.page import Page, Purpose

SENTENCES = 6  # shown of a section; the page has all


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
        if part.purpose is Purpose.DETAIL:
            continue
        shown, more = list(part.sentences[:SENTENCES]), len(part.sentences) - SENTENCES
        if more > 0:
            shown.append(f"and {more} more on the page.")
        section(part.heading, shown, console)


def section(heading: str, sentences: Sequence[str], console: Console) -> None:
    """Prints sentences under a heading."""
    console.print(Text(heading, style="bold"))
    console.print(*(Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences), sep="")
