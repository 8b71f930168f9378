# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison in the terminal, readable at 100 columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from jaxbench.report.terminal import section
from jaxbench.report.verdicts import notes, words
from jaxbench.verdicts.comparison import Comparison
from jaxbench.verdicts.judge import CANNOT_TELL, FASTER, SAME, SLOWER

STYLES = {FASTER: "green", SLOWER: "bold red", SAME: "", CANNOT_TELL: "yellow"}


def show(comparison: Comparison, console: Console) -> None:
    """Prints the verdict as a sentence, the tables, what would help, and all notes."""
    console.print()
    console.print(Text(words.headline(comparison), style=STYLES[comparison.verdict] or "bold"))
    console.print()
    for table in filter(None, (words.table(comparison.answers), words.factors(comparison))):
        console.print(table.terminal(console.width))
        console.print()
    for heading, sentences in notes.sections(comparison):
        section(heading, sentences, console)
